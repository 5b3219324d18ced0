//! Tests with plain values.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kubewright::owner;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn time(text: &str) -> Timestamp {
    text.parse().expect("a time")
}

/// A CronTab of every hour, made at ten.
fn crontab(spec: Value) -> CronTab {
    let pod = json!({"containers": [{"name": "main", "image": "main"}], "restartPolicy": "Never"});
    let mut all = json!({"schedule": "@hourly", "jobTemplate": pod});
    let Value::Object(members) = spec else { panic!("members of a spec") };
    all.as_object_mut().expect("members").extend(members);
    let mut crontab = CronTab::new("backup", kubewright::object::from_value(all).expect("a spec"));
    crontab.metadata.namespace = Some("default".to_owned());
    crontab.metadata.uid = Some("uid-1".to_owned());
    crontab.metadata.creation_timestamp = Some(Time(time("2026-01-01T10:00:00Z")));
    crontab
}

fn after(crontab: &CronTab, plan: &Plan) -> CronTab {
    let mut status = plan.status.clone();
    for start in &plan.start {
        begun(&mut status, &start.run);
    }
    CronTab { status: Some(status), ..crontab.clone() }
}

/// The Job of a start, once it is there; and ended, if it is said how.
fn made(start: &Start, how: Option<&str>) -> Arc<Job> {
    let mut job = start.job.clone();
    job.metadata.uid = Some(format!("uid-{}", job.name_any()));
    let ended = how.map(|how| json!([{"type": how, "status": "True"}]));
    let status = json!({"conditions": ended, "completionTime": how.map(|_| "2026-01-01T12:34:56Z")});
    job.status = Some(kubewright::object::from_value(status).expect("a status"));
    Arc::new(job)
}

fn names(jobs: &[Job]) -> Vec<String> {
    jobs.iter().map(ResourceExt::name_any).collect()
}

fn condition(plan: &Plan, type_: &str) -> (String, String) {
    let found = conditions::find(&plan.status.conditions, type_).expect("it is told");
    (found.status.clone(), found.reason.clone())
}

/// CT-08, CT-09.
#[test]
fn ct_09_a_job_is_made_when_it_is_due_and_not_before() {
    let crontab = crontab(json!({}));
    let early = plan(&crontab, &[], time("2026-01-01T10:59:59Z"));
    assert_eq!((early.start.len(), early.again), (0, Some(time("2026-01-01T11:00:00Z"))));
    assert_eq!(early.status.next_schedule_time, Some(Time(time("2026-01-01T11:00:00Z"))));
    let due = plan(&crontab, &[], time("2026-01-01T11:00:00Z"));
    assert_eq!(due.start[0].run, Run::At(time("2026-01-01T11:00:00Z")));
    assert!(owner::is_controlled_by(&due.start[0].job, &crontab));
    assert_eq!(due.again, Some(time("2026-01-01T12:00:00Z")));
}

/// Beyond 5: whether the status could be written or not.
#[test]
fn a_run_that_has_begun_does_not_begin_again() {
    let crontab = crontab(json!({}));
    let first = plan(&crontab, &[], time("2026-01-01T11:00:00Z"));
    let job = made(&first.start[0], None);
    let unsaid = plan(&crontab, &[Arc::clone(&job)], time("2026-01-01T11:00:01Z"));
    assert_eq!(
        (unsaid.start.len(), unsaid.status.last_schedule_time),
        (0, Some(Time(time("2026-01-01T11:00:00Z"))))
    );
    let said = plan(&after(&crontab, &first), &[], time("2026-01-01T11:00:01Z"));
    assert_eq!(said.start, []);
}

