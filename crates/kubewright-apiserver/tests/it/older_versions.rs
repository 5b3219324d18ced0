//! Built-in objects that are written in another version than they are stored in.

use http::Method;
use serde_json::{Value, json};

use crate::support::Api;

const V1: &str = "/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers";
const V2: &str = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers";

fn scaler() -> Value {
    let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "x"});
    json!({"metadata": {"name": "a"}, "spec": {"maxReplicas": 3, "scaleTargetRef": target}})
}

/// An autoscaler whose status was written in the older version: it tells of an average as zero, of which none is stored.
async fn with_status(api: &Api, finalizers: &[&str]) -> Value {
    let mut told = scaler();
    told["metadata"]["finalizers"] = json!(finalizers);
    api.post(V1, told.clone()).await.expect(201);
    told["status"] = json!({"currentCPUUtilizationPercentage": 5, "desiredReplicas": 1});
    api.put(&format!("{V1}/a/status"), told).await.expect(200)
}

async fn stored_average(api: &Api) -> Value {
    let mut stored = api.get(&format!("{V2}/a")).await.expect(200);
    stored["status"]["currentMetrics"][0]["resource"]["current"]["averageValue"].take()
}

#[tokio::test(start_paused = true)]
async fn what_a_round_through_an_older_version_adds_is_written() {
    let api = Api::start().await;
    // `v1` has no word for an average that is not there: once it went through there, it is zero.
    let once = with_status(&api, &[]).await;
    let put = |path: String, body: &Value| {
        let body = body.to_string();
        let api = &api;
        async move { api.send(Method::PUT, &path, &[], body).await.expect(200) }
    };
    let status = || format!("{V1}/a/status");
    let same = put(format!("{V1}/a"), &once).await;
    let twice = put(status(), &once).await;
    let version = |object: &Value| object["metadata"]["resourceVersion"].clone();
    assert_eq!(version(&once), version(&same), "a write to the object leaves its status alone");
    assert_ne!(version(&once), version(&twice));
    assert_eq!(stored_average(&api).await, "0");
    assert_eq!(version(&twice), version(&put(status(), &twice).await));
}

/// A write prepares the internal version, which has what is stored (`pkg/registry/autoscaling/horizontalpodautoscaler/strategy.go`).
#[tokio::test(start_paused = true)]
async fn a_change_of_the_spec_in_an_older_version_leaves_the_stored_status_as_it_is() {
    let api = Api::start().await;
    with_status(&api, &[]).await;
    api.patch(&format!("{V1}/a"), "merge", json!({"spec": {"maxReplicas": 5}})).await.expect(200);
    assert_eq!(api.get(&format!("{V2}/a")).await.expect(200)["spec"]["maxReplicas"], 5);
    assert_eq!(stored_average(&api).await, Value::Null);
}

#[tokio::test(start_paused = true)]
async fn a_deletion_in_an_older_version_marks_the_object_as_it_is_stored() {
    let api = Api::start().await;
    with_status(&api, &["example.com/hold"]).await;
    let marked = api.delete(&format!("{V1}/a")).await.expect(200);
    assert_eq!(marked["apiVersion"], "autoscaling/v1");
    assert!(marked["metadata"]["deletionTimestamp"].is_string());
    assert_eq!(stored_average(&api).await, Value::Null);
}

/// The policy's object is converted to the request's version, and not by way of the internal one
/// (`k8s.io/apiserver/pkg/admission/plugin/policy/mutating/dispatcher.go`). The text is that of kube-apiserver v1.36.
#[tokio::test(start_paused = true)]
async fn a_policy_that_changes_an_object_in_another_version_fails() {
    let api = Api::start().await;
    let rules = json!({"resourceRules": [{
        "apiGroups": ["autoscaling"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["horizontalpodautoscalers"]
    }]});
    let expression = "Object{metadata: Object.metadata{labels: {'a': 'b'}}}";
    let mutation =
        json!({"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}});
    let policy = json!({"metadata": {"name": "p"}, "spec": {
        "matchConstraints": rules, "reinvocationPolicy": "Never", "mutations": [mutation]
    }});
    let binding = json!({"metadata": {"name": "p"}, "spec": {"policyName": "p"}});
    let registration = "/apis/admissionregistration.k8s.io/v1";
    api.post(&format!("{registration}/mutatingadmissionpolicies"), policy).await.expect(201);
    api.post(&format!("{registration}/mutatingadmissionpolicybindings"), binding).await.expect(201);
    assert_eq!(api.post(V1, scaler()).await.expect(201)["metadata"]["labels"]["a"], "b");
    let told = api.post(V2, scaler()).await.refused(403, "Invalid");
    assert_eq!(
        told,
        "policy 'p' with binding 'p' denied request: converting (v1.HorizontalPodAutoscaler) to (v2.HorizontalPodAutoscaler): unknown conversion"
    );
}

/// What `v1` has no field for stands in annotations there, which are not stored.
#[tokio::test(start_paused = true)]
async fn taking_away_annotations_of_the_older_version_is_no_write() {
    let api = Api::start().await;
    let before = with_status(&api, &[]).await;
    let only_a_name = json!({"metadata": {"$retainKeys": ["name"]}});
    let after = api.patch(&format!("{V1}/a"), "strategic-merge", only_a_name).await.expect(200);
    assert_eq!(after["metadata"]["resourceVersion"], before["metadata"]["resourceVersion"]);
}

/// A configuration that changes nothing leaves the live object as it is (`FieldManager.Apply`), without a round through its version.
#[tokio::test(start_paused = true)]
async fn applying_what_is_there_in_the_older_version_is_no_write() {
    let api = Api::start().await;
    let before = with_status(&api, &[]).await;
    let mut config = scaler();
    config["apiVersion"] = json!("autoscaling/v1");
    config["kind"] = json!("HorizontalPodAutoscaler");
    let yaml = [("content-type", "application/apply-patch+yaml")];
    let path = format!("{V1}/a/status?fieldManager=m");
    let after = api.send(Method::PATCH, &path, &yaml, config.to_string()).await.expect(200);
    assert_eq!(after["metadata"]["resourceVersion"], before["metadata"]["resourceVersion"]);
    // What is no status is taken back only after the round.
    config["spec"]["maxReplicas"] = json!(7);
    let after = api.send(Method::PATCH, &path, &yaml, config.to_string()).await.expect(200);
    assert_ne!(after["metadata"]["resourceVersion"], before["metadata"]["resourceVersion"]);
    assert_eq!(after["spec"], before["spec"]);
}
