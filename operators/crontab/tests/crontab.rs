//! The promises of the CronTab operator, in a whole cluster and in virtual time. `CT-` rows are those of the write-up that
//! the kind comes from. A simulated world begins on 1 January 2026, at midnight.

mod lab;
mod log;
mod long;
mod sidecar;

use std::{num::NonZeroU64, time::Duration};

use k8s_openapi::api::{
    batch::v1::Job,
    core::v1::{Namespace, Pod},
};
use kube::{Api, ResourceExt, api::DeleteParams};
use kubewright::testing::{
    Cluster,
    admin::{ApiFault, Match, NoAnswer, Rule, Schedule, Verb, WatchEnd},
};
use kubewright_crontab::{CronTab, RUN_NOW, operator};
use lab::{backup, condition, crontab, jobs, notes, refusal, status, table, time, until};
use serde_json::json;

/// A year is millions of allocations.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// CT-01, CT-08, CT-09, CT-10: the seed's story.
#[kubewright::test]
async fn ct_01_ct_09_ct_10_the_backup_of_the_seed_runs_at_midnight(cluster: Cluster) {
    cluster.run(operator).await;
    let backup = cluster.create(&backup()).await;
    until(&cluster, "2026-01-01T23:59:59Z").await;
    assert_eq!(jobs(&cluster, "backup").await, [""; 0]);
    until(&cluster, "2026-01-02T00:05:00Z").await;
    assert_eq!(jobs(&cluster, "backup").await, ["backup-29455200"]);
    let job = cluster.get::<Job>("backup-29455200").await;
    assert_eq!(job.creation_timestamp().expect("it was made").0, time("2026-01-02T00:00:00Z"));
    assert_eq!(job.owner_references()[0].uid, backup.uid().expect("a stored object"));
    let template = job.spec.expect("a spec").template;
    assert_eq!(template.metadata.expect("labels").labels.expect("labels")["name"], "backup-29455200");
    let container = template.spec.expect("a pod").containers.remove(0);
    assert_eq!((container.name.as_str(), container.image.as_deref()), ("backup", Some("mybackupscript:v9")));
    let (columns, rows) = table(&cluster, "/apis/batch/v1/namespaces/default/jobs").await;
    assert_eq!(columns, ["Name", "Status", "Completions", "Duration", "Age"]);
    assert_eq!(rows[0][..3], [json!("backup-29455200"), json!("Complete"), json!("1/1")]);
}

/// CT-03, CT-04, Beyond 6: not at the next poll of fifteen seconds, but at once, and in all namespaces.
#[kubewright::test(namespaces = ["team-a"])]
async fn ct_03_ct_04_a_new_crontab_is_seen_within_a_second_in_any_namespace(cluster: Cluster) {
    cluster.run(operator).await;
    cluster.create(&crontab("backup", json!({}))).await;
    let is_seen = |cluster: Cluster| async move { cluster.get::<CronTab>("backup").await.status.is_some() };
    cluster.run_until(is_seen, Duration::from_secs(1)).await;
    assert!(cluster.exists::<Namespace>("team-a").await);
    let next = status(&cluster, "backup").await.next_schedule_time;
    assert_eq!(next.map(|next| next.0), Some(time("2026-01-01T01:00:00Z")));
    until(&cluster, "2026-01-01T01:00:01Z").await;
    assert_eq!(jobs(&cluster, "backup").await, ["backup-29453820"]);
}

/// CT-05: and what it made goes with it, which the seed leaves behind.
#[kubewright::test]
async fn ct_05_a_deleted_crontab_runs_no_more_and_takes_its_jobs_along(cluster: Cluster) {
    cluster.run(operator).await;
    cluster.create(&crontab("backup", json!({}))).await;
    until(&cluster, "2026-01-01T02:30:00Z").await;
    assert_eq!(jobs(&cluster, "backup").await.len(), 2);
    cluster.delete::<CronTab>("backup").await;
    cluster.settle().await;
    assert_eq!((cluster.list::<Job>().await.len(), cluster.list::<Pod>().await.len()), (0, 0));
    until(&cluster, "2026-01-01T05:00:00Z").await;
    assert_eq!(cluster.list::<Job>().await, []);
}

