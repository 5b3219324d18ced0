//! What a caller is told, whatever it sends and whatever a handler does.

use base64::{Engine, engine::general_purpose::STANDARD};
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::json;

use super::*;
use crate::webhook::{
    Defaulter, Denied, Handler, ValidationResult, Validator, Warnings, admission::Response as Answer,
};

struct Labels;

impl Defaulter<ConfigMap> for Labels {
    async fn apply_defaults(&self, _: &admission::Request, mut map: ConfigMap) -> Result<ConfigMap, Denied> {
        if map.data.as_ref().is_some_and(|data| data.contains_key("bad")) {
            return Err(Denied::forbidden("that is bad"));
        }
        map.metadata.labels.get_or_insert_default().insert("seen".into(), "yes".into());
        Ok(map)
    }
}

struct Checks;

impl Validator<ConfigMap> for Checks {
    async fn validate_create(&self, request: &admission::Request, map: &ConfigMap) -> ValidationResult {
        match map.metadata.name.as_deref() {
            Some("panic") => panic!("no idea"),
            Some("slow") => {
                tokio::time::sleep(Duration::from_secs(3600)).await;
                Ok(Warnings::none())
            }
            _ => Ok(Warnings::none().and(format!("hello {}, dry run {}", request.user(), request.dry_run))),
        }
    }

    async fn validate_delete(&self, _: &admission::Request, _: &ConfigMap) -> ValidationResult {
        Err(Denied::forbidden("never"))
    }
}

struct Anything;

impl Handler for Anything {
    async fn handle(&self, request: &admission::Request) -> Answer {
        let what = format!("{}/{}", request.resource.resource, request.sub_resource);
        Answer::allowed().audit("what", what)
    }
}

fn service() -> Service {
    let webhooks = Webhooks::new("test")
        .add(Webhook::defaulting::<ConfigMap>(Labels))
        .add(Webhook::validating::<ConfigMap>(Checks))
        .add(Webhook::validating_with("/any", "any.example.com", Anything));
    Service::new(&webhooks)
}

const MUTATE: &str = "/mutate--v1-configmap";
const VALIDATE: &str = "/validate--v1-configmap";

fn map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "odd": 1}, "data": {"a": "b"}})
}

fn question(operation: &str, object: &Value, old: &Value) -> Value {
    json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
        "uid": "q", "kind": {"group": "", "version": "v1", "kind": "ConfigMap"},
        "resource": {"group": "", "version": "v1", "resource": "configmaps"}, "name": "a", "namespace": "ns",
        "operation": operation, "userInfo": {"username": "me"}, "object": object, "oldObject": old,
        "dryRun": true, "options": null}})
}

fn post(path: &str, body: &[u8]) -> Request<Bytes> {
    let request = Request::post(path).header("content-type", "application/json");
    request.body(Bytes::copy_from_slice(body)).expect("a good request")
}

async fn send(service: &Service, path: &str, question: &Value) -> (u16, Value) {
    let answer = service.call(post(path, question.to_string().as_bytes())).await;
    (answer.status().as_u16(), serde_json::from_slice(answer.body()).expect("JSON"))
}

#[tokio::test(start_paused = true)]
async fn the_patch_has_what_the_handler_has_changed_and_nothing_else() {
    let (code, review) = send(&service(), MUTATE, &question("CREATE", &map("a"), &Value::Null)).await;
    assert_eq!((code, &review["kind"]), (200, &json!("AdmissionReview")));
    let response = &review["response"];
    assert_eq!((&response["uid"], &response["allowed"]), (&json!("q"), &json!(true)));
    let patch = STANDARD.decode(response["patch"].as_str().expect("text")).expect("base64");
    let patch: Value = serde_json::from_slice(&patch).expect("JSON");
    assert_eq!(patch, json!([{"op": "add", "path": "/metadata/labels", "value": {"seen": "yes"}}]));

    let mut done = map("a");
    done["metadata"]["labels"] = json!({"seen": "yes"});
    let (_, review) = send(&service(), MUTATE, &question("UPDATE", &done, &map("a"))).await;
    assert_eq!(review["response"], json!({"uid": "q", "allowed": true, "status": {"code": 200}}));
    let (_, review) = send(&service(), MUTATE, &question("DELETE", &Value::Null, &map("a"))).await;
    assert_eq!(review["response"]["allowed"], json!(true));
    let mut bad = map("a");
    bad["data"] = json!({"bad": "x"});
    let (_, review) = send(&service(), MUTATE, &question("CREATE", &bad, &Value::Null)).await;
    assert_eq!(review["response"]["status"]["message"], "that is bad");
}

