//! Two versions of a kind, of which the older cannot hold everything.

use std::sync::Arc;

use kube::{CustomResource, api::ObjectMeta};
use proptest::prelude::*;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::*;

#[derive(CustomResource, Clone, Debug, Deserialize, Serialize)]
#[kube(group = "example.com", version = "v1", kind = "Box", root = "BoxV1", schema = "disabled", namespaced)]
struct SpecV1 {
    size: String,
}

#[derive(CustomResource, Clone, Debug, Deserialize, Serialize)]
#[kube(group = "example.com", version = "v2", kind = "Box", root = "BoxV2", schema = "disabled", namespaced)]
struct SpecV2 {
    width: u32,
    height: u32,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    labels: Vec<Label>,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
struct Label {
    name: String,
    color: Option<String>,
}

/// `3x4`; labels are left out.
impl From<BoxV2> for BoxV1 {
    fn from(new: BoxV2) -> Self {
        let size = format!("{}x{}", new.spec.width, new.spec.height);
        Self { metadata: new.metadata, spec: SpecV1 { size } }
    }
}

impl TryFrom<BoxV1> for BoxV2 {
    type Error = String;

    fn try_from(old: BoxV1) -> Result<Self, String> {
        let size = old.spec.size.split_once('x').and_then(|(w, h)| Some((w.parse().ok()?, h.parse().ok()?)));
        let (width, height) = size.ok_or_else(|| format!("{:?} is no size", old.spec.size))?;
        Ok(Self { metadata: old.metadata, spec: SpecV2 { width, height, labels: Vec::new() } })
    }
}

const DATA: &str = "example.com/conversion-data";

fn lossy() -> Conversion<BoxV2> {
    Conversion::hub::<BoxV2>().spoke::<BoxV1>()
}

fn labelled() -> BoxV2 {
    let labels = vec![Label { name: "a".into(), color: Some("red".into()) }];
    BoxV2::new("one", SpecV2 { width: 3, height: 4, labels })
}

fn old(size: &str) -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Box", "spec": {"size": size},
        "metadata": {"name": "one", "namespace": "ns", "uid": "u", "generation": 3, "labels": {"a": "b"},
            "managedFields": [{"manager": "m", "unknown": 1}]}})
}

#[test]
fn metadata_comes_through_as_it_is() {
    let new = lossy().convert("example.com/v2", &old("3x4"));
    assert_eq!(new["spec"], json!({"width": 3, "height": 4}));
    assert_eq!((&new["metadata"], &new["apiVersion"]), (&old("")["metadata"], &json!("example.com/v2")));
}