/// CT-05: who wants to keep them says so.
#[kubewright::test]
async fn ct_05_jobs_that_are_orphaned_stay(cluster: Cluster) {
    cluster.run(operator).await;
    cluster.create(&crontab("backup", json!({}))).await;
    until(&cluster, "2026-01-01T01:30:00Z").await;
    let api: Api<CronTab> = Api::namespaced(cluster.client(), "default");
    api.delete("backup", &DeleteParams::orphan()).await.expect("deleted");
    until(&cluster, "2026-01-01T05:00:00Z").await;
    assert_eq!(jobs(&cluster, "backup").await.len(), 1);
}

/// CT-06: a write that changes no schedule starts no interval anew.
#[kubewright::test]
async fn ct_06_an_annotation_does_not_put_a_run_off(cluster: Cluster) {
    cluster.run(operator).await;
    cluster.create(&crontab("backup", json!({"schedule": "@every 1h"}))).await;
    until(&cluster, "2026-01-01T00:50:00Z").await;
    cluster.patch::<CronTab>("backup", json!({"metadata": {"annotations": {"note": "touched"}}})).await;
    until(&cluster, "2026-01-01T01:00:05Z").await;
    assert_eq!(jobs(&cluster, "backup").await.len(), 1);
    cluster.patch::<CronTab>("backup", json!({"spec": {"schedule": "@every 2h"}})).await;
    until(&cluster, "2026-01-01T03:00:04Z").await;
    assert_eq!(jobs(&cluster, "backup").await.len(), 1);
    until(&cluster, "2026-01-01T03:00:10Z").await;
    assert_eq!(jobs(&cluster, "backup").await.len(), 2);
}

/// CT-07.
#[kubewright::test]
async fn ct_07_another_crontab_of_the_same_name_is_another(cluster: Cluster) {
    cluster.run(operator).await;
    cluster.create(&crontab("backup", json!({}))).await;
    until(&cluster, "2026-01-01T01:30:00Z").await;
    cluster.delete::<CronTab>("backup").await;
    let second = cluster.create(&crontab("backup", json!({"schedule": "30 * * * *"}))).await;
    until(&cluster, "2026-01-01T02:40:00Z").await;
    assert_eq!(jobs(&cluster, "backup").await, ["backup-29453910"]);
    let job = cluster.get::<Job>("backup-29453910").await;
    assert_eq!(job.owner_references()[0].uid, second.uid().expect("a stored object"));
}

/// CT-08, CT-11, Beyond 1, 6: at admission, with what to write instead.
#[kubewright::test]
async fn ct_08_ct_11_what_is_no_schedule_is_refused(cluster: Cluster) {
    cluster.run(operator).await;
    let pod = json!({"containers": [{"name": "a", "image": "a"}], "restartPolicy": "Never"});
    let of = |schedule: &str| json!({"schedule": schedule, "jobTemplate": pod});
    for schedule in ["bad", "60 * * * *", "* * * * * *", "@often", "@every x", "* * * * 7"] {
        let refused = refusal(&cluster, "backup", of(schedule)).await;
        assert!(
            refused.contains("spec.schedule: Invalid value: ")
                && refused.contains("is no schedule: write five fields"),
            "{refused}"
        );
    }
    for schedule in ["TZ=Asia/Tokyo 0 9 * * *", "CRON_TZ=UTC @daily"] {
        let refused = refusal(&cluster, "backup", of(schedule)).await;
        assert!(
            refused.contains("cannot use TZ or CRON_TZ in schedule, use timeZone field instead"),
            "{refused}"
        );
        assert!(!refused.contains("is no schedule"), "{refused}");
    }
    let long = refusal(&cluster, &"a".repeat(53), of("@daily")).await;
    assert!(long.contains("metadata.name has more than 52 characters"), "{long}");
    for (template, why) in [
        (json!({}), "is either a pod's spec (containers: ...) or a template of Jobs"),
        (json!({"containers": [{"name": "a"}]}), "restartPolicy of what runs in a Job is Never or OnFailure"),
    ] {
        let refused =
            refusal(&cluster, "backup", json!({"schedule": "@daily", "jobTemplate": template})).await;
        assert!(refused.contains(why), "{refused}");
    }
    for schedule in
        ["5 4 * * *", "@daily", "@hourly", "@weekly", "@monthly", "@yearly", "@every 1h", "0 0 ? * mon-FRI"]
    {
        cluster.create(&crontab("good", json!({"schedule": schedule}))).await;
        cluster.settle().await;
        assert_eq!(
            condition(&cluster, "good", "Scheduled").await,
            ("True".into(), "Waiting".into()),
            "{schedule}"
        );
        cluster.delete::<CronTab>("good").await;
    }
}

