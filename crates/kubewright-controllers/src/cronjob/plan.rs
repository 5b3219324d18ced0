//! Whether a CronJob starts a Job now (the second half of `syncCronJob` in
//! `pkg/controller/cronjob/cronjob_controllerv2.go`).

use std::time::Duration;

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::batch::v1::{CronJob, CronJobSpec, CronJobStatus};
use k8s_openapi::api::core::v1::ObjectReference;
use kubewright_objects::optional;
use kubewright_schedule::{Schedule, zone};

use super::missed::{Timetable, last_run};
use super::template::job_name;
use crate::event::NewEvent;

/// What a CronJob does now.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Plan {
    pub(super) events: Vec<NewEvent>,
    pub(super) run: Option<Run>,
    /// When it has something to do again.
    pub(super) again: Option<Duration>,
}

/// A Job to be started.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Run {
    /// When it should have been.
    pub(super) at: Timestamp,
    /// The zone in which that is written down.
    pub(super) zone: TimeZone,
    /// The Jobs that it replaces.
    pub(super) replaced: Vec<ObjectReference>,
}

impl Plan {
    fn nothing(events: Vec<NewEvent>) -> Self {
        Self { events, ..Self::default() }
    }
}

/// `status` is the CronJob's, up to date. A CronJob whose schedule is a new one (`rescheduled`) waits for its next run: what
/// that schedule would have run before is not missed.
pub(super) fn plan(cron: &CronJob, status: &CronJobStatus, rescheduled: bool, now: Timestamp) -> Plan {
    let Some(spec) = optional::<CronJobSpec>(&cron.spec) else { return Plan::default() };
    if cron.metadata.deletion_timestamp.is_some() {
        return Plan::default();
    }
    let name = spec.time_zone.as_deref().unwrap_or_default();
    let Some(zone) = zone(name) else {
        let note = format!("invalid timeZone: {name:?}: unknown time zone {name}");
        return Plan::nothing(vec![NewEvent::warning("UnknownTimeZone", note)]);
    };
    if spec.suspend == Some(true) {
        return Plan::default();
    }
    let mut events = Vec::from_iter(zone_in_schedule(spec));
    let table = match Schedule::parse(&spec.schedule) {
        Ok(schedule) => Timetable { schedule, zone },
        Err(why) => {
            events.push(if rescheduled {
                let note = format!("unparseable schedule for cronjob: {}", spec.schedule);
                NewEvent::warning("UnParseableCronJobSchedule", note)
            } else {
                NewEvent::warning(
                    "UnparseableSchedule",
                    format!("unparseable schedule: {:?} : {why}", spec.schedule),
                )
            });
            return Plan::nothing(events);
        }
    };
    let wait = |events| Plan { events, run: None, again: table.wait(last_run(cron), now) };
    if rescheduled {
        let plan = wait(events);
        // A run that never comes is looked for at once (`nextScheduleTimeDuration` is far below zero), and told.
        return Plan { again: plan.again.or(Some(Duration::ZERO)), ..plan };
    }
    let due = match table.due(cron, now) {
        Ok(Some(due)) => due,
        Ok(None) => return wait(events),
        Err(why) => {
            events.push(NewEvent::warning(
                "InvalidSchedule",
                format!("invalid schedule: {} : {why}", spec.schedule),
            ));
            return Plan::nothing(events);
        }
    };
    if due.after_many {
        let note =
            "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew";
        events.push(NewEvent::warning("TooManyMissedTimes", note));
    }
    match obstacle(cron, status, due.at, now) {
        Some(refused) => {
            events.extend(refused);
            wait(events)
        }
        None => {
            let replaces = spec.concurrency_policy.as_deref() == Some("Replace");
            let replaced = status.active.clone().filter(|_| replaces).unwrap_or_default();
            let again = table.wait(due.at, now);
            Plan { events, run: Some(Run { at: due.at, zone: table.zone, replaced }), again }
        }
    }
}

/// A zone inside the schedule is not what the API means to offer.
fn zone_in_schedule(spec: &CronJobSpec) -> Option<NewEvent> {
    let page = "https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/";
    spec.schedule.contains("TZ").then(|| {
        let note = format!(
            "CRON_TZ or TZ used in schedule {:?} is not officially supported, see {page} for more details",
            spec.schedule
        );
        NewEvent::warning("UnsupportedSchedule", note)
    })
}

