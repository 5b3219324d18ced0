//! Jobs and CronJobs.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use kubewright_schedule::{Schedule, zone};

use crate::cause::Cause;
use crate::causes::{Around, admission};
use crate::object::Object;
use crate::picture::Picture;
use crate::report::Finding;
use crate::text::{ago, event_line, in_namespace, one_line};

/// How late a run may be before it counts as missed.
const LATE: i64 = 60;

pub(super) fn state(job: &Object) -> String {
    let is = |kind: &str| job.condition_is(kind, "True").is_some();
    match (is("Failed"), is("Complete")) {
        (true, _) => "failed".to_owned(),
        (_, true) => "complete".to_owned(),
        _ => {
            format!("{} succeeded, {} failed", job.number("/status/succeeded"), job.number("/status/failed"))
        }
    }
}

pub(super) fn job(around: &Around<'_>) -> Vec<Finding> {
    let Around { picture, object: job, .. } = *around;
    let failed = job.condition_is("Failed", "True").or_else(|| job.condition_is("FailureTarget", "True"));
    if let Some(failed) = failed {
        let logs = format!("kubectl logs {}{}", job.id(), in_namespace(job.namespace()));
        let (cause, message, next) = match failed.reason {
            "BackoffLimitExceeded" => (
                Cause::BackoffLimit,
                format!(
                    "it has failed {} times; backoffLimit is {}",
                    job.number("/status/failed"),
                    job.number("/spec/backoffLimit")
                ),
                format!("{logs}; a failed Job is not tried again: mend it, delete it and create it anew"),
            ),
            "DeadlineExceeded" => (
                Cause::JobDeadline,
                format!(
                    "it has run longer than activeDeadlineSeconds, which is {}",
                    job.number("/spec/activeDeadlineSeconds")
                ),
                "raise activeDeadlineSeconds, or make it faster; then delete it and create it anew"
                    .to_owned(),
            ),
            reason => {
                (Cause::JobFailed, format!("it has failed: {reason}: {}", one_line(failed.message)), logs)
            }
        };
        return vec![Finding::new(cause, message, next).evidence(failed.line())];
    }
    if job.is("/spec/suspend") {
        let next = format!(
            "kubectl patch {}{} -p '{{\"spec\":{{\"suspend\":false}}}}'",
            job.id(),
            in_namespace(job.namespace())
        );
        return vec![Finding::new(Cause::Suspended, "it is suspended: spec.suspend is true", next)];
    }
    if job.condition_is("Complete", "True").is_some() || job.is_deleting() {
        return Vec::new();
    }
    if job.at("/status").as_object().is_none_or(serde_json::Map::is_empty) {
        return vec![Finding::new(
            Cause::NotObserved,
            "no controller has looked at it",
            "is the controller of Jobs running? (kube-controller-manager, or `kubewright up --controllers`)",
        )];
    }
    admission::create_failed(picture, job).into_iter().collect()
}

pub(super) fn cron_job(around: &Around<'_>) -> Vec<Finding> {
    let Around { picture, object: cron, .. } = *around;
    if cron.is_deleting() {
        return Vec::new();
    }
    if cron.is("/spec/suspend") {
        let next = format!(
            "kubectl patch {}{} -p '{{\"spec\":{{\"suspend\":false}}}}'",
            cron.id(),
            in_namespace(cron.namespace())
        );
        return vec![Finding::new(Cause::Suspended, "it is suspended: no Jobs are made", next)];
    }
    missed(picture, cron).into_iter().collect()
}

/// Whether a run was due since the last one and was not made.
fn missed(picture: &Picture, cron: &Object) -> Option<Finding> {
    let (text, now) = (cron.text("/spec/schedule"), picture.now);
    let last = cron.time("/status/lastScheduleTime");
    let since = last.or_else(|| cron.time("/metadata/creationTimestamp"))?;
    let due = due(text, cron.text("/spec/timeZone"), since)?;
    let late = now.as_second() - due.as_second();
    if late < LATE {
        return None;
    }
    let runs = picture.owned_by(cron).filter(|job| job.condition_is("Complete", "True").is_none()).count();
    let deadline = cron.at("/spec/startingDeadlineSeconds").as_i64();
    let event = picture.event(
        cron,
        &["MissSchedule", "TooManyMissedTimes", "JobAlreadyActive", "FailedNeedsStart", "UnknownTimeZone"],
    );
    let why = match (cron.text("/spec/concurrencyPolicy"), deadline) {
        ("Forbid", _) if runs > 0 => "concurrencyPolicy is Forbid and the last Job still runs".to_owned(),
        (_, Some(seconds)) if late > seconds => {
            format!("startingDeadlineSeconds is {seconds}, and that has passed")
        }
        _ => "the controller of CronJobs has not made it".to_owned(),
    };
    let message = format!("a run was due at {due}, {} ago ({text}): {why}", ago(due, now));
    let next = if runs > 0 {
        format!("see the Job that runs: kubectl get jobs{}", in_namespace(cron.namespace()))
    } else {
        "is the controller of CronJobs running (kube-controller-manager)?".to_owned()
    };
    let finding = Finding::new(Cause::ScheduleMissed, message, next).all(event.map(event_line));
    Some(finding.all(last.map(|last| format!("status.lastScheduleTime is {last}"))))
}

/// When a schedule is due first after a time.
fn due(text: &str, time_zone: &str, after: Timestamp) -> Option<Timestamp> {
    let place = if time_zone.is_empty() { TimeZone::UTC } else { zone(time_zone)? };
    Schedule::parse(text).ok()?.next(after, &place)
}