#[tokio::test(start_paused = true)]
async fn a_validator_is_asked_what_its_operation_is_about() {
    let (_, review) = send(&service(), VALIDATE, &question("CREATE", &map("a"), &Value::Null)).await;
    assert_eq!(review["response"]["warnings"], json!(["hello me, dry run true"]));
    let (_, review) = send(&service(), VALIDATE, &question("UPDATE", &map("a"), &map("a"))).await;
    assert_eq!(review["response"]["allowed"], json!(true));
    let (_, review) = send(&service(), VALIDATE, &question("DELETE", &Value::Null, &map("a"))).await;
    assert_eq!(
        (&review["response"]["allowed"], &review["response"]["status"]["code"]),
        (&json!(false), &json!(403))
    );
    let (_, review) = send(&service(), "/any", &question("CONNECT", &Value::Null, &Value::Null)).await;
    assert_eq!(review["response"]["auditAnnotations"], json!({"what": "configmaps/"}));
}

#[tokio::test(start_paused = true)]
async fn a_handler_never_sees_what_is_no_object_of_its_kind() {
    let mut wrong = map("a");
    wrong["data"] = json!({"a": 1});
    let mut other = map("a");
    other["kind"] = json!("Secret");
    for (object, why) in [
        (wrong, "the object of the request is no ConfigMap: invalid type: integer `1`, expected a string"),
        (other, "the object of the request is no ConfigMap: it is v1, kind \"Secret\""),
        (Value::Null, "the object of the request is no ConfigMap: there is none"),
    ] {
        let (code, review) = send(&service(), VALIDATE, &question("CREATE", &object, &Value::Null)).await;
        let status = &review["response"]["status"];
        assert_eq!((code, &status["code"], &status["message"]), (200, &json!(400), &json!(why)));
    }
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_panics_or_hangs_is_a_500_and_is_counted() {
    let service = service();
    let (code, status) = send(&service, VALIDATE, &question("CREATE", &map("panic"), &Value::Null)).await;
    assert_eq!(
        (code, &status["kind"], &status["message"]),
        (500, &json!("Status"), &json!("panic: no idea [recovered]"))
    );
    let start = tokio::time::Instant::now();
    let asked = format!("{VALIDATE}?timeout=2s");
    let (code, status) = send(&service, &asked, &question("CREATE", &map("slow"), &Value::Null)).await;
    assert_eq!((code, &status["message"]), (500, &json!("the webhook's handler took longer than 2s")));
    assert_eq!(start.elapsed(), Duration::from_secs(2));
    let counts = service.metrics().read();
    assert_eq!((counts.panics, counts.timeouts, counts.conversion_panics), (1, 1, 0));
    assert_eq!(counts.webhooks[VALIDATE].requests[&500], 2);
}

#[tokio::test(start_paused = true)]
async fn what_is_no_review_is_refused_with_the_reason() {
    let service = service();
    let beta = json!({"apiVersion": "admission.k8s.io/v1beta1", "kind": "AdmissionReview", "request": {}});
    let cases: [(Request<Bytes>, u16, &str); 8] = [
        (post("/nowhere", b"{}"), 404, "no webhook is served at /nowhere"),
        (post(VALIDATE, b""), 400, "request body is empty"),
        (post(VALIDATE, b"{"), 400, "the body is no AdmissionReview: EOF while parsing"),
        (
            post(VALIDATE, b"{}"),
            400,
            "the body is no AdmissionReview of admission.k8s.io/v1: it is \"\", kind \"\"",
        ),
        (post(VALIDATE, beta.to_string().as_bytes()), 400, "admission.k8s.io/v1beta1 is not spoken here"),
        (post(VALIDATE, "[".repeat(100_000).as_bytes()), 400, "the body is no AdmissionReview: "),
        (post(VALIDATE, &vec![b' '; MAX_ADMISSION_BODY + 1]), 413, "request entity is too large"),
        (
            Request::post(VALIDATE).body(Bytes::from_static(b"{}")).expect("a request"),
            415,
            "contentType=, expected",
        ),
    ];
    for (request, code, why) in cases {
        let answer = service.call(request).await;
        let status: Value = serde_json::from_slice(answer.body()).expect("JSON");
        assert_eq!(answer.status().as_u16(), code, "{status}");
        assert!(status["message"].as_str().is_some_and(|text| text.starts_with(why)), "{status}");
    }
    let get = service.call(Request::get(VALIDATE).body(Bytes::new()).expect("a request")).await;
    assert_eq!((get.status().as_u16(), &get.headers()["allow"]), (405, &"POST".parse().expect("a value")));
}