/// Why the run `at` does not begin, and whether that is worth an event.
fn obstacle(
    cron: &CronJob,
    status: &CronJobStatus,
    at: Timestamp,
    now: Timestamp,
) -> Option<Option<NewEvent>> {
    let Some(spec) = optional::<CronJobSpec>(&cron.spec) else { return Some(None) };
    let deadline = spec.starting_deadline_seconds.map(SignedDuration::from_secs);
    if deadline.is_some_and(|deadline| at.checked_add(deadline).is_ok_and(|latest| latest < now)) {
        let at = at.strftime("%a, %d %b %Y %H:%M:%S +0000");
        let note = format!("Missed scheduled time to start a job: {at}");
        return Some(Some(NewEvent::warning("MissSchedule", note)));
    }
    let name = job_name(cron, at);
    let active: Vec<_> = status.active.iter().flatten().collect();
    let known = active.iter().any(|job| job.name.as_ref() == Some(&name));
    if known || status.last_schedule_time.as_ref().is_some_and(|last| last.0 == at) {
        return Some(None);
    }
    if spec.concurrency_policy.as_deref() == Some("Forbid") && !active.is_empty() {
        let note = "Not starting job because prior execution is running and concurrency policy is Forbid";
        return Some(Some(NewEvent::normal("JobAlreadyActive", note)));
    }
    None
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
    use kubewright_world::SIMULATION_START as START;
    use serde_json::{Value, json};

    use super::super::tests::{cron_job, reference};
    use super::*;

    /// What a CronJob made at the start does so many seconds later.
    fn after(seconds: i64, spec: Value, status: &CronJobStatus) -> Plan {
        let mut cron = cron_job(spec);
        cron.status = Some(status.clone());
        plan(&cron, status, false, START + SignedDuration::from_secs(seconds))
    }

    fn reasons(plan: &Plan) -> Vec<&str> {
        plan.events.iter().map(|events| events.reason).collect()
    }

    #[test]
    fn a_run_begins_when_it_is_due() {
        let early = after(59, json!({}), &CronJobStatus::default());
        assert_eq!((early.run, early.again), (None, Some(Duration::from_millis(1100))));
        let due = after(60, json!({}), &CronJobStatus::default());
        assert_eq!(due.run.map(|run| run.at), Some(START + SignedDuration::from_secs(60)));
        assert_eq!(due.again, Some(Duration::from_millis(60_100)));
    }

    #[test]
    fn a_run_that_was_begun_is_not_begun_again() {
        let at = START + SignedDuration::from_secs(60);
        let begun = CronJobStatus { last_schedule_time: Some(Time(at)), ..CronJobStatus::default() };
        assert_eq!(after(61, json!({}), &begun).run, None);
        let name = job_name(&cron_job(json!({})), at);
        let listed = CronJobStatus { active: Some(vec![reference(&name)]), ..CronJobStatus::default() };
        assert_eq!(after(61, json!({}), &listed).run, None);
    }

    #[test]
    fn the_policy_says_what_becomes_of_jobs_that_still_run() {
        let active = CronJobStatus { active: Some(vec![reference("before")]), ..CronJobStatus::default() };
        let of = |policy: &str| after(60, json!({"concurrencyPolicy": policy}), &active);
        assert_eq!(of("Allow").run.map(|run| run.replaced), Some(vec![]));
        assert_eq!(of("Replace").run.map(|run| run.replaced), Some(vec![reference("before")]));
        assert_eq!((reasons(&of("Forbid")), of("Forbid").run), (vec!["JobAlreadyActive"], None));
    }

    #[test]
    fn a_suspended_or_deleted_cron_job_does_nothing() {
        assert_eq!(after(60, json!({"suspend": true}), &CronJobStatus::default()), Plan::default());
        let mut going = cron_job(json!({}));
        going.metadata.deletion_timestamp = Some(Time(START));
        let late = START + SignedDuration::from_secs(60);
        assert_eq!(plan(&going, &CronJobStatus::default(), false, late), Plan::default());
    }

    #[test]
    fn a_new_schedule_begins_with_its_next_run() {
        let late = START + SignedDuration::from_secs(90);
        let plan = plan(&cron_job(json!({})), &CronJobStatus::default(), true, late);
        assert_eq!((plan.run, plan.again), (None, Some(Duration::from_millis(30_100))));
    }

    #[test]
    fn a_new_schedule_that_never_comes_is_looked_at_again_at_once() {
        let cron = cron_job(json!({"schedule": "0 0 31 2 *"}));
        let plan = plan(&cron, &CronJobStatus::default(), true, START);
        assert_eq!((plan.events, plan.again), (Vec::new(), Some(Duration::ZERO)));
    }

    #[test]
    fn what_is_wrong_with_a_schedule_is_told() {
        let none = CronJobStatus::default();
        let events = |spec: Value| after(3600 * 24 * 70, spec, &none).events;
        let zone = "invalid timeZone: \"Nowhere/Land\": unknown time zone Nowhere/Land";
        assert_eq!(events(json!({"timeZone": "Nowhere/Land"})), [NewEvent::warning("UnknownTimeZone", zone)]);
        let text = "unparseable schedule: \"x\" : expected exactly 5 fields, found 1: [x]";
        assert_eq!(events(json!({"schedule": "x"})), [NewEvent::warning("UnparseableSchedule", text)]);
        let never =
            "invalid schedule: 0 0 31 2 * : time difference between two schedules is less than 1 second";
        assert_eq!(events(json!({"schedule": "0 0 31 2 *"})), [NewEvent::warning("InvalidSchedule", never)]);
        assert_eq!(events(json!({"schedule": "TZ=UTC 0 0 1 * *"}))[0].reason, "UnsupportedSchedule");
        assert_eq!(events(json!({}))[0].reason, "TooManyMissedTimes");
    }
}