/// CT-11: what the schema cannot tell is a condition and one Event; nothing is tried for ever, and others go on.
#[kubewright::test]
async fn ct_11_a_bad_schedule_is_told_once_and_does_not_concern_others(cluster: Cluster) {
    cluster.run(operator).await;
    cluster.create(&crontab("backwards", json!({"schedule": "5-1 * * * *"}))).await;
    cluster.create(&crontab("mars", json!({"timeZone": "Mars/Base"}))).await;
    cluster.create(&crontab("misspelt", json!({"jobTemplate": {"spec": {"templat": {}}}}))).await;
    cluster.create(&crontab("backup", json!({}))).await;
    until(&cluster, "2026-01-01T01:30:00Z").await;
    assert_eq!(
        condition(&cluster, "backwards", "Scheduled").await,
        ("False".into(), "UnparseableSchedule".into())
    );
    assert_eq!(condition(&cluster, "mars", "Scheduled").await, ("False".into(), "UnknownTimeZone".into()));
    assert_eq!(condition(&cluster, "misspelt", "Scheduled").await.1, "InvalidTemplate");
    assert_eq!(jobs(&cluster, "backup").await.len(), 1);
    assert_eq!(
        notes(&cluster, "UnknownTimeZone").await,
        ["invalid timeZone: \"Mars/Base\": unknown time zone Mars/Base"]
    );
    assert_eq!(notes(&cluster, "UnparseableSchedule").await.len(), 1);
    let before = cluster.get::<CronTab>("backwards").await.resource_version();
    until(&cluster, "2026-01-01T12:00:00Z").await;
    assert_eq!(cluster.get::<CronTab>("backwards").await.resource_version(), before);
    cluster.patch::<CronTab>("mars", json!({"spec": {"timeZone": "Asia/Tokyo"}})).await;
    cluster.settle().await;
    assert_eq!(condition(&cluster, "mars", "Scheduled").await.0, "True");
}

/// CT-12: an API server that is away for minutes, and watches that break: the run is late, and there is one.
#[kubewright::test]
async fn ct_12_an_outage_of_minutes_delays_a_run_and_loses_none(cluster: Cluster) {
    cluster.run(operator).await;
    cluster.create(&crontab("backup", json!({}))).await;
    until(&cluster, "2026-01-01T00:59:00Z").await;
    let operator =
        Match { user: Some("system:serviceaccount:crontab-system:crontab".to_owned()), ..Match::default() };
    let admin = cluster.admin().expect("faults are to be had");
    for fault in [
        ApiFault::Timeout { done: false, answer: NoAnswer::Cut },
        ApiFault::DropWatch { how: WatchEnd::Reset },
    ] {
        admin.inject(Rule::new(fault).on(operator.clone()).at(Schedule::always()));
    }
    cluster.advance(Duration::from_secs(300)).await;
    assert_eq!(jobs(&cluster, "backup").await, [""; 0]);
    admin.remove_faults();
    until(&cluster, "2026-01-01T01:30:00Z").await;
    assert_eq!(jobs(&cluster, "backup").await, ["backup-29453820"]);
    until(&cluster, "2026-01-01T02:00:10Z").await;
    assert_eq!(jobs(&cluster, "backup").await.len(), 2);
}

/// CT-13: whether the Job was made before the connection broke or not.
#[kubewright::test]
async fn ct_13_a_job_that_could_not_be_posted_is_posted_again_and_made_once(cluster: Cluster) {
    cluster.run(operator).await;
    cluster.create(&crontab("backup", json!({}))).await;
    cluster.settle().await;
    let creates = Match { verbs: vec![Verb::Create], resource: Some("jobs".to_owned()), ..Match::default() };
    for done in [false, true] {
        let fault = ApiFault::Timeout { done, answer: NoAnswer::Cut };
        let rule = Rule::new(fault).on(creates.clone()).at(Schedule::times(NonZeroU64::MIN));
        cluster.admin().expect("faults are to be had").inject(rule);
    }
    until(&cluster, "2026-01-01T01:10:00Z").await;
    assert_eq!(jobs(&cluster, "backup").await, ["backup-29453820"]);
    until(&cluster, "2026-01-01T02:10:00Z").await;
    assert_eq!(jobs(&cluster, "backup").await, ["backup-29453820", "backup-29453880"]);
    assert_eq!(
        status(&cluster, "backup").await.last_schedule_time.map(|last| last.0),
        Some(time("2026-01-01T02:00:00Z"))
    );
}

