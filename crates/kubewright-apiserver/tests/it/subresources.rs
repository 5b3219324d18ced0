//! What is served below an object: scale, binding, ephemeral containers, logs and sessions.

mod eviction;
mod streams;

use http::Method;
use serde_json::{Value, json};

use crate::support::{Api, CERTIFICATE_REQUEST};

const PODS: &str = "/api/v1/namespaces/default/pods";
const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";
const REQUESTS: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
const BOXES: &str = "/apis/example.com/v1/namespaces/default/boxes";

async fn with_a_pod() -> Api {
    let api = Api::start().await;
    api.post("/api/v1/namespaces/default/serviceaccounts", json!({"metadata": {"name": "default"}})).await;
    let pod = json!({"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c", "image": "nginx"}]}});
    api.post(PODS, pod).await.expect(201);
    api
}

fn binding(metadata: &Value, target: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Binding", "metadata": metadata, "target": target})
}

#[tokio::test(start_paused = true)]
async fn a_route_that_there_is_not_comes_before_what_is_wanted_and_what_is_sent() {
    let api = Api::start().await;
    let headers = [("accept", "text/html"), ("content-type", "application/merge-patch+json")];
    let finalize = "/api/v1/namespaces/default/finalize";
    api.send(Method::PATCH, finalize, &headers, "{}").await.refused(405, "MethodNotAllowed");
    let unknown = [("accept", "text/html"), ("content-type", "text/plain")];
    api.send(Method::PATCH, finalize, &unknown, "{}").await.refused(405, "MethodNotAllowed");
    // Nothing warns of a version whose part is not there.
    let scale = "/api/v1/namespaces/default/endpoints/a/scale";
    let answer = api.send(Method::POST, scale, &[("content-type", "application/json")], "{}").await;
    assert_eq!(answer.headers.get("warning"), None);
    answer.refused(404, "NotFound");
}

#[tokio::test(start_paused = true)]
async fn a_binding_gives_a_pod_its_node_and_its_annotations_once() {
    let api = with_a_pod().await;
    let place = format!("{PODS}/a/binding");
    let node = json!({"kind": "Node", "name": "n"});
    let other = json!({"name": "a", "uid": "other"});
    let message = api.post(&place, binding(&other, &node)).await.refused(409, "Conflict");
    assert!(
        message.contains("Key: /registry/pods/default/a") && message.contains("UID in precondition: other"),
        "{message}"
    );
    for (target, why) in [
        (json!({}), "target.name: Required value"),
        (
            json!({"kind": "Moon", "name": "n"}),
            "target.kind: Unsupported value: \"Moon\": supported values: \"Node\", \"<empty>\"",
        ),
    ] {
        let answer = api.post(&place, binding(&json!({"name": "a"}), &target)).await.expect(500);
        assert_eq!(answer["message"], why);
    }
    let good = binding(&json!({"name": "a", "annotations": {"x": "y"}}), &node);
    api.post(&place, good.clone()).await.expect(201);
    let pod = api.get(&format!("{PODS}/a")).await.expect(200);
    assert_eq!((&pod["spec"]["nodeName"], &pod["metadata"]["annotations"]["x"]), (&json!("n"), &json!("y")));
    let message = api.post(&place, good).await.refused(409, "Conflict");
    assert_eq!(
        message,
        "Operation cannot be fulfilled on pods/binding \"a\": pod a is already assigned to node \"n\""
    );
}

#[tokio::test(start_paused = true)]
async fn a_new_pod_has_a_status_of_its_own_but_for_the_class_that_was_sent() {
    let api = with_a_pod().await;
    let mut pod =
        json!({"metadata": {"name": "b"}, "spec": {"containers": [{"name": "c", "image": "nginx"}]}});
    pod["status"] = json!({"phase": "Running", "podIP": "10.0.0.1", "qosClass": "Guaranteed"});
    let made = api.post(PODS, pod).await.expect(201);
    assert_eq!(made["status"], json!({"phase": "Pending", "qosClass": "Guaranteed"}));
}

#[tokio::test(start_paused = true)]
async fn a_resize_that_adds_containers_is_looked_at_as_a_whole() {
    let api = with_a_pod().await;
    let owner = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "", "uid": "u"});
    let wanted = |name: &str| {
        let containers = json!([{"name": name, "image": "nginx"}]);
        json!({"metadata": {"ownerReferences": [owner]}, "spec": {"containers": containers}})
    };
    let place = format!("{PODS}/a/resize");
    let refused = api.patch(&place, "strategic-merge", wanted("b")).await.refused(422, "Invalid");
    assert!(refused.contains("metadata.ownerReferences"), "{refused}");
    assert!(refused.contains("containers may not be added or removed on resize"), "{refused}");
    let same = api.patch(&place, "strategic-merge", wanted("c")).await.expect(200);
    assert_eq!(same["metadata"].get("ownerReferences"), None);
}

