//! Custom objects in several versions, between which a webhook or nobody converts.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use http::{Method, Request, Response};
use kubewright_identity::webhook::Local;
use serde_json::{Value, json};

use super::{BOXES, DEFINITIONS, a_box, definition};
use crate::support::Api;

/// Converts boxes: v1 has `spec.size`, v2 has `spec.length`. Counts how often it is asked, and for how many.
#[derive(Default)]
struct Converter {
    asked: Mutex<Vec<usize>>,
}

impl Local for Converter {
    fn call(&self, request: &Request<Bytes>) -> Option<BoxFuture<'static, Response<Bytes>>> {
        let mut review: Value = serde_json::from_slice(request.body()).expect("a review");
        let wanted = review["request"]["desiredAPIVersion"].take();
        let mut objects = review["request"]["objects"].take();
        let objects = objects.as_array_mut().expect("objects");
        self.asked.lock().expect("no panic").push(objects.len());
        for object in objects.iter_mut() {
            let (from, to) = if wanted == "example.com/v2" { ("size", "length") } else { ("length", "size") };
            if let Some(spec) = object["spec"].as_object_mut()
                && let Some(size) = spec.remove(from)
            {
                spec.insert(to.to_owned(), size);
            }
            object["apiVersion"] = wanted.clone();
            object["metadata"]["annotations"] = json!({"converted": "yes"});
            object["metadata"]["finalizers"] = json!(["not/taken"]);
        }
        let result = if objects.iter().any(|object| object["metadata"]["name"] == "broken") {
            json!({"status": "Failed", "message": "it is broken"})
        } else {
            json!({"status": "Success"})
        };
        review["response"] =
            json!({"uid": review["request"]["uid"], "result": result, "convertedObjects": objects});
        Some(async move { Response::new(review.to_string().into()) }.boxed())
    }
}

/// A server with boxes in two versions, between which the converter is asked.
async fn two_versions() -> (Api, Arc<Converter>) {
    let api = Api::start().await;
    let converter = Arc::new(Converter::default());
    api.server.engine().webhooks().attach(Arc::clone(&converter) as Arc<dyn Local>);
    let version = |name: &str, field: &str, storage: bool| {
        let spec = json!({"type": "object", "properties": {field: {"type": "integer"}}});
        let schema = json!({"type": "object", "properties": {"spec": spec}});
        json!({"name": name, "served": true, "storage": storage, "schema": {"openAPIV3Schema": schema}})
    };
    let mut definition = definition();
    definition["spec"]["versions"] = json!([version("v1", "size", true), version("v2", "length", false)]);
    definition["spec"]["conversion"] = json!({"strategy": "Webhook", "webhook": {
        "clientConfig": {"url": "https://convert.test/"}, "conversionReviewVersions": ["v1"]}});
    api.post(DEFINITIONS, definition).await.expect(201);
    (api, converter)
}

#[tokio::test(start_paused = true)]
async fn a_webhook_converts_between_versions_on_every_way() {
    let (api, converter) = two_versions().await;
    let newer = BOXES.replace("/v1/", "/v2/");
    api.post(BOXES, a_box("a", 1)).await.expect(201);
    assert!(
        converter.asked.lock().unwrap().is_empty(),
        "what is stored as it is written needs no conversion"
    );
    let made = json!({"apiVersion": "example.com/v2", "kind": "Box", "metadata": {"name": "b"}, "spec": {"length": 2}});
    let made = api.post(&newer, made).await.expect(201);
    assert_eq!((&made["apiVersion"], &made["spec"]), (&json!("example.com/v2"), &json!({"length": 2})));
    let stored = api.get(&format!("{BOXES}/b")).await.expect(200);
    assert_eq!(stored["spec"], json!({"size": 2}));
    assert_eq!(stored["metadata"]["annotations"], json!({"converted": "yes"}));
    assert_eq!(
        stored["metadata"]["finalizers"],
        Value::Null,
        "a webhook changes labels and annotations only"
    );
    let changed = api.patch(&format!("{newer}/a"), "merge", json!({"spec": {"length": 5}})).await.expect(200);
    assert_eq!((&changed["spec"], &changed["metadata"]["generation"]), (&json!({"length": 5}), &json!(2)));
    assert_eq!(api.get(&format!("{BOXES}/a")).await.expect(200)["spec"], json!({"size": 5}));
    let mut events = api.watch(&format!("{newer}?watch=true")).await;
    for name in ["a", "b"] {
        let event = events.next().await.unwrap();
        assert_eq!(
            (&event["object"]["metadata"]["name"], &event["object"]["apiVersion"]),
            (&json!(name), &json!("example.com/v2"))
        );
    }
    api.patch(&format!("{BOXES}/b"), "merge", json!({"spec": {"size": 9}})).await.expect(200);
    assert_eq!(events.next().await.unwrap()["object"]["spec"], json!({"length": 9}));
    let gone = api.delete(&format!("{newer}/b")).await.expect(200);
    assert_eq!(gone["status"], "Success");
}

#[tokio::test(start_paused = true)]
async fn a_list_is_converted_in_one_call_and_what_is_known_is_not_asked_again() {
    let (api, converter) = two_versions().await;
    let newer = BOXES.replace("/v1/", "/v2/");
    for name in ["a", "b", "c"] {
        api.post(BOXES, a_box(name, 1)).await.expect(201);
    }
    let list = api.get(&newer).await.expect(200);
    assert!(
        list["items"].as_array().unwrap().iter().all(|one| one["spec"] == json!({"length": 1})),
        "{list}"
    );
    api.post(BOXES, a_box("d", 1)).await.expect(201);
    assert_eq!(api.get(&newer).await.expect(200)["items"].as_array().unwrap().len(), 4);
    assert_eq!(*converter.asked.lock().unwrap(), [3, 1]);
}

