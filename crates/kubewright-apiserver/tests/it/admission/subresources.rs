//! What policies see of subresources, in the words of kube-apiserver v1.36.

use http::Method;
use serde_json::{Value, json};

use super::support::Cluster;

const DEFAULT: &str = "/api/v1/namespaces/default";

/// A cluster whose policy refuses all of these resources, and says what it sees.
async fn refusing(resources: &[&str]) -> Cluster {
    const SEEN: &str = "[request.kind.kind, request.resource.resource, request.subResource, request.operation, \
        request.name, object.apiVersion + '/' + object.kind, string(oldObject == null ? 'new' : oldObject.kind)].join(' ')";
    let cluster = Cluster::start().await;
    let rules =
        json!([{"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": resources}]);
    let spec = json!({
        "matchConstraints": {"resourceRules": rules},
        "validations": [{"expression": "false", "messageExpression": SEEN}]
    });
    cluster.made("validatingadmissionpolicies", &json!({"metadata": {"name": "p"}, "spec": spec})).await;
    let spec = json!({"policyName": "p", "validationActions": ["Deny"]});
    cluster
        .made("validatingadmissionpolicybindings", &json!({"metadata": {"name": "b"}, "spec": spec}))
        .await;
    cluster
}

fn denied(what: &str, seen: &str) -> (u16, Value) {
    let why = format!("ValidatingAdmissionPolicy 'p' with binding 'b' denied request: {seen}");
    (422, format!("{what} is forbidden: {why}").into())
}

async fn answer_to(cluster: &Cluster, method: Method, path: &str, body: &Value) -> (u16, Value) {
    let (code, answer, _) = cluster.send(method, path, body).await;
    (code, answer["message"].clone())
}

#[tokio::test(start_paused = true)]
async fn a_write_of_a_scale_is_admitted_as_one() {
    let cluster = refusing(&["*/scale"]).await;
    let labels = json!({"a": "b"});
    let template =
        json!({"metadata": {"labels": labels}, "spec": {"containers": [{"name": "a", "image": "i"}]}});
    let deployment = json!({
        "metadata": {"name": "a"},
        "spec": {"replicas": 0, "selector": {"matchLabels": labels}, "template": template}
    });
    let deployments = "/apis/apps/v1/namespaces/default/deployments";
    assert_eq!(cluster.send(Method::POST, deployments, &deployment).await.0, 201);
    let scale = format!("{deployments}/a/scale");
    let seen = "Scale deployments scale UPDATE a autoscaling/v1/Scale Scale";
    let patch = json!({"spec": {"replicas": 2}});
    let replacement = json!({"metadata": {"name": "a"}, "spec": {"replicas": 2}});
    for (method, body) in [(Method::PATCH, patch), (Method::PUT, replacement)] {
        assert_eq!(answer_to(&cluster, method, &scale, &body).await, denied("deployments.apps \"a\"", seen));
    }
    let (code, kept, _) = cluster.send(Method::GET, &scale, &Value::Null).await;
    assert_eq!((code, &kept["spec"]), (200, &json!({})));
}

#[tokio::test(start_paused = true)]
async fn a_binding_below_a_pod_and_one_beside_it_are_of_two_resources() {
    let cluster = refusing(&["pods/binding", "bindings"]).await;
    let binding = json!({"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n"}});
    let below = format!("{DEFAULT}/pods/p/binding");
    let seen = "Binding pods binding CREATE p v1/Binding new";
    assert_eq!(answer_to(&cluster, Method::POST, &below, &binding).await, denied("pods \"p\"", seen));
    let beside = format!("{DEFAULT}/bindings");
    let (code, message) = answer_to(&cluster, Method::POST, &beside, &binding).await;
    assert_eq!(code, 422);
    assert!(message.as_str().unwrap().starts_with("bindings \"p\" is forbidden: "), "{message}");
}

#[tokio::test(start_paused = true)]
async fn a_connection_is_admitted_before_its_pod_is_looked_for() {
    let cluster = refusing(&["pods/exec", "services/*"]).await;
    let exec = format!("{DEFAULT}/pods/none/exec?command=ls");
    let seen = "PodExecOptions pods exec CONNECT none v1/PodExecOptions new";
    assert_eq!(answer_to(&cluster, Method::POST, &exec, &Value::Null).await, denied("pods \"none\"", seen));
    let proxy = format!("{DEFAULT}/services/s/proxy/a/");
    let seen = "ServiceProxyOptions services proxy CONNECT s v1/ServiceProxyOptions new";
    assert_eq!(answer_to(&cluster, Method::GET, &proxy, &Value::Null).await, denied("services \"s\"", seen));
    assert_eq!(
        answer_to(&cluster, Method::GET, &format!("{DEFAULT}/pods/none/log"), &Value::Null).await.0,
        404
    );
}