#[tokio::test(start_paused = true)]
async fn a_status_is_written_to_the_object_of_its_uid() {
    const FLOWS: &str = "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas";
    const CLAIMS: &str = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims";
    let api = Api::start().await;
    let request = json!({"name": "r", "exactly": {"deviceClassName": "x"}});
    let claim = json!({"metadata": {"name": "a"}, "spec": {"devices": {"requests": [request]}}});
    let flow = json!({"metadata": {"name": "a"}, "spec": {"priorityLevelConfiguration": {"name": "exempt"}}});
    api.post(CLAIMS, claim).await.expect(201);
    api.post(FLOWS, flow).await.expect(201);
    let other = json!({"metadata": {"uid": "11111111-2222-3333-4444-555555555555"}});
    let refused =
        api.patch(&format!("{CLAIMS}/a/status"), "merge", other.clone()).await.refused(422, "Invalid");
    assert!(refused.ends_with("field is immutable"), "{refused}");
    // These take over all that metadata is.
    api.patch(&format!("{FLOWS}/a/status"), "merge", other).await.expect(200);
}

#[tokio::test(start_paused = true)]
async fn ephemeral_containers_get_defaults_and_stay() {
    let api = with_a_pod().await;
    let place = format!("{PODS}/a/ephemeralcontainers");
    let add = json!({"spec": {"ephemeralContainers": [{"name": "dbg", "image": "busybox", "targetContainerName": "c"}]}});
    let pod = api.patch(&place, "strategic-merge", add).await.expect(200);
    let added = &pod["spec"]["ephemeralContainers"][0];
    assert_eq!(
        (&added["imagePullPolicy"], &added["terminationMessagePolicy"]),
        (&json!("Always"), &json!("File"))
    );
    let message = api
        .patch(&place, "merge", json!({"spec": {"ephemeralContainers": []}}))
        .await
        .refused(422, "Invalid");
    assert!(message.contains("existing ephemeral containers \"dbg\" may not be removed"), "{message}");
}

#[tokio::test(start_paused = true)]
async fn a_scale_is_a_scale_of_the_object_in_the_url() {
    let api = Api::start().await;
    let deployment = json!({
        "metadata": {"name": "a"},
        "spec": {
            "selector": {"matchLabels": {"app": "a"}},
            "template": {
                "metadata": {"labels": {"app": "a"}},
                "spec": {"containers": [{"name": "c", "image": "nginx"}]}
            }
        }
    });
    api.post(DEPLOYMENTS, deployment).await.expect(201);
    let place = format!("{DEPLOYMENTS}/a/scale");
    let foreign = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"}});
    let message = api.put(&place, foreign).await.refused(400, "BadRequest");
    assert!(message.starts_with("Deployment in version \"v1\" cannot be handled as a Scale"), "{message}");
    let scale =
        |name: &str, replicas: Value| json!({"metadata": {"name": name}, "spec": {"replicas": replicas}});
    api.put(&place, scale("b", 2.into())).await.refused(400, "BadRequest");
    api.put(&place, scale("a", "two".into())).await.refused(400, "BadRequest");
    let message =
        api.patch(&place, "merge", json!({"spec": {"replicas": "two"}})).await.refused(422, "Invalid");
    assert!(
        message
            .ends_with("cannot unmarshal string into Go struct field ScaleSpec.spec.replicas of type int32"),
        "{message}"
    );
    let mut labelled = scale("a", 2.into());
    labelled["metadata"]["labels"] = json!({"a": "*"});
    let message = api.put(&place, labelled).await.refused(422, "Invalid");
    assert!(message.starts_with("Scale.autoscaling \"a\" is invalid: metadata.labels: Invalid"), "{message}");
    let mut held = scale("a", 2.into());
    held["metadata"]["finalizers"] = json!(["mine"]);
    let message = api.put(&place, held).await.refused(422, "Invalid");
    let why = "name is neither a standard finalizer name nor is it fully qualified";
    assert!(
        message.ends_with(&format!("metadata.finalizers[0]: Invalid value: \"mine\": {why}")),
        "{message}"
    );
    let mut owned = scale("a", 2.into());
    owned["metadata"]["ownerReferences"] =
        json!([{"apiVersion": "v1", "kind": "Pod", "name": "", "uid": "u"}]);
    let message = api.put(&place, owned).await.refused(422, "Invalid");
    assert!(
        message.ends_with("metadata.ownerReferences[0].name: Required value: must not be empty"),
        "{message}"
    );
    assert_eq!(api.put(&place, scale("a", 2.into())).await.expect(200)["spec"]["replicas"], 2);
    let at = |version: &str| {
        let mut scale = scale("a", 3.into());
        scale["metadata"]["resourceVersion"] = version.into();
        api.put(&place, scale)
    };
    let answer = at("+5").await;
    let message = "strconv.ParseUint: parsing \"+5\": invalid syntax";
    assert_eq!((answer.code.as_u16(), &answer.body["message"]), (500, &json!(message)));
    at("1").await.refused(409, "Conflict");
    assert_eq!(at("0").await.expect(200)["spec"]["replicas"], 3, "none is named");
}

