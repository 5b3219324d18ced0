//! Jobs and CronJobs.

use serde_json::{Value, json};

use crate::controllers::make::{Making, pods};
use crate::controllers::story::Step;

const FIRST_BACKOFF: u64 = 12_500;
const SECOND_BACKOFF: u64 = 23_000;

fn job_spec(making: &mut Making) -> Value {
    let mut template = making.template("j");
    template["spec"]["restartPolicy"] = json!("Never");
    let mut spec = json!({"template": template});
    if making.chance(0.6) {
        spec["completions"] = json!(making.number(1, 4));
    }
    if making.chance(0.6) {
        spec["parallelism"] = json!(making.number(0, 4));
    }
    if making.chance(0.4) && spec["completions"].is_number() {
        spec["completionMode"] = json!("Indexed");
        if making.chance(0.3) {
            spec["backoffLimitPerIndex"] = json!(making.number(0, 1));
        }
        if spec["backoffLimitPerIndex"].is_number() && making.chance(0.4) {
            spec["maxFailedIndexes"] = json!(making.number(0, 2));
        }
        if making.chance(0.2) {
            spec["successPolicy"] = making.value(&[
                json!({"rules": [{"succeededIndexes": "0"}]}),
                json!({"rules": [{"succeededCount": 1}]}),
                json!({"rules": [{"succeededIndexes": "0-1", "succeededCount": 1}]}),
            ]);
        }
    }
    if making.chance(0.4) {
        spec["backoffLimit"] = json!(making.number(0, 2));
    }
    if making.chance(0.2) {
        spec["suspend"] = json!(true);
    }
    if making.chance(0.15) {
        spec["ttlSecondsAfterFinished"] = json!(making.number(0, 1));
    }
    // Where nodes run the pods, it depends on them which comes first.
    if making.by_hand && making.chance(0.2) {
        spec["activeDeadlineSeconds"] = json!(2);
        making.quiet = making.quiet.max(5000);
    }
    if making.chance(0.2) {
        let action = making.word(&["FailJob", "Ignore", "Count"]);
        let action =
            if spec["backoffLimitPerIndex"].is_number() && making.chance(0.5) { "FailIndex" } else { action };
        let rule = making.value(&[
            json!({"onExitCodes": {"operator": "In", "values": [3]}}),
            json!({"onExitCodes": {"operator": "NotIn", "values": [3], "containerName": "c"}}),
            json!({"onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}),
        ]);
        let mut rule = rule;
        rule["action"] = json!(action);
        spec["podFailurePolicy"] = json!({"rules": [rule]});
    }
    if making.chance(0.2) {
        spec["podReplacementPolicy"] = json!(if spec["podFailurePolicy"].is_object() {
            "Failed"
        } else {
            making.word(&["Failed", "TerminatingOrFailed"])
        });
    }
    if making.chance(0.04) {
        spec["managedBy"] = json!("example.com/other");
    }
    spec
}

pub(super) fn job(making: &mut Making) {
    // Pods of Jobs end by themselves on nodes; by hand there is more to tell.
    let before = making.by_hand;
    making.by_hand = before || making.chance(0.6);
    let spec = job_spec(making);
    making.step(Step::create(
        "Job",
        json!({"kind": "Job", "apiVersion": "batch/v1", "metadata": {"name": "work"}, "spec": spec}),
    ));
    making.by_hand = before;
}

pub(super) fn change_job(making: &mut Making) {
    match making.number(0, 14) {
        12 => {
            // Somebody takes the Job's finalizer off a pod.
            let pick = making.picked("Pod", Some("j"));
            making.step(
                Step::patch("Pod", "untrack", "@pick@", json!({"metadata": {"finalizers": null}}))
                    .picking(pick),
            );
        }
        13 => {
            let spec = making.value(&[
                json!({"ttlSecondsAfterFinished": 0}),
                json!({"ttlSecondsAfterFinished": null}),
                json!({"activeDeadlineSeconds": 100_000}),
                json!({"backoffLimit": 0}),
                json!({"backoffLimit": 5}),
            ]);
            making.set("Job", "limits", "work", spec);
        }
        14 => {
            // Of a suspended Job that never ran, where its pods may be.
            let patch = json!({"template": {"spec": {"nodeSelector": {"kubernetes.io/os": "linux"}}, "metadata": {"annotations": {"queue": "a"}}}});
            making.set("Job", "template", "work", patch);
        }
        0 | 1 => {
            let parallelism = making.number(0, 4);
            making.set("Job", "parallelism", "work", json!({"parallelism": parallelism}));
        }
        2 => {
            let completions = making.number(1, 4);
            making.set(
                "Job",
                "completions",
                "work",
                json!({"completions": completions, "parallelism": completions}),
            );
        }
        3 | 4 => {
            let suspend = making.chance(0.5);
            making.set("Job", "suspend", "work", json!({"suspend": suspend}));
        }
        5 => making.common("Job", "work", job),
        6..=8 => end(making),
        9 => fail(making),
        _ => pods::one_of(making, "j"),
    }
}

fn end(making: &mut Making) {
    let pick = making.picked("Pod", Some("j"));
    let told = json!({"phase": "Succeeded", "containerStatuses": [ended(0)]});
    making.step(pods::status("succeed", "@pick@", &told).picking(pick));
}

fn fail(making: &mut Making) {
    if making.failures > 1 {
        return end(making);
    }
    making.failures += 1;
    let quiet = if making.failures == 1 { FIRST_BACKOFF } else { SECOND_BACKOFF };
    making.quiet = making.quiet.max(quiet);
    let pick = making.picked("Pod", Some("j"));
    let code = making.value(&[json!(1), json!(3)]);
    let told = json!({"phase": "Failed", "containerStatuses": [ended(code.as_u64().unwrap_or(1))]});
    making.step(pods::status("fail", "@pick@", &told).picking(pick));
}

fn ended(code: u64) -> Value {
    json!({"name": "c", "image": "x", "imageID": "x", "ready": false, "restartCount": 0, "state": {"terminated":
        {"exitCode": code, "reason": if code == 0 { "Completed" } else { "Error" }, "startedAt": "@now@", "finishedAt": "@now@"}}})
}

/// None of these comes while the story is told.
fn schedule(making: &mut Making) -> &'static str {
    making.word(&["0 0 1 1 *", "30 3 1 1 *", "0 0 1 */6 *", "0 0 13 * 5", "@yearly", "0 0 30 2 *"])
}

pub(super) fn cron_job(making: &mut Making) {
    let schedule = schedule(making);
    let mut spec = json!({
        "schedule": schedule,
        "jobTemplate": {"metadata": {"labels": {"app": "c"}}, "spec": job_spec(making)},
    });
    if making.chance(0.5) {
        spec["suspend"] = json!(making.chance(0.5));
    }
    if making.chance(0.3) {
        spec["concurrencyPolicy"] = json!(making.word(&["Allow", "Forbid", "Replace"]));
    }
    if making.chance(0.15) {
        spec["timeZone"] = json!(making.word(&["Europe/Vienna", "Asia/Tokyo", "UTC"]));
    }
    if making.chance(0.2) {
        spec["startingDeadlineSeconds"] = json!(making.value(&[json!(10), json!(100_000_000)]));
    }
    if making.chance(0.4) {
        spec["successfulJobsHistoryLimit"] = json!(making.number(0, 1));
        spec["failedJobsHistoryLimit"] = json!(making.number(0, 1));
    }
    making.step(Step::create(
        "CronJob",
        json!({"kind": "CronJob", "apiVersion": "batch/v1", "metadata": {"name": "tick"}, "spec": spec}),
    ));
}

pub(super) fn change_cron_job(making: &mut Making) {
    match making.number(0, 9) {
        6 | 7 => {
            // As if it had not been looked at since then.
            let last = making.word(&["2026-01-01T00:00:00Z", "2025-06-15T00:00:00Z", "2020-01-01T12:00:00Z"]);
            let status = json!({"status": {"lastScheduleTime": last}});
            making.step(Step::patch("CronJob", "miss", "tick", status).sub("status").quiet(4000));
        }
        8 => {
            let schedule = schedule(making);
            making.set("CronJob", "schedule", "tick", json!({"schedule": schedule}));
        }
        9 => {
            let policy = making.word(&["Allow", "Forbid", "Replace"]);
            making.set("CronJob", "policy", "tick", json!({"concurrencyPolicy": policy}));
        }
        0 | 1 => {
            // A Job of it, as `kubectl create job --from` makes it.
            let name = making.word(&["tick-1", "tick-2", "tick-3"]);
            let spec = job_spec(making);
            let owner = json!([{"apiVersion": "batch/v1", "kind": "CronJob", "name": "tick", "uid": "@uid:CronJob/tick@", "controller": true}]);
            making.step(Step::create(
                "Job",
                json!({"kind": "Job", "apiVersion": "batch/v1",
                "metadata": {"name": name, "labels": {"app": "c"}, "ownerReferences": owner}, "spec": spec}),
            ));
        }
        2 => {
            let suspend = making.chance(0.5);
            making.set("CronJob", "suspend", "tick", json!({"suspend": suspend}));
        }
        3 => {
            let limit = making.number(0, 2);
            making.set(
                "CronJob",
                "history",
                "tick",
                json!({"successfulJobsHistoryLimit": limit, "failedJobsHistoryLimit": limit}),
            );
        }
        4 => making.common("CronJob", "tick", cron_job),
        _ => {
            let name = making.word(&["tick-1", "tick-2"]);
            making.delete("Job", name);
        }
    }
}
