//! What is counted and held for the API: quotas, disruption budgets, aggregated roles, protected claims.

use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolumeClaim, Pod, ResourceQuota};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::rbac::v1::ClusterRole;
use kube::Api;
use kube::api::{DeleteParams, EvictParams, PostParams};
use serde_json::{Value, json};

use crate::support::{World, deployment};

fn object<K: serde::de::DeserializeOwned>(value: Value) -> K {
    kubewright_objects::from_value(value).expect("an object")
}

async fn used(world: &World) -> Value {
    let quota = world.api::<ResourceQuota>().get("q").await.expect("the quota");
    json!(quota.status.expect("a status").used)
}

#[tokio::test(start_paused = true)]
async fn a_quota_is_counted_when_it_comes_and_when_something_goes() {
    let world = World::start().await;
    world.create::<Deployment>(deployment(2)).await;
    world.settle().await;
    let hard = json!({"pods": "3", "count/configmaps": "5", "count/deployments.apps": "1", "count/unknown.example.com": "1"});
    world.create::<ResourceQuota>(json!({"metadata": {"name": "q"}, "spec": {"hard": hard}})).await;
    world.settle().await;
    // The certificates of the cluster are a ConfigMap, too. What nobody serves is not counted.
    assert_eq!(
        used(&world).await,
        json!({"pods": "2", "count/configmaps": "1", "count/deployments.apps": "1"})
    );
    world.create::<ConfigMap>(json!({"metadata": {"name": "m"}})).await;
    assert_eq!(used(&world).await["count/configmaps"], "2");
    world.merge::<Deployment>("web", json!({"spec": {"replicas": 5}})).await;
    world.settle().await;
    assert_eq!((world.all::<Pod>().await.len(), used(&world).await["pods"].clone()), (3, json!("3")));
    world.api::<ConfigMap>().delete("m", &DeleteParams::default()).await.expect("deleted");
    world.merge::<Deployment>("web", json!({"spec": {"replicas": 0}})).await;
    world.settle().await;
    assert_eq!(
        used(&world).await,
        json!({"pods": "0", "count/configmaps": "1", "count/deployments.apps": "1"})
    );
}

