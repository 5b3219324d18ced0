use serde_json::{Value, json};

use super::*;

fn webhook(versions: &[&str]) -> Webhook {
    let webhook = json!({"clientConfig": {"url": "https://a/b"}, "conversionReviewVersions": versions});
    Webhook::of(&json!({"spec": {"conversion": {"strategy": "Webhook", "webhook": webhook}}}))
        .expect("a webhook")
}

fn stored() -> Value {
    json!({"apiVersion": "g/v1", "kind": "Thing", "spec": {"a": 1},
        "metadata": {"name": "x", "uid": "u", "labels": {"a": "b"}, "finalizers": ["f/f"]}})
}

fn answered(change: impl Fn(&mut Value)) -> Result<Vec<Value>, String> {
    let objects = [stored()];
    let review = webhook(&["v1"]).review("id".to_owned(), "g/v2", &objects).expect("a review");
    let mut converted = stored();
    converted["apiVersion"] = "g/v2".into();
    converted["spec"] = json!({"b": "1"});
    let mut answer = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview",
        "response": {"uid": "id", "result": {"status": "Success"}, "convertedObjects": [converted]}});
    change(&mut answer);
    review.converted(answer.to_string().as_bytes())
}

#[test]
fn a_webhook_is_asked_in_the_first_review_that_both_know() {
    let objects = [stored()];
    for (versions, expected) in [(&["v7", "v1"][..], "v1"), (&["v1beta1", "v1"], "v1beta1")] {
        let review = webhook(versions).review("id".to_owned(), "g/v2", &objects).expect("a review");
        assert_eq!(review.request()["apiVersion"], format!("apiextensions.k8s.io/{expected}"));
        assert_eq!(review.request()["request"]["objects"], json!([stored()]));
    }
    let none = webhook(&["v7"]).review("id".to_owned(), "g/v2", &objects);
    assert_eq!(none.err().as_deref(), Some("no supported conversion review versions"));
}

#[test]
fn only_labels_and_annotations_are_taken_from_the_answer() {
    let converted = answered(|answer| {
        answer["response"]["convertedObjects"][0]["metadata"] =
            json!({"name": "x", "uid": "u", "annotations": {"c": "d"}, "finalizers": [], "generation": 7});
    });
    let expected = json!({"apiVersion": "g/v2", "kind": "Thing", "spec": {"b": "1"},
        "metadata": {"name": "x", "uid": "u", "annotations": {"c": "d"}, "finalizers": ["f/f"]}});
    assert_eq!(converted, Ok(vec![expected]));
}

/// Each answer was given to kube-apiserver v1.36, which said this.
#[test]
fn what_is_wrong_with_an_answer_is_told_in_the_words_of_kubernetes() {
    let cases: &[(&str, Value, &str)] = &[
        (
            "/kind",
            json!("Foo"),
            " failed: no kind \"Foo\" is registered for version \"apiextensions.k8s.io/v1\" in scheme \"pkg/runtime/scheme.go:111\"",
        ),
        (
            "/kind",
            json!(null),
            " failed: expected webhook response of apiextensions.k8s.io/v1, Kind=ConversionReview, got apiextensions.k8s.io/v1, Kind=",
        ),
        (
            "/apiVersion",
            json!("apiextensions.k8s.io/v1beta1"),
            " failed: converting (v1beta1.ConversionReview) to (v1.ConversionReview): unknown conversion",
        ),
        ("/response", json!(null), " failed: no response provided"),
        ("/response/uid", json!("zz"), " failed: expected response.uid=\"id\", got \"zz\""),
        ("/response/result", json!({}), " failed: response.result.status was '', not 'Success'"),
        ("/response/result", json!({"status": "Failed", "message": "no way"}), " failed: no way"),
        ("/response/convertedObjects", json!([]), " returned 0 objects, expected 1"),
        (
            "/response/convertedObjects/0/apiVersion",
            json!("x/v9"),
            " returned invalid object at index 0: invalid groupVersion (expected g/v2, received x/v9)",
        ),
        (
            "/response/convertedObjects/0/kind",
            json!("Other"),
            " returned invalid object at index 0: invalid kind (expected Thing, received Other)",
        ),
        (
            "/response/convertedObjects/0/metadata/name",
            json!("other"),
            " returned invalid object: must have the same name: x != other",
        ),
        (
            "/response/convertedObjects/0/metadata/uid",
            json!("other"),
            " returned invalid object: must have the same UID: u != other",
        ),
        (
            "/response/convertedObjects/0/metadata/labels",
            json!([1]),
            " returned invalid metadata: invalid metadata.labels of type []interface {} in converted object",
        ),
        (
            "/response/convertedObjects/0/metadata/labels",
            json!({"a": 1}),
            " returned invalid metadata: metadata.labels[a] must be a string, but is int64 in converted object",
        ),
        (
            "/response/convertedObjects/0/metadata/labels",
            json!({"a b": "c"}),
            " returned invalid metadata: metadata.labels: Invalid value: \"a b\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
        ),
        (
            "/response/convertedObjects/0/metadata",
            json!("x"),
            " returned invalid object: must have the same name: x != ",
        ),
    ];
    for (pointer, value, expected) in cases {
        let told = answered(|answer| *answer.pointer_mut(pointer).expect("a place") = value.clone());
        assert_eq!(told, Err(format!("conversion webhook for g/v1, Kind=Thing{expected}")), "{pointer}");
    }
    let told = answered(|answer| answer["response"]["convertedObjects"][0] = "x".into());
    assert_eq!(
        told,
        Err("json: cannot unmarshal string into Go value of type map[string]interface {}".to_owned())
    );
}

proptest::proptest! {
    #[test]
    fn any_answer_has_a_meaning(answer in crate::values::json()) {
        let objects = [stored()];
        let review = webhook(&["v1"]).review("id".to_owned(), "g/v2", &objects).expect("a review");
        let _ = review.converted(answer.to_string().as_bytes());
        let _ = answered(|whole| whole["response"]["convertedObjects"] = serde_json::json!([answer.clone()]));
    }
}