#[test]
fn what_server_side_apply_leaves_of_an_object_is_converted() {
    let mut bare = old("3x4");
    bare.as_object_mut().and_then(|members| members.remove("spec"));
    let new = lossy().convert("example.com/v2", &bare);
    assert_eq!((&new["apiVersion"], new.get("spec")), (&json!("example.com/v2"), None));
    assert!(lossy().convert_object(&bare, "example.com/v7").is_err());

    let mut part = write(&labelled()).expect("JSON");
    part["spec"] = json!({"width": 3});
    assert_eq!(lossy().convert("example.com/v1", &part)["spec"], json!({"size": "3x0"}));
    let mut unsized_box = old("x");
    unsized_box["spec"] = json!({});
    let error = lossy().convert_object(&unsized_box, "example.com/v2").expect_err("no size");
    assert!(error.ends_with(r#""" is no size"#), "{error}");
}

#[test]
fn a_loss_is_found_by_a_round_trip() {
    let why = lossy().check_round_trips([labelled()]).expect_err("labels are lost");
    assert!(why.starts_with("Box \"one\" is not the same after example.com/v2 -> example.com/v1"), "{why}");
    assert!(why.contains("/spec/labels"), "{why}");
    lossy().keeping(DATA).assert_round_trips([labelled()]);
    lossy().assert_spoke_round_trips([BoxV1::new("one", SpecV1 { size: "1x2".into() })]);
}

#[test]
fn what_was_changed_in_the_spoke_is_changed_in_the_hub_and_the_rest_stays() {
    let conversion = lossy().keeping(DATA);
    let hub = write(&labelled()).expect("JSON");
    let mut spoke = conversion.convert("example.com/v1", &hub);
    assert!(spoke["metadata"]["annotations"][DATA].is_string());
    spoke["spec"]["size"] = json!("3x9");
    let back = conversion.convert("example.com/v2", &spoke);
    assert_eq!(back["spec"], json!({"width": 3, "height": 9, "labels": [{"name": "a", "color": "red"}]}));
    assert_eq!(back["metadata"]["annotations"], Value::Null, "the hub needs no annotation");
    let plain = BoxV2::new("two", SpecV2 { width: 1, height: 1, labels: Vec::new() });
    let spoke = conversion.convert("example.com/v1", &write(&plain).expect("JSON"));
    assert_eq!(spoke["metadata"]["annotations"], Value::Null, "nothing is lost of this one");
}

#[test]
fn an_annotation_that_nobody_can_read_is_not_looked_at() {
    for rubbish in ["", "{", "[]", r#"{"spec": {"width": "wide"}}"#] {
        let mut object = old("3x4");
        object["metadata"]["annotations"] = json!({DATA: rubbish});
        let new = lossy().keeping(DATA).convert("example.com/v2", &object);
        assert_eq!(new["spec"], json!({"width": 3, "height": 4}));
        assert_eq!(new["metadata"]["annotations"], Value::Null);
    }
}

#[test]
fn a_review_names_every_object_that_cannot_be_converted() {
    let conversions: Vec<Arc<dyn DynConversion>> = vec![Arc::new(lossy())];
    let ask = |desired: &str, objects: Value| {
        let review = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview",
            "request": {"uid": "q", "desiredAPIVersion": desired, "objects": objects}});
        answer(&conversions, review.to_string().as_bytes()).expect("a review")["response"].take()
    };
    let good = ask("example.com/v2", json!([old("1x2"), old("2x2")]));
    assert_eq!((&good["uid"], &good["result"]), (&json!("q"), &json!({"status": "Success"})));
    assert_eq!(good["convertedObjects"].as_array().map(Vec::len), Some(2));

    let bad = ask("example.com/v2", json!([old("1x2"), old("big")]));
    let why = r#"Box "ns/one" cannot be converted from example.com/v1 to example.com/v2: "big" is no size"#;
    assert_eq!(bad["result"], json!({"status": "Failure", "message": why}));
    let unknown = ask("example.com/v3", json!([old("1x2")]));
    let why = r#"Box "ns/one" cannot be converted from example.com/v1 to example.com/v3: that version is not known"#;
    assert_eq!(unknown["result"]["message"], why);
    let other = ask("v1", json!([{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}]));
    assert_eq!(other["result"]["message"], r#"Pod "p" of v1: no conversion of this kind is known"#);

    let beta = br#"{"apiVersion": "apiextensions.k8s.io/v1beta1", "kind": "ConversionReview"}"#;
    let why = answer(&conversions, beta).expect_err("an old API");
    assert!(why.ends_with(r#"set conversionReviewVersions of the definition to ["v1"]"#), "{why}");
    assert!(answer(&conversions, b"x").is_err());
}

#[derive(CustomResource, Clone, Debug, Deserialize, Serialize)]
#[kube(group = "example.com", version = "v3", kind = "Box", root = "BoxV3", schema = "disabled", namespaced)]
struct SpecV3 {}

/// Gives objects another name, or none at all.
impl From<BoxV2> for BoxV3 {
    fn from(new: BoxV2) -> Self {
        let metadata = match new.spec.width {
            0 => ObjectMeta::default(),
            _ => ObjectMeta { name: Some("renamed".into()), ..new.metadata },
        };
        Self { metadata, spec: SpecV3 {} }
    }
}

impl From<BoxV3> for BoxV2 {
    fn from(old: BoxV3) -> Self {
        assert!(old.metadata.name.as_deref() != Some("panic"), "no idea");
        Self { metadata: old.metadata, spec: SpecV2 { width: 0, height: 0, labels: Vec::new() } }
    }
}

#[test]
fn a_conversion_may_forget_metadata_but_not_change_who_an_object_is() {
    let conversion = lossy().spoke::<BoxV3>();
    let renamed = conversion.convert_object(&old("1x1"), "example.com/v3").expect_err("it is renamed");
    assert!(
        renamed.ends_with(r#"its conversion changes metadata.name from "one" to "renamed""#),
        "{renamed}"
    );
    let forgotten = conversion.convert("example.com/v3", &old("0x1"));
    assert_eq!(forgotten["metadata"], old("")["metadata"]);
}

#[test]
fn what_is_put_together_wrongly_is_told() {
    assert_eq!(
        DynConversion::mistakes(&Conversion::hub::<BoxV2>()),
        ["conversion: boxes.example.com has a hub and no spoke"]
    );
    let twice = lossy().spoke::<BoxV1>().keeping("data");
    assert_eq!(
        DynConversion::mistakes(&twice),
        [
            "conversion: Box has the version example.com/v1 twice",
            "conversion: \"data\" is no annotation: write example.com/name"
        ]
    );
}

impl Conversion<BoxV2> {
    fn convert(&self, desired: &str, object: &Value) -> Value {
        self.convert_object(object, desired).expect("it can be converted")
    }
}

prop_compose! {
    fn boxes()(width in 0..9_u32, height in 0..9_u32, labels in prop::collection::vec(("[a-c]", prop::option::of("[a-z]{1,3}")), 0..4)) -> BoxV2 {
        let labels = labels.into_iter().map(|(name, color)| Label { name, color }).collect();
        BoxV2::new("one", SpecV2 { width, height, labels })
    }
}

proptest! {
    #[test]
    fn with_an_annotation_nothing_is_lost(sample in boxes()) {
        lossy().keeping(DATA).check_round_trips([sample]).map_err(TestCaseError::fail)?;
    }

    #[test]
    fn a_change_in_the_spoke_reaches_the_hub(sample in boxes(), width in 0..9_u32) {
        let conversion = lossy().keeping(DATA);
        let mut spoke = conversion.convert("example.com/v1", &write(&sample).expect("JSON"));
        spoke["spec"]["size"] = format!("{width}x{}", sample.spec.height).into();
        let back = read::<BoxV2>(&conversion.convert("example.com/v2", &spoke)).expect("a box");
        prop_assert_eq!((back.spec.width, back.spec.height), (width, sample.spec.height));
        prop_assert_eq!(json!(back.spec.labels), json!(sample.spec.labels));
    }
}

#[tokio::test(start_paused = true)]
async fn a_conversion_that_panics_is_a_500_and_is_counted() {
    let webhooks = crate::webhook::Webhooks::new("test").convert(lossy().spoke::<BoxV3>());
    let service = crate::webhook::Service::new(&webhooks);
    let object =
        json!({"apiVersion": "example.com/v3", "kind": "Box", "metadata": {"name": "panic"}, "spec": {}});
    let review = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview",
        "request": {"uid": "q", "desiredAPIVersion": "example.com/v2", "objects": [object]}});
    let request = http::Request::post(PATH).header("content-type", "application/json");
    let answer = service.call(request.body(review.to_string().into()).expect("a request")).await;
    assert_eq!(answer.status().as_u16(), 500);
    let counts = service.metrics().read();
    assert_eq!((counts.conversion_panics, counts.panics), (1, 0));
}
