//! CronJobs.

use std::time::Duration;

use k8s_openapi::api::batch::v1::{CronJob, Job};
use k8s_openapi::api::core::v1::Pod;
use kube::api::DeleteParams;
use kubewright_world::SIMULATION_START;
use serde_json::{Value, json};

use crate::support::World;

fn cron_job(spec: Value) -> Value {
    let template =
        json!({"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "work:1"}]}});
    let mut cron = json!({"metadata": {"name": "tick"}, "spec": {
        "schedule": "* * * * *", "jobTemplate": {"spec": {"template": template}}}});
    let Value::Object(members) = spec else { panic!("members of a specification") };
    cron["spec"].as_object_mut().expect("a specification").extend(members);
    cron
}

/// A CronJob whose pods nobody runs.
fn endless(mut spec: Value) -> Value {
    spec["jobTemplate"] = json!({"spec": {"template": {"spec": {"restartPolicy": "Never", "schedulerName": "nobody",
        "containers": [{"name": "c", "image": "work:1"}]}}}});
    cron_job(spec)
}

async fn status(world: &World) -> Value {
    json!(world.api::<CronJob>().get("tick").await.expect("the CronJob").status)
}

async fn minutes(count: u64) {
    tokio::time::sleep(Duration::from_secs(60 * count)).await;
}

fn reasons(events: &[(String, String)]) -> Vec<&str> {
    let mut reasons: Vec<_> = events.iter().map(|(reason, _)| reason.as_str()).collect();
    reasons.sort_unstable();
    reasons
}

#[tokio::test(start_paused = true)]
async fn a_year_of_a_daily_job_leaves_its_last_runs() {
    let world = World::start().await;
    world.create::<CronJob>(cron_job(json!({"schedule": "@daily"}))).await;
    tokio::time::sleep(Duration::from_secs(365 * 24 * 60 * 60 + 60)).await;
    world.settle().await;
    let last = world.names::<Job>().await;
    let day = (SIMULATION_START.as_second() / 60) + 365 * 24 * 60;
    let expected: Vec<_> = [2, 1, 0].map(|before| format!("tick-{}", day - before * 24 * 60)).into();
    assert_eq!(last, expected);
    assert_eq!(world.all::<Pod>().await.len(), 3);
    let status = status(&world).await;
    assert_eq!(status["lastScheduleTime"], "2027-01-01T00:00:00Z");
    assert_eq!(status["active"], Value::Null);
}

#[tokio::test(start_paused = true)]
async fn a_job_runs_every_minute_and_is_told_of() {
    let world = World::start().await;
    world.create::<CronJob>(cron_job(json!({"timeZone": "Asia/Kolkata"}))).await;
    minutes(1).await;
    world.settle().await;
    let jobs = world.all::<Job>().await;
    assert_eq!(jobs.len(), 1);
    let annotations = jobs[0].metadata.annotations.as_ref().expect("annotations");
    assert_eq!(annotations["batch.kubernetes.io/cronjob-scheduled-timestamp"], "2026-01-01T05:31:00+05:30");
    assert_eq!(reasons(&world.events("CronJob").await), ["SawCompletedJob", "SuccessfulCreate"]);
    let status = status(&world).await;
    assert_eq!(
        (status["lastScheduleTime"].as_str(), &status["active"]),
        (Some("2026-01-01T00:01:00Z"), &Value::Null)
    );
    assert!(status["lastSuccessfulTime"].is_string());
}

#[tokio::test(start_paused = true)]
async fn a_job_that_still_runs_is_left_alone_or_replaced_or_joined() {
    for (policy, jobs, active) in [("Forbid", 1, 1), ("Replace", 1, 1), ("Allow", 3, 3)] {
        let world = World::start().await;
        world.create::<CronJob>(endless(json!({"concurrencyPolicy": policy}))).await;
        minutes(3).await;
        world.settle().await;
        let names = world.names::<Job>().await;
        let count = status(&world).await["active"].as_array().map(Vec::len);
        assert_eq!((names.len(), count), (jobs, Some(active)), "{policy}");
        let first = format!("tick-{}", SIMULATION_START.as_second() / 60 + 1);
        assert_eq!(names.contains(&first), policy != "Replace", "{policy}");
        let events = world.events("CronJob").await;
        assert_eq!(reasons(&events).contains(&"JobAlreadyActive"), policy == "Forbid");
        assert_eq!(reasons(&events).contains(&"SuccessfulDelete"), policy == "Replace");
        // Pods of a Job that was replaced are gone, too.
        assert_eq!(world.all::<Pod>().await.len(), jobs, "{policy}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_suspended_cron_job_catches_up_with_its_last_run_only() {
    let world = World::start().await;
    world.create::<CronJob>(cron_job(json!({"suspend": true}))).await;
    minutes(150).await;
    assert_eq!(world.names::<Job>().await, Vec::<String>::new());
    world.merge::<CronJob>("tick", json!({"spec": {"suspend": false}})).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(world.names::<Job>().await.len(), 1);
    assert!(reasons(&world.events("CronJob").await).contains(&"TooManyMissedTimes"));
}

#[tokio::test(start_paused = true)]
async fn a_deleted_active_job_is_missed_and_a_new_schedule_waits_for_its_time() {
    let world = World::start().await;
    world.create::<CronJob>(endless(json!({}))).await;
    minutes(1).await;
    world.settle().await;
    world.merge::<CronJob>("tick", json!({"spec": {"schedule": "0 0 1 1 *"}})).await;
    let name = world.names::<Job>().await.remove(0);
    world.api::<Job>().delete(&name, &DeleteParams::background()).await.expect("deleted");
    minutes(30).await;
    assert_eq!(world.names::<Job>().await, Vec::<String>::new());
    assert_eq!(status(&world).await["active"], Value::Null);
    assert!(reasons(&world.events("CronJob").await).contains(&"MissingJob"));
}
