//! Tests with plain values.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kubewright::{conditions, owner};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::At;

const DUE: &str = "2026-01-01T10:00:00Z";

fn at(spec: Value) -> At {
    let mut all = json!({"schedule": DUE, "command": "echo YAY"});
    let Value::Object(members) = spec else { panic!("members of a spec") };
    all.as_object_mut().expect("members").extend(members);
    let mut at = At::new("example-at", kubewright::object::from_value(all).expect("a spec"));
    at.metadata.namespace = Some("default".to_owned());
    at.metadata.uid = Some("uid-1".to_owned());
    at.metadata.generation = Some(1);
    at.metadata.creation_timestamp = Some(Time(seconds(-60)));
    at
}

/// So long after the command is due.
fn seconds(seconds: i64) -> Timestamp {
    DUE.parse::<Timestamp>().expect("a time") + SignedDuration::from_secs(seconds)
}

fn pod(at: &At, status: Value) -> Pod {
    let mut pod = pod::order(at).expect("it makes sense").1;
    pod.metadata.uid = Some("uid-pod".to_owned());
    pod.metadata.creation_timestamp = Some(Time(seconds(0)));
    pod.status = Some(kubewright::object::from_value(status).expect("a status"));
    pod
}

fn ended(code: i32) -> Value {
    let phase = if code == 0 { "Succeeded" } else { "Failed" };
    let state = json!({"terminated": {"exitCode": code, "finishedAt": seconds(5).to_string()}});
    let status = json!({"name": "busybox", "image": "", "imageID": "", "ready": false, "restartCount": 0, "state": state});
    json!({"phase": phase, "containerStatuses": [status]})
}

fn succeeded(plan: &Plan) -> (String, String) {
    let found = conditions::find(&plan.status.conditions, "Succeeded").expect("it is told");
    (found.status.clone(), found.reason.clone())
}

/// The At after a pass with this plan.
fn after(at: &At, plan: &Plan) -> At {
    At { status: Some(plan.status.clone()), ..at.clone() }
}

/// AT-05, AT-16.
#[test]
fn at_05_before_its_time_it_waits_for_exactly_the_time_left_and_says_pending() {
    let plan = plan(&at(json!({})), Found::Nothing, seconds(-30));
    assert_eq!((plan.step, plan.again), (Step::Wait, Some(seconds(0))));
    assert_eq!((plan.status.phase, plan.status.scheduled_time), (Phase::Pending, Some(Time(seconds(0)))));
}

/// AT-06, AT-07: when it is due, and however long that is ago.
#[test]
fn at_07_when_its_time_has_come_the_pod_is_launched() {
    for late in [0, 1, 100_000_000] {
        let Step::Launch(pod) = plan(&at(json!({})), Found::Nothing, seconds(late)).step else {
            panic!("it is")
        };
        assert_eq!(pod.name_any(), "example-at-pod");
        assert!(owner::is_controlled_by(&*pod, &at(json!({}))));
        assert!(finalizer::has(&*pod, FINALIZER));
    }
}

/// AT-09: and it stays DONE.
#[test]
fn at_09_a_pod_that_ended_either_way_means_done() {
    for (code, status) in [(0, "True"), (3, "False")] {
        let at = at(json!({}));
        let running = pod(&at, json!({"phase": "Running"}));
        let first = plan(&at, Found::Own(&running), seconds(1));
        assert_eq!((first.status.phase, &first.step), (Phase::Running, &Step::Wait));
        let at = after(&at, &first);
        let pod = pod(&at, ended(code));
        let done = plan(&at, Found::Own(&pod), seconds(6));
        assert_eq!((done.status.phase, &done.step), (Phase::Done, &Step::Release));
        assert_eq!((done.status.exit_code, succeeded(&done).0.as_str()), (Some(code), status));
        assert_eq!(done.status.completion_time, Some(Time(seconds(5))));
        let at = after(&at, &done);
        for found in [Found::Nothing, Found::Foreign] {
            let later = plan(&at, found, seconds(1000));
            assert_eq!((later.step, later.status), (Step::Wait, done.status.clone()));
        }
    }
}

/// AT-18: what cannot be read is told, not tried for ever.
#[test]
fn at_18_what_makes_no_sense_is_a_condition_and_waits_for_an_edit() {
    for (spec, reason) in [
        (json!({"schedule": "2023-19-39T29:59:59Z"}), "InvalidSchedule"),
        (json!({"schedule": "2023-01-01T10:00:00Zgarbage"}), "InvalidSchedule"),
        (json!({"schedule": "2023-01-01T10:00:00"}), "InvalidSchedule"),
        (json!({"schedule": "2023-01-01T10:00:00", "timeZone": "Mars/Base"}), "UnknownTimeZone"),
        (json!({"command": "echo 'a"}), "InvalidCommand"),
        (json!({"template": {"spec": {"nope": 1}}}), "InvalidTemplate"),
    ] {
        let plan = plan(&at(spec.clone()), Found::Nothing, seconds(10));
        assert_eq!((plan.step, plan.again, plan.status.phase), (Step::Wait, None, Phase::Pending), "{spec}");
        let accepted = conditions::find(&plan.status.conditions, "Accepted").expect("it is told");
        assert_eq!((accepted.status.as_str(), accepted.reason.as_str()), ("False", reason), "{spec}");
    }
}