/// CT-14: the selector is the API server's.
#[kubewright::test]
async fn ct_14_the_api_server_makes_the_selector(cluster: Cluster) {
    cluster.run(operator).await;
    cluster.create(&crontab("backup", json!({}))).await;
    until(&cluster, "2026-01-01T01:00:10Z").await;
    let job = cluster.get::<Job>("backup-29453820").await;
    let labels =
        job.spec.as_ref().and_then(|spec| spec.selector.as_ref()?.match_labels.clone()).expect("a selector");
    assert_eq!(labels.get("batch.kubernetes.io/controller-uid"), job.uid().as_ref());
    assert_eq!(labels.len(), 1);
}

/// CT-16: decision 3.
#[kubewright::test]
async fn ct_15_ct_16_both_shapes_of_a_template_run(cluster: Cluster) {
    cluster.run(operator).await;
    let pod = json!({"containers": [{"name": "main", "image": "main"}], "restartPolicy": "Never"});
    cluster.create(&crontab("bare", json!({"jobTemplate": pod}))).await;
    cluster.create(&crontab("whole", json!({"jobTemplate": {"spec": {"template": {"spec": pod}}}}))).await;
    until(&cluster, "2026-01-01T01:00:10Z").await;
    for name in ["bare", "whole"] {
        assert_eq!(jobs(&cluster, name).await.len(), 1, "{name}");
        assert!(status(&cluster, name).await.last_successful_time.is_some(), "{name}");
    }
}

/// Beyond 1: a spring day in New York has no half past two, an autumn day two half past ones; robfig/cron's answers.
#[kubewright::test]
async fn clocks_that_change_are_followed(cluster: Cluster) {
    cluster.run(operator).await;
    let zone = json!("America/New_York");
    cluster
        .create(&crontab(
            "gap",
            json!({"schedule": "30 2 * * *", "timeZone": zone, "successfulJobsHistoryLimit": 1000}),
        ))
        .await;
    until(&cluster, "2026-03-07T12:00:00Z").await;
    let before = jobs(&cluster, "gap").await.len();
    until(&cluster, "2026-03-09T12:00:00Z").await;
    assert_eq!(jobs(&cluster, "gap").await.len(), before + 1, "the 8th has none, the 9th has one");
    let last = status(&cluster, "gap").await.last_schedule_time.expect("it ran").0;
    assert_eq!(last, time("2026-03-09T06:30:00Z"));
    let job = cluster.get::<Job>(&format!("gap-{}", last.as_second() / 60)).await;
    assert_eq!(job.annotations()["alpha.ianlewis.org/scheduled-at"], "2026-03-09T02:30:00-04:00");
}

/// Beyond 2.
#[kubewright::test]
async fn the_concurrency_policy_decides_about_jobs_that_go_on(cluster: Cluster) {
    cluster.run(operator).await;
    for policy in ["Allow", "Forbid", "Replace"] {
        let name = policy.to_lowercase();
        cluster.create(&crontab(&name, json!({"concurrencyPolicy": policy, "for": "90m"}))).await;
    }
    until(&cluster, "2026-01-01T02:10:00Z").await;
    assert_eq!(jobs(&cluster, "allow").await, ["allow-29453820", "allow-29453880"]);
    assert_eq!(status(&cluster, "allow").await.running, 2);
    assert_eq!(jobs(&cluster, "replace").await, ["replace-29453880"]);
    assert_eq!(jobs(&cluster, "forbid").await, ["forbid-29453820"]);
    assert_eq!(condition(&cluster, "forbid", "Blocked").await, ("True".into(), "JobAlreadyActive".into()));
    assert_eq!(notes(&cluster, "JobAlreadyActive").await.len(), 1);
    until(&cluster, "2026-01-01T02:31:00Z").await;
    assert_eq!(
        jobs(&cluster, "forbid").await,
        ["forbid-29453820", "forbid-29453880"],
        "once the earlier one is over"
    );
    assert_eq!(condition(&cluster, "forbid", "Blocked").await.0, "False");
}

