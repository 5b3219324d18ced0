use futures::future::join_all;
use serde_json::{Value, json};

use super::{NAMESPACE, PODS, QUOTAS, pod, started};
use crate::support::Api;

/// A quota that has been counted.
async fn limit(api: &Api, hard: Value, used: Value) {
    let quota = json!({"metadata": {"name": "q"}, "spec": {"hard": hard}});
    api.post(QUOTAS, quota).await.expect(201);
    let status = json!({"status": {"hard": hard, "used": used}});
    api.patch(&format!("{QUOTAS}/q/status"), "merge", status).await.expect(200);
}

async fn used(api: &Api) -> Value {
    api.get(&format!("{QUOTAS}/q")).await.expect(200)["status"]["used"].clone()
}

#[tokio::test(start_paused = true)]
async fn creations_at_the_same_time_share_what_is_left() {
    let api = started().await;
    limit(&api, json!({"count/configmaps": "3"}), json!({"count/configmaps": "0"})).await;
    let maps = format!("{NAMESPACE}/configmaps");
    let create = |number: usize| api.post(&maps, json!({"metadata": {"name": format!("m{number}")}}));
    let answers = join_all((0..10).map(create)).await;
    let created = answers.iter().filter(|answer| answer.code == 201).count();
    let refused = answers.iter().filter(|answer| answer.code == 403).count();
    assert_eq!((created, refused), (3, 7));
    assert_eq!(used(&api).await, json!({"count/configmaps": "3"}));
}

#[tokio::test(start_paused = true)]
async fn what_is_used_is_owned_by_the_server_that_counts_it() {
    let api = started().await;
    limit(&api, json!({"count/configmaps": "3"}), json!({"count/configmaps": "0"})).await;
    api.post(&format!("{NAMESPACE}/configmaps"), json!({"metadata": {"name": "m"}})).await.expect(201);
    let quota = api.get(&format!("{QUOTAS}/q")).await.expect(200);
    let owners = quota["metadata"]["managedFields"].as_array().unwrap();
    let owner = owners.iter().find(|owner| owner["manager"] == "kube-apiserver").unwrap();
    assert_eq!((&owner["operation"], &owner["subresource"]), (&json!("Update"), &json!("status")));
    assert_eq!(owner["fieldsV1"], json!({"f:status": {"f:used": {"f:count/configmaps": {}}}}));
}

#[tokio::test(start_paused = true)]
async fn a_pod_says_what_is_limited_and_is_charged_for_it() {
    let api = started().await;
    let hard = json!({"requests.cpu": "500m", "limits.memory": "1Gi", "pods": "2"});
    limit(&api, hard, json!({"requests.cpu": "0", "limits.memory": "0", "pods": "0"})).await;
    let refused = |resources: Value| api.post(PODS, pod("a", &resources));
    assert_eq!(
        refused(json!({"requests": {"cpu": "100m"}})).await.refused(403, "Forbidden"),
        "pods \"a\" is forbidden: failed quota: q: must specify limits.memory for: c"
    );
    let small = json!({"requests": {"cpu": "400m"}, "limits": {"memory": "512Mi"}});
    api.post(&format!("{PODS}?dryRun=All"), pod("a", &small)).await.expect(201);
    assert_eq!(used(&api).await["pods"], "0");
    api.post(PODS, pod("a", &small)).await.expect(201);
    assert_eq!(used(&api).await, json!({"requests.cpu": "400m", "limits.memory": "512Mi", "pods": "1"}));
    let large = json!({"requests": {"cpu": "200m"}, "limits": {"memory": "600Mi"}});
    assert_eq!(
        api.post(PODS, pod("b", &large)).await.refused(403, "Forbidden"),
        "pods \"b\" is forbidden: exceeded quota: q, requested: limits.memory=600Mi,requests.cpu=200m, used: limits.memory=512Mi,requests.cpu=400m, limited: limits.memory=1Gi,requests.cpu=500m"
    );
}

#[tokio::test(start_paused = true)]
async fn a_service_is_charged_for_what_it_becomes() {
    let api = started().await;
    let hard = json!({"services": "1", "services.nodeports": "1"});
    limit(&api, hard, json!({"services": "0", "services.nodeports": "0"})).await;
    let services = format!("{NAMESPACE}/services");
    let service = json!({"metadata": {"name": "s"}, "spec": {"ports": [
        {"port": 80, "name": "a"}, {"port": 81, "name": "b"}]}});
    api.post(&services, service).await.expect(201);
    let place = format!("{services}/s");
    assert_eq!(
        api.patch(&place, "merge", json!({"spec": {"type": "NodePort"}})).await.refused(403, "Forbidden"),
        "services \"s\" is forbidden: exceeded quota: q, requested: services.nodeports=2, used: services.nodeports=0, limited: services.nodeports=1"
    );
    let one = json!({"spec": {"type": "NodePort", "ports": [{"port": 80}]}});
    api.patch(&place, "merge", one).await.expect(200);
    assert_eq!(used(&api).await, json!({"services": "1", "services.nodeports": "1"}));
}

#[tokio::test(start_paused = true)]
async fn before_it_is_counted_a_quota_refuses_nothing_and_half_counted_it_refuses() {
    let api = started().await;
    let quota = json!({"metadata": {"name": "q"}, "spec": {"hard": {"secrets": "0"}}});
    api.post(QUOTAS, quota).await.expect(201);
    let secrets = format!("{NAMESPACE}/secrets");
    api.post(&secrets, json!({"metadata": {"name": "a"}})).await.expect(201);
    let status = json!({"status": {"hard": {"secrets": "1"}}});
    api.patch(&format!("{QUOTAS}/q/status"), "merge", status).await.expect(200);
    assert_eq!(
        api.post(&secrets, json!({"metadata": {"name": "b"}})).await.refused(403, "Forbidden"),
        "secrets \"b\" is forbidden: status unknown for quota: q, resources: secrets"
    );
}

#[tokio::test(start_paused = true)]
async fn scopes_say_which_pods_are_meant() {
    let api = started().await;
    let status = json!({"hard": {"pods": "0"}, "used": {"pods": "0"}});
    for (name, scopes) in [("effort", json!(["BestEffort"])), ("time", json!(["Terminating"]))] {
        let quota = json!({"metadata": {"name": name}, "spec": {"hard": {"pods": "0"}, "scopes": scopes}});
        api.post(QUOTAS, quota).await.expect(201);
        let place = format!("{QUOTAS}/{name}/status");
        api.patch(&place, "merge", json!({"status": status})).await.expect(200);
    }
    let says = |answer: String| answer.split(": ").nth(2).map(str::to_owned);
    let refusal = api.post(PODS, pod("a", &json!({}))).await.refused(403, "Forbidden");
    assert_eq!(says(refusal).as_deref(), Some("effort, requested"));
    let asks = json!({"requests": {"cpu": "1"}});
    let mut timed = pod("b", &asks);
    timed["spec"]["activeDeadlineSeconds"] = json!(5);
    let refusal = api.post(PODS, timed).await.refused(403, "Forbidden");
    assert_eq!(says(refusal).as_deref(), Some("time, requested"));
    api.post(PODS, pod("c", &asks)).await.expect(201);
    let later = json!({"spec": {"activeDeadlineSeconds": 5}});
    let refusal = api.patch(&format!("{PODS}/c"), "merge", later).await.refused(403, "Forbidden");
    assert_eq!(says(refusal).as_deref(), Some("time, requested"));
}
