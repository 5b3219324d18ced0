//! Evictions: what a disruption budget allows.

use serde_json::{Value, json};

use super::{PODS, with_a_pod};
use crate::support::Api;

const BUDGETS: &str = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";

fn eviction(name: &str) -> Value {
    json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}})
}

/// A pod that runs and is ready, or not.
async fn with_a_running_pod(ready: &str) -> Api {
    let api = with_a_pod().await;
    let status = json!({"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": ready}]}});
    api.patch(&format!("{PODS}/a/status"), "strategic-merge", status).await.expect(200);
    api
}

/// A budget for all pods that its controller has counted so.
async fn guard(api: &Api, name: &str, status: Value) {
    let budget = json!({"metadata": {"name": name}, "spec": {"minAvailable": 1, "selector": {}}});
    api.post(BUDGETS, budget).await.expect(201);
    let status = json!({"status": status});
    api.patch(&format!("{BUDGETS}/{name}/status"), "merge", status).await.expect(200);
}

#[tokio::test(start_paused = true)]
async fn a_budget_without_disruptions_left_refuses_and_says_why() {
    let api = with_a_running_pod("True").await;
    let place = format!("{PODS}/a/eviction");
    guard(&api, "b", json!({"observedGeneration": 1, "currentHealthy": 1, "desiredHealthy": 1})).await;
    let answer = api.post(&place, eviction("a")).await.expect(429);
    assert_eq!(
        (&answer["message"], &answer["details"]),
        (
            &json!("Cannot evict pod as it would violate the pod's disruption budget."),
            &json!({"causes": [{"reason": "DisruptionBudget",
                "message": "The disruption budget b needs 1 healthy pods and has 1 currently"}]})
        )
    );
    api.patch(&format!("{BUDGETS}/b"), "merge", json!({"spec": {"minAvailable": 0}})).await.expect(200);
    let answer = api.post(&place, eviction("a")).await;
    assert_eq!(answer.headers["retry-after"], "10");
    assert_eq!(
        answer.expect(429)["details"]["causes"][0]["message"],
        "The disruption budget b is still being processed by the server."
    );
    api.get(&format!("{PODS}/a")).await.expect(200);
}

#[tokio::test(start_paused = true)]
async fn an_eviction_takes_a_disruption_from_its_budget() {
    let api = with_a_running_pod("True").await;
    let place = format!("{PODS}/a/eviction");
    guard(&api, "b", json!({"observedGeneration": 1, "disruptionsAllowed": 1, "currentHealthy": 1})).await;
    api.post(&format!("{place}?dryRun=All"), eviction("a")).await.expect(201);
    let status = |budget: &Value, field: &str| budget["status"][field].clone();
    assert_eq!(status(&api.get(&format!("{BUDGETS}/b")).await.body, "disruptionsAllowed"), 1);
    api.post(&place, eviction("b")).await.refused(400, "BadRequest");
    let mut otherwise = eviction("a");
    otherwise["deleteOptions"] = json!({"dryRun": ["x"]});
    let answer = api.post(&format!("{place}?dryRun=All"), otherwise).await.expect(500);
    assert_eq!(answer["message"], "Non-matching dry-run options in request and content: [All] and [x]");
    let mut other = eviction("a");
    other["deleteOptions"] = json!({"preconditions": {"uid": "x"}});
    assert!(api.post(&place, other).await.refused(409, "Conflict").contains("UID in the precondition (x)"));
}

#[tokio::test(start_paused = true)]
async fn an_evicted_pod_is_deleted_and_noted() {
    let api = with_a_running_pod("True").await;
    let held = json!({"metadata": {"finalizers": ["example.com/hold"]}});
    api.patch(&format!("{PODS}/a"), "merge", held).await.expect(200);
    guard(&api, "b", json!({"observedGeneration": 1, "disruptionsAllowed": 1, "currentHealthy": 1})).await;
    api.post(&format!("{PODS}/a/eviction"), eviction("a")).await.expect(201);
    let pod = api.get(&format!("{PODS}/a")).await.expect(200);
    assert!(pod["metadata"]["deletionTimestamp"].is_string());
    assert_eq!(pod["status"]["conditions"][1]["reason"], "EvictionByEvictionAPI");
    let budget = api.get(&format!("{BUDGETS}/b")).await.expect(200);
    assert_eq!(budget["status"]["disruptionsAllowed"], 0);
    assert!(budget["status"]["disruptedPods"]["a"].is_string());
    assert_eq!(budget["status"]["conditions"][0]["reason"], "InsufficientPods");
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_is_not_ready_goes_where_enough_others_are() {
    let api = with_a_running_pod("False").await;
    let place = format!("{PODS}/a/eviction");
    guard(&api, "b", json!({"observedGeneration": 1, "currentHealthy": 0, "desiredHealthy": 1})).await;
    api.post(&place, eviction("a")).await.expect(429);
    let enough = json!({"status": {"currentHealthy": 1}});
    api.patch(&format!("{BUDGETS}/b/status"), "merge", enough).await.expect(200);
    api.post(&place, eviction("a")).await.expect(201);
    api.get(&format!("{PODS}/a")).await.expect(404);
}

#[tokio::test(start_paused = true)]
async fn two_budgets_are_one_too_many() {
    let api = with_a_running_pod("True").await;
    for name in ["b", "c"] {
        guard(&api, name, json!({"observedGeneration": 1, "disruptionsAllowed": 1})).await;
    }
    let answer = api.post(&format!("{PODS}/a/eviction"), eviction("a")).await.expect(500);
    assert_eq!(
        answer["message"],
        "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
    );
}

#[tokio::test(start_paused = true)]
async fn options_in_an_eviction_may_say_any_type() {
    let api = with_a_running_pod("True").await;
    let mut typed = eviction("a");
    typed["deleteOptions"] = json!({"apiVersion": "v7", "kind": "Other"});
    api.post(&format!("{PODS}/a/eviction"), typed).await.expect(201);
}

/// The budget is asked and the pod marked before anybody looks at the options (`addConditionAndDeletePod`).
#[tokio::test(start_paused = true)]
async fn bad_options_of_an_eviction_are_found_when_the_pod_is_marked_already() {
    let api = with_a_running_pod("True").await;
    let place = format!("{PODS}/a/eviction");
    let mut bad = eviction("a");
    bad["deleteOptions"] = json!({"propagationPolicy": "Bad"});
    guard(&api, "b", json!({"observedGeneration": 1, "currentHealthy": 1, "desiredHealthy": 1})).await;
    api.post(&place, bad.clone()).await.expect(429);
    let allowed = json!({"status": {"disruptionsAllowed": 1}});
    api.patch(&format!("{BUDGETS}/b/status"), "merge", allowed).await.expect(200);
    api.post(&format!("{place}?dryRun=All"), bad.clone()).await.refused(422, "Invalid");
    let pod = api.get(&format!("{PODS}/a")).await.expect(200);
    assert_eq!(pod["status"]["conditions"].as_array().map(Vec::len), Some(1), "{pod}");
    assert!(api.post(&place, bad.clone()).await.refused(422, "Invalid").contains("propagationPolicy"));
    let pod = api.get(&format!("{PODS}/a")).await.expect(200);
    assert_eq!(pod["status"]["conditions"][1]["reason"], "EvictionByEvictionAPI");
    assert!(pod["metadata"]["deletionTimestamp"].is_null());
    let budget = api.get(&format!("{BUDGETS}/b")).await.expect(200);
    assert_eq!(budget["status"]["disruptionsAllowed"], 0);
}