/// Beyond 3.
#[kubewright::test]
async fn of_missed_runs_the_last_is_made_up_for_once(cluster: Cluster) {
    let operator = cluster.run(operator).await;
    cluster.create(&crontab("patient", json!({}))).await;
    cluster.create(&crontab("strict", json!({"startingDeadlineSeconds": 60}))).await;
    cluster.create(&crontab("often", json!({"schedule": "* * * * *"}))).await;
    cluster.settle().await;
    operator.stop().await;
    until(&cluster, "2026-01-01T04:30:00Z").await;
    operator.restart().await;
    cluster.settle().await;
    assert_eq!(jobs(&cluster, "patient").await, ["patient-29454000"]);
    assert_eq!(jobs(&cluster, "strict").await, [""; 0]);
    assert_eq!(
        notes(&cluster, "MissSchedule").await,
        ["Missed scheduled time to start a job: Thu, 01 Jan 2026 04:00:00 +0000"]
    );
    assert_eq!(jobs(&cluster, "often").await, ["often-29454030"]);
    assert_eq!(notes(&cluster, "TooManyMissedTimes").await.len(), 1);
    until(&cluster, "2026-01-01T05:00:10Z").await;
    assert_eq!(jobs(&cluster, "strict").await, ["strict-29454060"]);
}

/// Beyond 4.
#[kubewright::test]
async fn history_and_suspension(cluster: Cluster) {
    cluster.run(operator).await;
    cluster.create(&crontab("good", json!({}))).await;
    cluster.create(&crontab("bad", json!({"exit": "1", "for": "1s"}))).await;
    until(&cluster, "2026-01-01T06:10:00Z").await;
    assert_eq!(jobs(&cluster, "good").await, ["good-29454000", "good-29454060", "good-29454120"]);
    assert_eq!(jobs(&cluster, "bad").await, ["bad-29454120"]);
    assert_eq!(cluster.list::<Pod>().await.len(), 4, "the pods of old Jobs are gone too");
    cluster.patch::<CronTab>("good", json!({"spec": {"suspend": true}})).await;
    until(&cluster, "2026-01-01T08:10:00Z").await;
    assert_eq!(jobs(&cluster, "good").await.last().map(String::as_str), Some("good-29454120"));
    assert_eq!(status(&cluster, "good").await.next_schedule_time, None);
}

/// Beyond 6: the equivalent of `kubectl create job --from`.
#[kubewright::test]
async fn a_run_that_is_asked_for_begins_at_once_and_once(cluster: Cluster) {
    cluster.run(operator).await;
    cluster.create(&crontab("backup", json!({"suspend": true}))).await;
    for (asked, expected) in [("one", 1), ("one", 1), ("two", 2)] {
        cluster.patch::<CronTab>("backup", json!({"metadata": {"annotations": {RUN_NOW: asked}}})).await;
        cluster.settle().await;
        let made = cluster.list::<Job>().await;
        assert_eq!(made.len(), expected, "{asked}");
        assert_eq!(made[0].annotations()["cronjob.kubernetes.io/instantiate"], "manual");
    }
}

/// Beyond 5: whenever the operator dies, and however many there are.
#[kubewright::test]
async fn whatever_restarts_there_is_one_job_for_each_tick(cluster: Cluster) {
    let operator = cluster.run(operator).replicas(2).await;
    cluster
        .create(&crontab("backup", json!({"schedule": "* * * * *", "successfulJobsHistoryLimit": 1000})))
        .await;
    for round in 0..30_u64 {
        cluster.advance(Duration::from_millis(57_000 + round * 211)).await;
        operator.crash().await;
        cluster.advance(Duration::from_millis(400)).await;
        operator.restart().await;
    }
    cluster.advance(Duration::from_secs(120)).await;
    let names = jobs(&cluster, "backup").await;
    let created = notes(&cluster, "SuccessfulCreate").await;
    assert!(names.len() >= 20, "{names:?}");
    for name in &names {
        let told = created.iter().filter(|note| **note == format!("Created job {name}")).count();
        assert!(told <= 1, "{name} was made {told} times");
    }
    let mut ticks: Vec<i64> =
        names.iter().map(|name| name["backup-".len()..].parse().expect("a minute")).collect();
    ticks.sort_unstable();
    ticks.dedup();
    assert_eq!(ticks.len(), names.len());
}