/// CT-06: an annotation does not start an interval anew, another schedule does.
#[test]
fn ct_06_only_another_schedule_begins_anew() {
    let mut crontab = crontab(json!({"schedule": "@every 1h"}));
    crontab = after(&crontab, &plan(&crontab, &[], time("2026-01-01T10:00:01Z")));
    crontab.metadata.annotations = Some([("note".to_owned(), "touched".to_owned())].into());
    let touched = plan(&crontab, &[], time("2026-01-01T10:30:00Z"));
    assert_eq!(touched.again, Some(time("2026-01-01T11:00:00Z")));
    crontab.spec.schedule = "@every 2h".to_owned();
    let edited = plan(&crontab, &[], time("2026-01-01T10:30:00Z"));
    assert_eq!(edited.again, Some(time("2026-01-01T12:30:00Z")));
    // Nor does it catch up with what the other one would have had.
    crontab.spec.schedule = "*/5 * * * *".to_owned();
    assert_eq!(plan(&crontab, &[], time("2026-01-01T10:31:00Z")).start, []);
}

/// Beyond 2.
#[test]
fn the_policy_says_what_becomes_of_a_job_that_goes_on() {
    let of = |policy: &str| {
        let crontab = crontab(json!({"concurrencyPolicy": policy}));
        let first = plan(&crontab, &[], time("2026-01-01T11:00:00Z"));
        let running = made(&first.start[0], None);
        plan(&after(&crontab, &first), &[running], time("2026-01-01T12:00:00Z"))
    };
    assert_eq!((of("Allow").start.len(), of("Allow").replaced.len(), of("Allow").status.running), (1, 0, 1));
    let replace = of("Replace");
    assert_eq!((replace.start.len(), names(&replace.replaced)), (1, vec!["backup-29454420".to_owned()]));
    let forbid = of("Forbid");
    assert_eq!(
        (forbid.start.len(), condition(&forbid, "Blocked")),
        (0, ("True".into(), "JobAlreadyActive".into()))
    );
}

/// Beyond 3.
#[test]
fn of_missed_runs_the_last_begins_unless_it_is_too_late() {
    let away = plan(&crontab(json!({})), &[], time("2026-01-03T11:20:00Z"));
    assert_eq!(
        away.start.iter().map(|start| start.run.clone()).collect::<Vec<_>>(),
        [Run::At(time("2026-01-03T11:00:00Z"))]
    );
    assert_eq!(away.events, []);
    let long = plan(&crontab(json!({})), &[], time("2026-03-01T11:20:00Z"));
    assert_eq!((long.start.len(), long.events[0].reason.as_str()), (1, "TooManyMissedTimes"));
    let strict = crontab(json!({"startingDeadlineSeconds": 600}));
    let late = plan(&strict, &[], time("2026-01-01T11:20:00Z"));
    assert_eq!((late.start.len(), late.events[0].reason.as_str()), (0, "MissSchedule"));
    assert_eq!(late.events[0].note, "Missed scheduled time to start a job: Thu, 01 Jan 2026 11:00:00 +0000");
    assert_eq!(plan(&after(&strict, &late), &[], time("2026-01-01T11:21:00Z")).events, [], "it is told once");
    assert_eq!(plan(&strict, &[], time("2026-01-01T11:10:00Z")).start.len(), 1);
}

/// Beyond 4.
#[test]
fn the_history_keeps_the_last_of_each_kind() {
    let crontab = crontab(json!({"successfulJobsHistoryLimit": 2}));
    let ended = |at: &str, how: &str| {
        let job = job::job(&crontab, &Run::At(time(at)), &jiff::tz::TimeZone::UTC).expect("a Job");
        let mut job = made(&Start { run: Run::At(time(at)), job }, Some(how)).as_ref().clone();
        job.metadata.creation_timestamp = Some(Time(time(at)));
        Arc::new(job)
    };
    let jobs = [
        ended("2026-01-01T03:00:00Z", "Complete"),
        ended("2026-01-01T01:00:00Z", "Complete"),
        ended("2026-01-01T02:00:00Z", "Complete"),
        ended("2026-01-01T04:00:00Z", "Failed"),
        ended("2026-01-01T05:00:00Z", "Failed"),
    ];
    let plan = plan(&crontab, &jobs, time("2026-01-01T10:30:00Z"));
    assert_eq!(names(&plan.history), ["backup-29453820", "backup-29454000"]);
    assert_eq!(plan.status.last_successful_time, Some(Time(time("2026-01-01T12:34:56Z"))));
}