/// AT-19.
#[test]
fn at_19_a_foreign_pod_is_not_taken_for_ones_own() {
    let plan = plan(&at(json!({})), Found::Foreign, seconds(0));
    assert_eq!((plan.step, plan.status.phase), (Step::Wait, Phase::Pending));
    assert!(conditions::is_true(&plan.status.conditions, "Conflict"));
    assert_eq!(plan.again, Some(seconds(30)));
}

/// AT-21, Beyond 3.
#[test]
fn at_21_a_command_that_fails_for_the_last_time_is_stopped() {
    let at = at(json!({"backoffLimit": 2}));
    let crashed = |restarts: i32| {
        let last = json!({"terminated": {"exitCode": 7, "finishedAt": seconds(9).to_string()}});
        let state = json!({"waiting": {"reason": "CrashLoopBackOff"}});
        json!({"phase": "Running", "containerStatuses": [{"name": "busybox", "image": "", "imageID": "", "ready": false,
            "restartCount": restarts, "state": state, "lastState": last}]})
    };
    let before = plan(&at, Found::Own(&pod(&at, crashed(1))), seconds(10));
    assert_eq!((before.step, before.status.phase), (Step::Wait, Phase::Running));
    let last = plan(&at, Found::Own(&pod(&at, crashed(2))), seconds(10));
    assert_eq!((&last.step, last.status.phase, last.status.exit_code), (&Step::Stop, Phase::Done, Some(7)));
    assert_eq!(succeeded(&last), ("False".to_owned(), "BackoffLimitExceeded".to_owned()));
    // The status was written, and then the operator died.
    let again = plan(&after(&at, &last), Found::Own(&pod(&at, crashed(2))), seconds(20));
    assert_eq!(again.step, Step::Stop);
}

/// AT-23, Beyond 4.
#[test]
fn at_23_a_pod_that_is_gone_is_reported_as_lost_and_not_run_again() {
    let at = at(json!({}));
    let at = after(&at, &plan(&at, Found::Own(&pod(&at, json!({"phase": "Running"}))), seconds(1)));
    let lost = plan(&at, Found::Nothing, seconds(2));
    assert_eq!((&lost.step, lost.status.phase), (&Step::Release, Phase::Done));
    assert_eq!(succeeded(&lost), ("False".to_owned(), "PodLost".to_owned()));

    let mut deleted = pod(&at, json!({"phase": "Running"}));
    deleted.metadata.deletion_timestamp = Some(Time(seconds(32)));
    let going = plan(&at, Found::Own(&deleted), seconds(2));
    assert_eq!(
        (going.step, going.status.phase, going.again),
        (Step::Wait, Phase::Running, Some(seconds(32)))
    );
    let gone = plan(&at, Found::Own(&deleted), seconds(32));
    assert_eq!((gone.step, gone.status.phase), (Step::Release, Phase::Done));
}

/// Beyond 4: unless asked.
#[test]
fn a_lost_pod_is_replaced_where_that_is_asked_for_even_beyond_the_deadline() {
    let at = at(json!({"ifLost": "Rerun", "startingDeadlineSeconds": 1}));
    let at = after(&at, &plan(&at, Found::Own(&pod(&at, json!({"phase": "Running"}))), seconds(1)));
    let lost = plan(&at, Found::Nothing, seconds(20));
    assert_eq!((lost.status.phase, lost.status.lost_pods, &lost.status.pod_uid), (Phase::Running, 1, &None));
    assert!(matches!(plan(&after(&at, &lost), Found::Nothing, seconds(21)).step, Step::Launch(_)));
}

/// Beyond 2.
#[test]
fn too_late_is_missed_and_stays_so_until_there_is_another_schedule() {
    let mut late = at(json!({"startingDeadlineSeconds": 30}));
    assert!(matches!(plan(&late, Found::Nothing, seconds(30)).step, Step::Launch(_)));
    let missed = plan(&late, Found::Nothing, seconds(31));
    assert_eq!((&missed.step, missed.status.phase), (&Step::Wait, Phase::Missed));
    assert_eq!(succeeded(&missed), ("False".to_owned(), "Missed".to_owned()));
    late = after(&late, &missed);
    assert_eq!(plan(&late, Found::Nothing, seconds(60)).status, missed.status);
    late.spec.0.schedule = "2026-01-01T11:00:00Z".to_owned();
    let armed = plan(&late, Found::Nothing, seconds(60));
    assert_eq!((armed.status.phase, armed.again), (Phase::Pending, Some(seconds(3600))));
}