/// A Job that somebody else has made under the name of a run is left alone.
#[kubewright::test]
async fn a_foreign_job_of_the_same_name_is_left_alone(cluster: Cluster) {
    cluster.run(operator).await;
    let foreign: Job = kubewright::object::from_value(json!({"metadata": {"name": "backup-29453820"}, "spec": {"suspend": true,
        "template": {"spec": {"containers": [{"name": "theirs", "image": "theirs"}], "restartPolicy": "Never"}}}})).expect("a Job");
    let foreign = cluster.create(&foreign).await;
    cluster.create(&crontab("backup", json!({}))).await;
    until(&cluster, "2026-01-01T01:30:00Z").await;
    assert_eq!(cluster.get::<Job>("backup-29453820").await.uid(), foreign.uid());
    assert_eq!(notes(&cluster, "FailedCreate").await.len(), 1);
    until(&cluster, "2026-01-01T02:30:00Z").await;
    assert_eq!(jobs(&cluster, "backup").await, ["backup-29453820", "backup-29453880"]);
}

/// What a Job cannot be is said by the API server, and told once for each run.
#[kubewright::test]
async fn a_template_that_the_api_server_refuses_is_told_and_not_tried_for_ever(cluster: Cluster) {
    cluster.run(operator).await;
    let pod = json!({"containers": [{"name": "NOT A NAME", "image": "a"}], "restartPolicy": "Never"});
    cluster.create(&crontab("backup", json!({"jobTemplate": pod}))).await;
    until(&cluster, "2026-01-01T01:59:00Z").await;
    let told = notes(&cluster, "FailedCreate").await;
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].contains("NOT A NAME"), "{told:?}");
}

/// Beyond 6.
#[kubewright::test]
async fn the_table_says_when_it_ran_and_when_it_will(cluster: Cluster) {
    cluster.run(operator).await;
    cluster.create(&crontab("backup", json!({"for": "2h"}))).await;
    until(&cluster, "2026-01-01T01:00:34Z").await;
    let (columns, rows) = table(&cluster, "/apis/alpha.ianlewis.org/v1/namespaces/default/crontabs").await;
    assert_eq!(columns, ["Name", "Schedule", "Suspend", "Active", "Last", "Next", "Age"]);
    assert_eq!(
        rows[0][1..6],
        [json!("@hourly"), json!(false), json!(1), json!("34s"), json!("2026-01-01T02:00:00Z")]
    );
}

/// An idle day brings no write.
#[kubewright::test]
async fn nothing_is_written_when_nothing_changes(cluster: Cluster) {
    cluster.run(operator).await;
    cluster.create(&crontab("backup", json!({"schedule": "@monthly"}))).await;
    cluster.settle().await;
    let before = cluster.get::<CronTab>("backup").await.resource_version();
    cluster.advance(Duration::from_secs(24 * 3600)).await;
    assert_eq!(cluster.get::<CronTab>("backup").await.resource_version(), before);
}

/// Beyond 3, 5: conflicts, lost answers, dropped watches, evictions, crashes between two writes.
#[kubewright::test(seeds = 200, faults)]
async fn whatever_goes_wrong_a_tick_has_one_job(cluster: Cluster) {
    cluster.run(operator).await;
    let every_minute =
        json!({"schedule": "* * * * *", "successfulJobsHistoryLimit": 100, "failedJobsHistoryLimit": 100});
    cluster.create(&crontab("backup", every_minute)).await;
    until(&cluster, "2026-01-01T00:10:00Z").await;
    let caught_up = |cluster: Cluster| async move {
        let last = status(&cluster, "backup").await.last_schedule_time;
        last.is_some_and(|last| cluster.world().clock.now().duration_since(last.0).as_secs() < 60)
    };
    cluster.run_until(caught_up, Duration::from_secs(3600)).await;
    for name in jobs(&cluster, "backup").await {
        let made = cluster.history::<Job>(&name).writes.into_iter().filter(|write| write.verb == "create");
        assert_eq!(made.count(), 1, "{name}");
    }
}
