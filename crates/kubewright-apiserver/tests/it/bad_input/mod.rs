//! What makes no sense gets a clear answer, and the server goes on.

mod fuzz;

use http::Method;
use serde_json::{Map, Value, json};

use crate::support::Api;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const PROTOBUF: [(&str, &str); 1] = [("content-type", "application/vnd.kubernetes.protobuf")];

#[tokio::test(start_paused = true)]
async fn a_malformed_or_truncated_body_is_a_bad_request() {
    let api = Api::start().await;
    for body in ["{not json", "", "{\"a\":", "[1,2", "\u{0}", "{} {}"] {
        let message = api.send(Method::POST, MAPS, &[], body).await.refused(400, "BadRequest");
        assert!(message.contains("json parse error"), "{message}");
    }
    let yaml = [("content-type", "application/yaml")];
    api.send(Method::POST, MAPS, &yaml, "a: [b").await.refused(400, "BadRequest");
    api.get(MAPS).await.expect(200);
}

#[tokio::test(start_paused = true)]
async fn yaml_is_a_body_too() {
    let api = Api::start().await;
    let body = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  k: v\n";
    let made = api.send(Method::POST, MAPS, &[("content-type", "application/yaml")], body).await.expect(201);
    assert_eq!(made["data"]["k"], "v");
}

#[tokio::test(start_paused = true)]
async fn other_content_types_are_refused_by_name() {
    let api = Api::start().await;
    for media_type in ["text/plain", "application/xml"] {
        let headers = [("content-type", media_type)];
        let message = api.send(Method::POST, MAPS, &headers, "x").await.refused(415, "UnsupportedMediaType");
        assert!(
            message.ends_with("application/json, application/yaml, application/vnd.kubernetes.protobuf"),
            "{message}"
        );
    }
    let headers = [("content-type", "application/json")];
    api.post(MAPS, json!({"metadata": {"name": "a"}})).await.expect(201);
    let path = format!("{MAPS}/a");
    api.send(Method::PATCH, &path, &headers, "{}").await.refused(415, "UnsupportedMediaType");
}

#[tokio::test(start_paused = true)]
async fn truncated_protobuf_is_a_bad_request() {
    let api = Api::start().await;
    for body in ["", "x", "k8s\0", "k8s\0\n", "k8s\0\n\u{4}\n\u{2}v1\u{12}\u{9}\n\u{20}\n\u{1}a"] {
        let answer = api.send(Method::POST, MAPS, &PROTOBUF, body).await;
        let message = answer.refused(400, "BadRequest");
        assert!(message.contains("ConfigMap"), "{message}");
        api.send(Method::DELETE, &format!("{MAPS}/a"), &PROTOBUF, "k8s\0\n").await.refused(400, "BadRequest");
    }
}

#[tokio::test(start_paused = true)]
async fn custom_resources_have_no_protobuf() {
    let api = Api::start().await;
    let definition = json!({
        "metadata": {"name": "boxes.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "boxes", "kind": "Box"},
            "versions": [{
                "name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}
            }],
        },
    });
    api.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition).await.expect(201);
    let path = "/apis/example.com/v1/namespaces/default/boxes";
    let message =
        api.send(Method::POST, path, &PROTOBUF, "k8s\0\n").await.refused(415, "UnsupportedMediaType");
    assert!(message.ends_with("application/json, application/yaml"), "{message}");
}

#[tokio::test(start_paused = true)]
async fn a_body_over_the_limit_is_too_large() {
    let api = Api::start().await;
    let body = format!("{{\"data\":{{\"a\":\"{}\"}}}}", "x".repeat(3 * 1024 * 1024));
    api.send(Method::POST, MAPS, &[], body).await.refused(413, "RequestEntityTooLarge");
}

#[tokio::test(start_paused = true)]
async fn a_path_cannot_leave_its_place() {
    let api = Api::start().await;
    for name in ["..", "%2e%2e"] {
        let message = api.get(&format!("{MAPS}/{name}")).await.refused(400, "BadRequest");
        assert_eq!(message, "Name parameter invalid: \"..\": may not be '..'");
    }
    for name in ["a%2f..%2fb", "%00", "%ff"] {
        api.get(&format!("{MAPS}/{name}")).await.refused(404, "NotFound");
    }
    let body = json!({"metadata": {"name": "../../secrets/a"}});
    api.post(MAPS, body).await.refused(422, "Invalid");
}

#[tokio::test(start_paused = true)]
async fn an_object_of_a_hundred_thousand_keys_is_served() {
    let api = Api::start().await;
    let data: Map<String, Value> = (0..100_000).map(|key| (format!("k{key}"), "v".into())).collect();
    let made = api.post(MAPS, json!({"metadata": {"name": "big"}, "data": data})).await;
    // 100,000 short keys stay under the 1 MiB that a ConfigMap may hold.
    assert_eq!(made.expect(201)["data"].as_object().unwrap().len(), 100_000);
}

#[tokio::test(start_paused = true)]
async fn deep_nesting_is_refused_in_every_kind_of_body() {
    let api = Api::start().await;
    let deep = format!("{}{}", "{\"a\":".repeat(50_000), "}".repeat(50_000));
    api.send(Method::POST, MAPS, &[], deep.clone()).await.refused(400, "BadRequest");
    api.post(MAPS, json!({"metadata": {"name": "a"}})).await.expect(201);
    for kind in ["merge", "json", "strategic-merge"] {
        let media_type = format!("application/{kind}-patch+json");
        let path = format!("{MAPS}/a");
        let answer = api.send(Method::PATCH, &path, &[("content-type", &media_type)], deep.clone()).await;
        assert_eq!(answer.code, 400, "{kind}: {}", answer.body);
    }
    let flow = "[".repeat(50_000);
    api.send(Method::POST, MAPS, &[("content-type", "application/yaml")], flow)
        .await
        .refused(400, "BadRequest");
}

#[tokio::test(start_paused = true)]
async fn unknown_places_and_methods_say_so() {
    let api = Api::start().await;
    api.get("/api/v1/nopes").await.refused(404, "NotFound");
    assert_eq!(api.get("/nope").await.bytes, "404 page not found\n");
    assert_eq!(api.get("/apis/example.com/v1/things").await.bytes, "404 page not found\n");
    api.put(MAPS, json!({})).await.refused(405, "MethodNotAllowed");
    api.post(&format!("{MAPS}/a"), json!({})).await.refused(405, "MethodNotAllowed");
    api.send(Method::OPTIONS, MAPS, &[], "").await.refused(405, "MethodNotAllowed");
}

#[tokio::test(start_paused = true)]
async fn bad_parameters_say_so() {
    let api = Api::start().await;
    api.get(&format!("{MAPS}?limit=x")).await.refused(400, "BadRequest");
    api.get(&format!("{MAPS}?continue=garbage")).await.refused(400, "BadRequest");
    api.get(&format!("{MAPS}?labelSelector=a%20b")).await.refused(400, "BadRequest");
    api.get(&format!("{MAPS}?resourceVersionMatch=Exact")).await.refused(422, "Invalid");
    let body = json!({"metadata": {"name": "a"}});
    api.post(&format!("{MAPS}?dryRun=Maybe"), body.clone()).await.refused(422, "Invalid");
    api.post(&format!("{MAPS}?fieldValidation=Maybe"), body).await.refused(422, "Invalid");
}