#[tokio::test(start_paused = true)]
async fn the_numbers_of_a_custom_scale_are_checked_where_they_stand() {
    let api = Api::start().await;
    let definition = json!({
        "metadata": {"name": "boxes.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced", "names": {"plural": "boxes", "kind": "Box"},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "subresources": {"scale": {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "spec": {"type": "object", "properties": {"size": {"type": "integer"}}}
                }}}
            }]
        }
    });
    api.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition).await.expect(201);
    let a_box = |name: &str, spec: Value| {
        json!({
            "apiVersion": "example.com/v1", "kind": "Box", "metadata": {"name": name}, "spec": spec
        })
    };
    api.post(BOXES, a_box("a", json!({"size": 1}))).await.expect(201);
    api.post(BOXES, a_box("b", json!({}))).await.expect(201);
    let words =
        "Box.example.com \"a\" is invalid: .spec.size: Invalid value: -1: should be a non-negative integer";
    let change = json!({"spec": {"replicas": -1}});
    assert_eq!(api.patch(&format!("{BOXES}/a/scale"), "merge", change).await.refused(422, "Invalid"), words);
    let change = json!({"spec": {"size": -1}});
    assert_eq!(api.patch(&format!("{BOXES}/a"), "merge", change).await.refused(422, "Invalid"), words);
    let none = json!({"metadata": {"name": "a", "resourceVersion": "0"}, "spec": {"replicas": 2}});
    let message = api.put(&format!("{BOXES}/a/scale"), none).await.refused(422, "Invalid");
    assert!(
        message.ends_with("metadata.resourceVersion: Invalid value: 0: must be specified for an update"),
        "{message}"
    );
    let message = api.get(&format!("{BOXES}/b/scale")).await.refused(500, "InternalError");
    assert_eq!(message, "Internal error occurred: the spec replicas field \".spec.size\" does not exist");
    let set =
        api.patch(&format!("{BOXES}/b/scale"), "merge", json!({"spec": {"replicas": 3}})).await.expect(200);
    assert_eq!(set["spec"]["replicas"], 3);
}

#[tokio::test(start_paused = true)]
async fn a_token_for_another_account_is_refused_before_the_account_is_looked_up() {
    let api = Api::start().await;
    let path = "/api/v1/namespaces/default/serviceaccounts/nobody/token";
    let request = |name: &str| json!({"metadata": {"name": name}, "spec": {"audiences": []}});
    let told = api.post(path, request("another")).await.refused(422, "Invalid");
    assert!(told.ends_with("must match the service account name if specified"), "{told}");
    api.post(path, request("nobody")).await.refused(404, "NotFound");
}

/// Asks for the certificate `a`.
async fn request_certificate(api: &Api) -> Value {
    let spec =
        json!({"signerName": "example.com/s", "usages": ["client auth"], "request": CERTIFICATE_REQUEST});
    api.post(REQUESTS, json!({"metadata": {"name": "a"}, "spec": spec})).await.expect(201)
}

/// Protobuf has them, though they are read as none (`GuaranteedUpdate` compares what is stored).
#[tokio::test(start_paused = true)]
async fn a_certificate_without_contents_is_a_write_and_so_is_that_it_goes() {
    let api = Api::start().await;
    let made = request_certificate(&api).await;
    let patch = async |certificate: &str| {
        let patch = json!({"status": {"certificate": certificate}});
        let written = api.patch(&format!("{REQUESTS}/a/status"), "merge", patch).await.expect(200);
        assert_eq!(written["status"], json!({}));
        written["metadata"]["resourceVersion"].clone()
    };
    let first = patch("").await;
    assert_ne!(first, made["metadata"]["resourceVersion"]);
    assert_eq!(patch("").await, first);
    let same = api.patch(&format!("{REQUESTS}/a"), "merge", json!({})).await.expect(200);
    assert_eq!(same["metadata"]["resourceVersion"], first, "a write to the request leaves its status alone");
    let other = api.patch(&format!("{REQUESTS}/a/status"), "merge", json!({})).await.expect(200);
    assert_ne!(other["metadata"]["resourceVersion"], first);
}

#[tokio::test(start_paused = true)]
async fn the_grace_period_of_an_approval_is_compared() {
    let api = Api::start().await;
    request_certificate(&api).await;
    let patch = json!({"metadata": {"deletionGracePeriodSeconds": 5}});
    let told = api.patch(&format!("{REQUESTS}/a/approval"), "merge", patch).await.refused(422, "Invalid");
    assert!(
        told.ends_with("metadata.deletionGracePeriodSeconds: Invalid value: 5: field is immutable"),
        "{told}"
    );
}

#[tokio::test(start_paused = true)]
async fn what_an_older_eviction_has_wrong_is_told_of_its_version() {
    let api = Api::start().await;
    let eviction =
        json!({"apiVersion": "policy/v1beta1", "kind": "Eviction", "metadata": {"name": "a"}, "unknown": 1});
    let told = api.post(&format!("{PODS}/a/eviction?fieldValidation=Strict"), eviction).await;
    assert!(
        told.refused(400, "BadRequest").starts_with(r#"Eviction in version "v1beta1" cannot be handled"#)
    );
}