/// Beyond 4, 6.
#[test]
fn suspended_nothing_runs_but_what_somebody_asks_for() {
    let mut crontab = crontab(json!({"suspend": true}));
    let held = plan(&crontab, &[], time("2026-01-01T12:00:00Z"));
    assert_eq!((held.start.len(), held.again, held.status.next_schedule_time.as_ref()), (0, None, None));
    assert_eq!(condition(&held, "Scheduled"), ("False".into(), "Suspended".into()));
    crontab.metadata.annotations = Some([(RUN_NOW.to_owned(), "please".to_owned())].into());
    let asked = plan(&crontab, &[], time("2026-01-01T12:00:00Z"));
    assert_eq!(asked.start[0].run, Run::Asked("please".to_owned()));
    let job = made(&asked.start[0], None);
    assert_eq!(
        plan(&crontab, &[job], time("2026-01-01T12:00:01Z")).status.last_run_request.as_deref(),
        Some("please")
    );
    assert_eq!(plan(&after(&crontab, &asked), &[], time("2026-01-01T12:00:01Z")).start, []);
}

/// CT-11, Beyond 1.
#[test]
fn ct_11_what_makes_no_sense_is_told_and_waits_for_an_edit() {
    for (spec, reason) in [
        (json!({"schedule": "5-1 * * * *"}), "UnparseableSchedule"),
        (json!({"timeZone": "Mars/Base"}), "UnknownTimeZone"),
        (json!({"schedule": "0 0 31 2 *"}), "NeverDue"),
        (json!({"jobTemplate": {"containers": [{"imege": "a"}]}}), "InvalidTemplate"),
    ] {
        let plan = plan(&crontab(spec.clone()), &[], time("2026-01-01T12:00:00Z"));
        assert_eq!((plan.start.len(), plan.again), (0, None), "{spec}");
        assert_eq!(condition(&plan, "Scheduled"), ("False".into(), reason.into()), "{spec}");
    }
}

/// A year at every hour, by the decision alone: each run begins once, in its hour, and the next is known.
#[test]
fn a_year_of_decisions_begins_each_run_once() {
    let mut crontab = crontab(json!({}));
    let mut now = time("2026-01-01T10:00:00Z");
    let mut names = std::collections::BTreeSet::new();
    for _ in 0..365 * 24 {
        let wait = plan(&crontab, &[], now);
        assert_eq!(wait.start, []);
        crontab = after(&crontab, &wait);
        now = wait.again.expect("there is a next run");
        let due = plan(&crontab, &[], now);
        assert_eq!(due.start.len(), 1);
        assert!(names.insert(due.start[0].job.name_any()));
        crontab = after(&crontab, &due);
    }
    assert_eq!((names.len(), now), (365 * 24, time("2027-01-01T10:00:00Z")));
}

proptest! {
    /// A pass over what a pass has said says the same, and begins nothing twice.
    #[test]
    fn the_second_pass_finds_nothing_to_do(
        seconds in 0..200_000_i64, policy in prop::sample::select(vec!["Allow", "Forbid", "Replace"]),
        deadline in prop::option::of(0..5000_i64), suspend: bool,
        schedule in prop::sample::select(vec!["@hourly", "@every 7m", "30 2 * * *", "* * * * *"]),
        zone in prop::sample::select(vec!["UTC", "America/New_York"]),
    ) {
        let crontab = crontab(json!({"schedule": schedule, "timeZone": zone, "concurrencyPolicy": policy,
            "startingDeadlineSeconds": deadline, "suspend": suspend}));
        let now = time("2026-01-01T10:00:00Z") + SignedDuration::from_secs(seconds);
        let first = plan(&crontab, &[], now);
        let jobs: Vec<Arc<Job>> = first.start.iter().map(|start| made(start, None)).collect();
        let second = plan(&after(&crontab, &first), &jobs, now);
        prop_assert_eq!(&second.start, &[]);
        let third = plan(&after(&crontab, &second), &jobs, now);
        prop_assert_eq!((third.start, third.events, third.status), (vec![], vec![], second.status));
    }
}