#[tokio::test(start_paused = true)]
async fn a_budget_learns_of_a_pod_that_it_selects_and_not_of_one_that_it_selected() {
    let world = World::start().await;
    let spec = json!({"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}});
    world.create::<PodDisruptionBudget>(json!({"metadata": {"name": "b"}, "spec": spec})).await;
    let container = json!([{"name": "c", "image": "registry.local/web:1"}]);
    let pod = json!({"metadata": {"name": "p", "labels": {"app": "web"}}, "spec": {"containers": container}});
    world.create::<Pod>(pod).await;
    world.settle().await;
    let expected = async || {
        let budget = world.api::<PodDisruptionBudget>().get("b").await.expect("the budget");
        budget.status.expect("a status").expected_pods.unwrap_or_default()
    };
    assert_eq!(expected().await, 1);
    world.merge::<Pod>("p", json!({"metadata": {"labels": {"app": "other"}}})).await;
    world.settle().await;
    assert_eq!(expected().await, 1);
    world.merge::<PodDisruptionBudget>("b", json!({"metadata": {"labels": {"seen": "again"}}})).await;
    world.settle().await;
    assert_eq!(expected().await, 0);
}

#[tokio::test(start_paused = true)]
async fn a_budget_lets_pods_go_one_after_the_other() {
    let world = World::start().await;
    world.create::<Deployment>(deployment(3)).await;
    let spec = json!({"maxUnavailable": 1, "selector": {"matchLabels": {"app": "web"}}});
    world.create::<PodDisruptionBudget>(json!({"metadata": {"name": "b"}, "spec": spec})).await;
    world.settle().await;
    let status = || async {
        let budget = world.api::<PodDisruptionBudget>().get("b").await.expect("the budget");
        json!(budget.status)
    };
    let before = status().await;
    assert_eq!(
        (&before["expectedPods"], &before["desiredHealthy"], &before["disruptionsAllowed"]),
        (&json!(3), &json!(2), &json!(1))
    );
    let names = world.names::<Pod>().await;
    let pods = world.api::<Pod>();
    pods.evict(&names[0], &EvictParams::default()).await.expect("evicted");
    let refused = pods.evict(&names[1], &EvictParams::default()).await.expect_err("one at a time");
    assert!(refused.to_string().contains("disruption budget"), "{refused}");
    world.settle().await;
    let after = status().await;
    assert_eq!((&after["currentHealthy"], &after["disruptionsAllowed"]), (&json!(3), &json!(1)));
    assert_eq!(after["disruptedPods"], Value::Null);
}

#[tokio::test(start_paused = true)]
async fn an_eviction_that_does_not_happen_is_taken_back() {
    let world = World::start().await;
    world.create::<Deployment>(deployment(1)).await;
    let spec = json!({"minAvailable": 0, "selector": {"matchLabels": {"app": "web"}}});
    world.create::<PodDisruptionBudget>(json!({"metadata": {"name": "b"}, "spec": spec})).await;
    world.settle().await;
    let name = world.names::<Pod>().await.remove(0);
    let since = json!({"conditions": [{"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}]});
    let mut status = json!(world.api::<Pod>().get(&name).await.expect("the pod").status);
    let ready = status["conditions"].as_array().cloned().unwrap_or_default();
    let now = world.cluster.world().clock.now().to_string();
    let mut target = since["conditions"][0].clone();
    target["lastTransitionTime"] = now.into();
    status["conditions"] = ready.into_iter().chain([target]).collect();
    world.merge_status::<Pod>(&name, status).await;
    let says = || async {
        let pod = world.api::<Pod>().get(&name).await.expect("the pod");
        let conditions = pod.status.and_then(|status| status.conditions).unwrap_or_default();
        let target = conditions.into_iter().find(|condition| condition.type_ == "DisruptionTarget");
        target.map(|condition| condition.status)
    };
    tokio::time::sleep(Duration::from_secs(100)).await;
    assert_eq!(says().await.as_deref(), Some("True"));
    tokio::time::sleep(Duration::from_secs(30)).await;
    world.settle().await;
    assert_eq!(says().await.as_deref(), Some("False"));
}

#[tokio::test(start_paused = true)]
async fn a_budget_of_pods_whose_controller_has_no_scale_says_so() {
    let world = World::start().await;
    let template = json!({"spec": {"schedulerName": "nobody", "restartPolicy": "Never", "containers": [{"name": "c", "image": "i:1"}]}});
    world.create::<Job>(json!({"metadata": {"name": "work"}, "spec": {"template": template}})).await;
    let spec = json!({"maxUnavailable": 1, "selector": {}});
    world.create::<PodDisruptionBudget>(json!({"metadata": {"name": "b"}, "spec": spec})).await;
    world.settle().await;
    let budget = world.api::<PodDisruptionBudget>().get("b").await.expect("the budget");
    let conditions = budget.status.and_then(|status| status.conditions).unwrap_or_default();
    assert_eq!(conditions[0].message, "jobs.batch does not implement the scale subresource");
}

#[tokio::test(start_paused = true)]
async fn a_role_made_of_others_follows_them() {
    let world = World::start().await;
    let roles = Api::<ClusterRole>::all(world.client.clone());
    let rule = |verb: &str| json!([{"verbs": [verb], "apiGroups": [""], "resources": ["configmaps"]}]);
    let part = |name: &str, verb: &str| {
        object::<ClusterRole>(
            json!({"metadata": {"name": name, "labels": {"part": "yes"}}, "rules": rule(verb)}),
        )
    };
    let whole = json!({"metadata": {"name": "whole"}, "rules": [],
        "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"part": "yes"}}]}});
    roles.create(&PostParams::default(), &object(whole)).await.expect("created");
    for part in [part("b", "list"), part("a", "get")] {
        roles.create(&PostParams::default(), &part).await.expect("created");
    }
    world.settle().await;
    let verbs = || async {
        let rules = roles.get("whole").await.expect("the role").rules.unwrap_or_default();
        rules.into_iter().flat_map(|rule| rule.verbs).collect::<Vec<_>>()
    };
    assert_eq!(verbs().await, ["get", "list"]);
    roles.delete("a", &DeleteParams::default()).await.expect("deleted");
    world.settle().await;
    assert_eq!(verbs().await, ["list"]);
}

#[tokio::test(start_paused = true)]
async fn a_role_made_of_no_others_keeps_the_rules_that_it_was_given() {
    let world = World::start().await;
    let roles = Api::<ClusterRole>::all(world.client.clone());
    let rules = json!([{"verbs": ["watch"], "apiGroups": [""], "resources": ["configmaps"]}]);
    let whole = json!({"metadata": {"name": "whole"}, "rules": rules,
        "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"part": "yes"}}]}});
    roles.create(&PostParams::default(), &object(whole)).await.expect("created");
    world.settle().await;
    assert_eq!(json!(roles.get("whole").await.expect("the role").rules), rules);
}

#[tokio::test(start_paused = true)]
async fn a_claim_goes_when_no_pod_on_a_node_uses_it() {
    let world = World::start().await;
    let claim = json!({"metadata": {"name": "data"}, "spec": {"storageClassName": "none",
        "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}});
    world.create::<PersistentVolumeClaim>(claim).await;
    let pod = json!({"metadata": {"name": "p"}, "spec": {"nodeName": "node-0", "containers": [{"name": "c", "image": "i:1"}],
        "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]}});
    world.create::<Pod>(pod).await;
    world.settle().await;
    world.api::<PersistentVolumeClaim>().delete("data", &DeleteParams::default()).await.expect("deleted");
    world.settle().await;
    assert!(world.is_there::<PersistentVolumeClaim>("data").await);
    world.api::<Pod>().delete("p", &DeleteParams::default()).await.expect("deleted");
    world.settle().await;
    assert!(!world.is_there::<PersistentVolumeClaim>("data").await);
}
