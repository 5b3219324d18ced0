//! Jobs, and what cleans up after them.

use std::time::Duration;

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, PropagationPolicy};
use serde_json::{Value, json};

use crate::support::{World, phase};

const INDEX: &str = "batch.kubernetes.io/job-completion-index";

fn job(spec: Value) -> Value {
    let mut job = json!({"metadata": {"name": "work"}, "spec": {
        "template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "work:1"}]}}}});
    let Value::Object(members) = spec else { panic!("members of a specification") };
    job["spec"].as_object_mut().expect("a specification").extend(members);
    job
}

/// A Job whose pods nobody runs: the test is scheduler and kubelet.
fn by_hand(spec: Value) -> Value {
    let mut job = job(spec);
    job["spec"]["template"]["spec"]["schedulerName"] = json!("nobody");
    job
}

async fn status(world: &World) -> Value {
    json!(world.api::<Job>().get("work").await.expect("the Job").status)
}

fn conditions(status: &Value) -> Vec<(&str, &str, &str)> {
    let all = status["conditions"].as_array().map(Vec::as_slice).unwrap_or_default();
    all.iter()
        .map(|has| {
            let text = |key: &str| has[key].as_str().unwrap_or_default();
            (text("type"), text("status"), text("reason"))
        })
        .collect()
}

async fn end(world: &World, pod: &str, phase: &str, code: i32) {
    let now = world.cluster.world().clock.now().to_string();
    let terminated = json!({"exitCode": code, "finishedAt": now});
    let container = json!({"name": "c", "image": "work:1", "imageID": "", "ready": false, "restartCount": 0,
        "state": {"terminated": terminated}});
    world.merge_status::<Pod>(pod, json!({"phase": phase, "containerStatuses": [container]})).await;
    world.settle().await;
}

/// The active pods, of an Indexed Job by index.
async fn active(world: &World) -> Vec<String> {
    let mut pods = world.all::<Pod>().await;
    pods.retain(|pod| phase(pod) == "Pending" && pod.metadata.deletion_timestamp.is_none());
    pods.sort_by_key(|pod| pod.metadata.annotations.as_ref().and_then(|has| has.get(INDEX)).cloned());
    pods.into_iter().filter_map(|pod| pod.metadata.name).collect()
}

async fn event_reasons(world: &World) -> Vec<String> {
    let mut reasons: Vec<_> = world.events("Job").await.into_iter().map(|(reason, _)| reason).collect();
    reasons.sort();
    reasons.dedup();
    reasons
}

#[tokio::test(start_paused = true)]
async fn a_job_completes_on_the_simulated_node() {
    let world = World::start().await;
    world.create::<Job>(job(json!({"completions": 5, "parallelism": 2}))).await;
    world.settle().await;
    let mut status = status(&world).await;
    assert_eq!(
        conditions(&status),
        [("SuccessCriteriaMet", "True", "CompletionsReached"), ("Complete", "True", "CompletionsReached")]
    );
    assert!(status["startTime"].is_string() && status["completionTime"].is_string());
    for key in ["conditions", "startTime", "completionTime"] {
        status.as_object_mut().expect("an object").remove(key);
    }
    assert_eq!(status, json!({"succeeded": 5, "ready": 0, "terminating": 0, "uncountedTerminatedPods": {}}));
    assert_eq!(event_reasons(&world).await, ["Completed", "SuccessfulCreate"]);
    assert!(world.all::<Pod>().await.iter().all(|pod| pod.metadata.finalizers.is_none()));
}

#[tokio::test(start_paused = true)]
async fn failed_pods_are_replaced_after_a_while_up_to_the_limit() {
    let world = World::start().await;
    world.create::<Job>(by_hand(json!({"backoffLimit": 2}))).await;
    world.settle().await;
    for wait in [10, 20] {
        let pod = active(&world).await.remove(0);
        end(&world, &pod, "Failed", 1).await;
        assert_eq!(active(&world).await, Vec::<String>::new());
        tokio::time::sleep(Duration::from_secs(wait - 4)).await;
        assert_eq!(active(&world).await, Vec::<String>::new());
        tokio::time::sleep(Duration::from_secs(6)).await;
    }
    let pod = active(&world).await.remove(0);
    end(&world, &pod, "Failed", 1).await;
    let status = status(&world).await;
    assert_eq!(
        conditions(&status),
        [("FailureTarget", "True", "BackoffLimitExceeded"), ("Failed", "True", "BackoffLimitExceeded")]
    );
    assert_eq!((&status["failed"], &status["active"]), (&json!(3), &Value::Null));
    assert_eq!(event_reasons(&world).await, ["BackoffLimitExceeded", "SuccessfulCreate"]);
}

#[tokio::test(start_paused = true)]
async fn each_index_succeeds_once_and_may_fail_by_itself() {
    let world = World::start().await;
    let spec =
        json!({"completionMode": "Indexed", "completions": 3, "parallelism": 3, "backoffLimitPerIndex": 1});
    world.create::<Job>(by_hand(spec)).await;
    world.settle().await;
    let pods = active(&world).await;
    assert!(pods[0].starts_with("work-0-") && pods[2].starts_with("work-2-"), "{pods:?}");
    end(&world, &pods[2], "Succeeded", 0).await;
    end(&world, &pods[1], "Failed", 1).await;
    tokio::time::sleep(Duration::from_secs(15)).await;
    let again = active(&world).await;
    assert!(again.len() == 2 && again[1].starts_with("work-1-"), "{again:?}");
    let second = world.api::<Pod>().get(&again[1]).await.expect("the pod");
    let annotations = second.metadata.annotations.expect("annotations");
    assert_eq!(annotations["batch.kubernetes.io/job-index-failure-count"], "1");
    end(&world, &again[1], "Failed", 1).await;
    end(&world, &again[0], "Succeeded", 0).await;
    let status = status(&world).await;
    assert_eq!((&status["completedIndexes"], &status["failedIndexes"]), (&json!("0,2"), &json!("1")));
    assert_eq!((&status["succeeded"], &status["failed"]), (&json!(2), &json!(2)));
    assert_eq!(conditions(&status)[1], ("Failed", "True", "FailedIndexes"));
}

#[tokio::test(start_paused = true)]
async fn an_indexed_job_grows_and_shrinks_with_its_completions() {
    let world = World::start().await;
    world
        .create::<Job>(by_hand(json!({"completionMode": "Indexed", "completions": 2, "parallelism": 2})))
        .await;
    world.settle().await;
    for size in [4, 1, 3] {
        world.merge::<Job>("work", json!({"spec": {"completions": size, "parallelism": size}})).await;
        world.settle().await;
        let pods = active(&world).await;
        assert_eq!(pods.len(), size);
        assert!(pods.iter().enumerate().all(|(at, pod)| pod.starts_with(&format!("work-{at}-"))), "{pods:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_suspended_job_loses_its_pods_and_starts_anew() {
    let world = World::start().await;
    world
        .create::<Job>(by_hand(json!({"completions": 2, "parallelism": 2, "activeDeadlineSeconds": 100})))
        .await;
    world.settle().await;
    world.merge::<Job>("work", json!({"spec": {"suspend": true}})).await;
    world.settle().await;
    let suspended = status(&world).await;
    assert_eq!(conditions(&suspended), [("Suspended", "True", "JobSuspended")]);
    assert_eq!((&suspended["startTime"], &suspended["failed"]), (&Value::Null, &Value::Null));
    assert_eq!(world.all::<Pod>().await.len(), 0);
    tokio::time::sleep(Duration::from_secs(200)).await;
    world.merge::<Job>("work", json!({"spec": {"suspend": false}})).await;
    tokio::time::sleep(Duration::from_secs(90)).await;
    assert_eq!(conditions(&status(&world).await), [("Suspended", "False", "JobResumed")]);
    assert_eq!(active(&world).await.len(), 2);
    tokio::time::sleep(Duration::from_secs(20)).await;
    let over = status(&world).await;
    assert!(conditions(&over).contains(&("Failed", "True", "DeadlineExceeded")), "{over}");
    assert_eq!(
        event_reasons(&world).await,
        ["DeadlineExceeded", "Resumed", "SuccessfulCreate", "SuccessfulDelete", "Suspended"]
    );
}

#[tokio::test(start_paused = true)]
async fn the_success_of_one_index_may_be_enough() {
    let world = World::start().await;
    let spec = json!({"completionMode": "Indexed", "completions": 3, "parallelism": 3,
        "successPolicy": {"rules": [{"succeededIndexes": "1"}]}});
    world.create::<Job>(by_hand(spec)).await;
    world.settle().await;
    let leader = active(&world).await.remove(1);
    end(&world, &leader, "Succeeded", 0).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    let status = status(&world).await;
    assert_eq!(
        conditions(&status),
        [("SuccessCriteriaMet", "True", "SuccessPolicy"), ("Complete", "True", "SuccessPolicy")]
    );
    assert_eq!((&status["succeeded"], &status["failed"]), (&json!(1), &Value::Null));
    assert_eq!(world.names::<Pod>().await, [leader]);
}

#[tokio::test(start_paused = true)]
async fn what_succeeds_within_a_second_of_the_policy_being_met_counts() {
    let world = World::start().await;
    let spec = json!({"completionMode": "Indexed", "completions": 3, "parallelism": 3,
        "successPolicy": {"rules": [{"succeededCount": 1}]}});
    world.create::<Job>(by_hand(spec)).await;
    world.settle().await;
    for pod in active(&world).await.iter().take(2) {
        world.merge_status::<Pod>(pod, json!({"phase": "Succeeded"})).await;
    }
    tokio::time::sleep(Duration::from_secs(2)).await;
    let status = status(&world).await;
    assert!(conditions(&status).contains(&("Complete", "True", "SuccessPolicy")), "{status}");
    assert_eq!((&status["succeeded"], &status["completedIndexes"]), (&json!(2), &json!("0,1")));
}

#[tokio::test(start_paused = true)]
async fn a_job_of_another_manager_is_left_alone() {
    let world = World::start().await;
    world.create::<Job>(job(json!({"managedBy": "example.com/other"}))).await;
    world.settle().await;
    assert_eq!(world.all::<Pod>().await.len(), 0);
    assert_eq!(status(&world).await, json!({}));
}

#[tokio::test(start_paused = true)]
async fn a_job_with_a_selector_of_its_own_adopts_and_releases() {
    let world = World::start().await;
    let labels = json!({"mine": "yes"});
    let orphan = json!({"metadata": {"name": "orphan", "labels": labels}, "spec": {"schedulerName": "nobody",
        "restartPolicy": "Never", "containers": [{"name": "c", "image": "work:1"}]}});
    world.create::<Pod>(orphan).await;
    let mut mine = by_hand(json!({"manualSelector": true, "selector": {"matchLabels": labels}}));
    mine["spec"]["template"]["metadata"] = json!({"labels": labels});
    world.create::<Job>(mine).await;
    world.settle().await;
    assert_eq!(active(&world).await, ["orphan"]);
    let adopted = world.api::<Pod>().get("orphan").await.expect("the pod");
    assert_eq!(adopted.metadata.finalizers, Some(vec!["batch.kubernetes.io/job-tracking".to_owned()]));
    world.merge::<Pod>("orphan", json!({"metadata": {"labels": {"mine": "no"}}})).await;
    world.settle().await;
    let released = world.api::<Pod>().get("orphan").await.expect("the pod");
    assert_eq!((released.metadata.finalizers, released.metadata.owner_references), (None, None));
    assert_eq!(active(&world).await.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn the_pods_of_a_deleted_job_go_or_stay_without_its_finalizer() {
    for (policy, left) in [
        (PropagationPolicy::Foreground, 0),
        (PropagationPolicy::Background, 0),
        (PropagationPolicy::Orphan, 2),
    ] {
        let world = World::start().await;
        world.create::<Job>(by_hand(json!({"completions": 2, "parallelism": 2}))).await;
        world.settle().await;
        let params = DeleteParams { propagation_policy: Some(policy.clone()), ..DeleteParams::default() };
        world.api::<Job>().delete("work", &params).await.expect("deleted");
        world.settle().await;
        assert!(!world.is_there::<Job>("work").await, "{policy:?}");
        let pods = world.all::<Pod>().await;
        assert_eq!(pods.len(), left, "{policy:?}");
        assert!(pods.iter().all(|pod| pod.metadata.finalizers.is_none()), "{policy:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_finished_job_goes_after_its_time() {
    let world = World::start().await;
    world.create::<Job>(job(json!({"ttlSecondsAfterFinished": 100}))).await;
    tokio::time::sleep(Duration::from_secs(90)).await;
    assert!(world.is_there::<Job>("work").await);
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert!(!world.is_there::<Job>("work").await);
    assert_eq!(world.all::<Pod>().await.len(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_job_of_more_pods_than_one_pass_makes_has_them_all_although_nobody_else_does_anything() {
    let world = World::with_nodes("serviceaccount,job", 0).await;
    world
        .create::<Job>(job(json!({"parallelism": 501, "completions": 501, "completionMode": "Indexed"})))
        .await;
    world.settle().await;
    assert_eq!(world.all::<Pod>().await.len(), 501);
    assert_eq!(status(&world).await["active"], 501);
}