#[tokio::test(start_paused = true)]
async fn what_the_webhook_does_not_convert_cannot_be_read_in_that_version() {
    let (api, _) = two_versions().await;
    let newer = BOXES.replace("/v1/", "/v2/");
    api.post(BOXES, a_box("broken", 1)).await.expect(201);
    let why = "conversion webhook for example.com/v1, Kind=Box failed: it is broken";
    let refused = api.get(&format!("{newer}/broken")).await.expect(500);
    assert_eq!((&refused["message"], &refused["reason"]), (&json!(why), &Value::Null));
    let message = api.get(&newer).await.refused(429, "TooManyRequests");
    let what = "failed to list <unspecified>";
    assert_eq!(message, format!("storage is (re)initializing: {what}: {why}"));
    api.get(&format!("{BOXES}/broken")).await.expect(200);
}

/// Who has which fields of an object's spec, by version and manager.
fn owners(object: &Value) -> Vec<(&str, &str, &Value)> {
    let entries = object["metadata"]["managedFields"].as_array().map_or(&[][..], Vec::as_slice);
    let mut owners: Vec<_> = entries
        .iter()
        .map(|entry| (text(&entry["apiVersion"]), text(&entry["manager"]), &entry["fieldsV1"]["f:spec"]))
        .collect();
    owners.sort_by_key(|(version, manager, _)| (*version, *manager));
    owners
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

async fn apply(api: &Api, version: &str, manager: &str, spec: Value) -> Value {
    let box_a = json!({"apiVersion": format!("example.com/{version}"), "kind": "Box", "metadata": {"name": "a"}, "spec": spec});
    let path = format!("{}/a?fieldManager={manager}", BOXES.replace("/v1/", &format!("/{version}/")));
    let yaml = [("content-type", "application/apply-patch+yaml")];
    api.send(Method::PATCH, &path, &yaml, box_a.to_string()).await.body
}

/// `cluster-api` does so when it moves to another version (`internal/util/ssa`).
#[tokio::test(start_paused = true)]
async fn managers_of_other_versions_are_compared_in_what_the_webhook_converts() {
    let (api, _) = two_versions().await;
    apply(&api, "v1", "one", json!({"size": 1})).await;
    let both = apply(&api, "v2", "two", json!({"length": 1})).await;
    let size = json!({"f:size": {}});
    let length = json!({"f:length": {}});
    assert_eq!(owners(&both), [("example.com/v1", "one", &size), ("example.com/v2", "two", &length)]);
    let conflict = apply(&api, "v2", "two", json!({"length": 2})).await;
    assert_eq!(conflict["reason"], "Conflict", "{conflict}");
    assert!(text(&conflict["message"]).contains("\"one\""), "{conflict}");
    let patch = json!({"spec": {"length": 3}});
    let newer = BOXES.replace("/v1/", "/v2/");
    let changed = api.patch(&format!("{newer}/a?fieldManager=three"), "merge", patch).await.expect(200);
    assert_eq!(owners(&changed), [("example.com/v2", "three", &length)], "one has lost it, too");
}

#[tokio::test(start_paused = true)]
async fn what_an_applier_of_another_version_no_longer_says_goes_as_the_webhook_converts_it() {
    let (api, _) = two_versions().await;
    apply(&api, "v1", "one", json!({"size": 1})).await;
    let longer = apply(&api, "v2", "two", json!({"length": 1})).await;
    assert_eq!(longer["spec"], json!({"length": 1}));
    let kept = apply(&api, "v2", "one", json!({})).await;
    assert_eq!(kept["spec"], json!({"length": 1}), "two has it: {kept}");
    let gone = apply(&api, "v1", "two", json!({})).await;
    assert_eq!(gone["spec"].get("size"), None, "{gone}");
}

/// A definition goes on having versions that it does not serve: so do managers.
#[tokio::test(start_paused = true)]
async fn managers_of_a_version_that_is_not_served_any_more_keep_their_fields() {
    let api = Api::start().await;
    let version = |name: &str, is_newest: bool, fields: Value| {
        let spec = json!({"type": "object", "properties": fields});
        let schema = json!({"type": "object", "properties": {"spec": spec}});
        json!({"name": name, "served": is_newest, "storage": is_newest, "schema": {"openAPIV3Schema": schema}})
    };
    let size = json!({"size": {"type": "integer"}});
    let mut first = definition();
    first["spec"]["versions"] = json!([version("v1", true, size.clone())]);
    api.post(DEFINITIONS, first).await.expect(201);
    apply(&api, "v1", "one", json!({"size": 1})).await;
    let path = format!("{DEFINITIONS}/boxes.example.com");
    let versions = |newer: Value| json!({"spec": {"versions": [version("v1", false, size.clone()), version("v2", true, newer)]}});
    api.patch(&path, "merge", versions(size.clone())).await.expect(200);
    let newer = BOXES.replace("/v1/", "/v2/");
    let labelled = json!({"metadata": {"labels": {"a": "b"}}});
    let kept = api.patch(&format!("{newer}/a?fieldManager=two"), "merge", labelled).await.expect(200);
    let owned = json!({"f:size": {}});
    assert_eq!(owners(&kept)[0], ("example.com/v1", "one", &owned));
    assert_eq!(owners(&kept).len(), 2);
    let with_default = json!({"size": {"type": "integer"}, "color": {"type": "string", "default": "red"}});
    api.patch(&path, "merge", versions(with_default)).await.expect(200);
    let refused = apply(&api, "v2", "one", json!({"size": 1})).await;
    assert_eq!(refused["message"], ".spec.color: field not declared in schema");
}