/// Beyond 2.
#[test]
fn a_schedule_in_the_past_is_skipped_where_that_is_asked_for() {
    let mut past = at(json!({"ifPast": "Skip"}));
    past.metadata.creation_timestamp = Some(Time(seconds(10)));
    let skipped = plan(&past, Found::Nothing, seconds(10));
    assert_eq!((&skipped.step, skipped.status.phase), (&Step::Wait, Phase::Missed));
    assert_eq!(succeeded(&skipped).1, "Skipped");
    // The operator was away, the schedule was not in the past when it was made.
    let mut future = at(json!({"ifPast": "Skip"}));
    assert!(matches!(plan(&future, Found::Nothing, seconds(10)).step, Step::Launch(_)));
    future = after(&future, &plan(&future, Found::Nothing, seconds(-10)));
    assert!(matches!(plan(&future, Found::Nothing, seconds(0)).step, Step::Launch(_)));
}

/// Beyond 6.
#[test]
fn suspended_it_starts_nothing_and_an_edit_arms_it_anew() {
    let mut at = at(json!({"suspend": true}));
    let held = plan(&at, Found::Nothing, seconds(10));
    assert_eq!((&held.step, held.status.phase), (&Step::Wait, Phase::Pending));
    assert_eq!(succeeded(&held).1, "Suspended");
    at = after(&at, &held);
    at.spec.0.suspend = false;
    at.spec.0.schedule = "2026-01-01T11:00:00+01:00".to_owned();
    assert!(matches!(plan(&at, Found::Nothing, seconds(11)).step, Step::Launch(_)));
    at.spec.0.schedule = "2026-01-01T13:00:00+01:00".to_owned();
    assert_eq!(plan(&at, Found::Nothing, seconds(11)).again, Some(seconds(7200)));
}

/// Beyond 6.
#[test]
fn what_is_over_goes_after_its_time() {
    let at = at(json!({"ttlSecondsAfterFinished": 100}));
    let done = plan(&at, Found::Own(&pod(&at, ended(0))), seconds(6));
    assert_eq!(done.again, Some(seconds(105)));
    let at = after(&at, &done);
    assert_eq!(plan(&at, Found::Nothing, seconds(104)).again, Some(seconds(105)));
    assert_eq!(plan(&at, Found::Nothing, seconds(105)).step, Step::Expire);
}

/// The deadline that the node enforces, in its own word.
#[test]
fn a_pod_that_took_too_long_says_so() {
    let at = at(json!({"activeDeadlineSeconds": 30}));
    let pod = pod(
        &at,
        json!({"phase": "Failed", "reason": "DeadlineExceeded", "message": "Pod was active too long"}),
    );
    let done = plan(&at, Found::Own(&pod), seconds(40));
    assert_eq!(succeeded(&done), ("False".to_owned(), "DeadlineExceeded".to_owned()));
    assert_eq!(done.status.exit_code, None);
}

proptest! {
    /// A pass over what a pass has said says the same: nothing is written when nothing changes.
    #[test]
    fn the_second_pass_finds_nothing_to_say(
        now in -100..200_i64, suspend: bool, deadline in prop::option::of(0..100_i64), ttl in prop::option::of(0..100_i64),
        code in prop::option::of(0..3), found in 0..3_usize,
    ) {
        let at = at(json!({"suspend": suspend, "startingDeadlineSeconds": deadline, "ttlSecondsAfterFinished": ttl}));
        let pod = pod(&at, code.map_or(json!({"phase": "Running"}), ended));
        let found = [Found::Nothing, Found::Own(&pod), Found::Foreign][found];
        let first = plan(&at, found, seconds(now));
        if !matches!(first.step, Step::Launch(_)) {
            let second = plan(&after(&at, &first), found, seconds(now));
            prop_assert_eq!(second.status, first.status);
        }
    }

    /// Nothing is launched while a pod has the name, before the time, or after the end.
    #[test]
    fn a_command_is_launched_only_where_nothing_has_its_name(now in -100..200_i64, phase in 0..4_usize, found in 0..4_usize, uid: bool) {
        let mut at = at(json!({}));
        let phase = [Phase::Pending, Phase::Running, Phase::Done, Phase::Missed][phase];
        let pod_uid = uid.then(|| "uid-pod".to_owned());
        let knows = pod_uid.is_some();
        at.status = Some(AtStatus { phase, pod_uid, scheduled_time: Some(Time(seconds(0))), ..AtStatus::default() });
        let pod = pod(&at, json!({"phase": "Running"}));
        let found = [Found::Nothing, Found::Own(&pod), Found::Foreign, Found::Leftover][found];
        if matches!(plan(&at, found, seconds(now)).step, Step::Launch(_)) {
            prop_assert!(found == Found::Nothing && now >= 0 && !knows);
            prop_assert!(matches!(phase, Phase::Pending | Phase::Running));
        }
    }
}
