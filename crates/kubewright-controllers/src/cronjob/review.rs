//! What a CronJob's Jobs mean for its status, and which of them are history (the first half of `syncCronJob` and
//! `cleanupFinishedJobs` in `pkg/controller/cronjob/cronjob_controllerv2.go`).

use std::collections::BTreeSet;
use std::sync::Arc;

use k8s_openapi::api::batch::v1::{CronJob, CronJobSpec, CronJobStatus, Job};
use k8s_openapi::api::core::v1::ObjectReference;
use kubewright_objects::optional;

use crate::event::NewEvent;
use crate::job::finished;

/// Brings the status up to date with the `jobs` of the CronJob and with what is `lost`: the uids of active Jobs that are
/// not there any more.
pub(super) fn review(
    status: &mut CronJobStatus,
    jobs: &[Arc<Job>],
    lost: &BTreeSet<String>,
) -> Vec<NewEvent> {
    let mut events = Vec::new();
    for job in jobs {
        let (name, uid) = (name(job), job.metadata.uid.as_deref());
        let active = is_active(status, uid);
        let Some(end) = finished(job) else {
            if !active {
                let note = format!("Saw a job that the controller did not create or forgot: {name}");
                events.push(NewEvent::warning("UnexpectedJob", note));
            }
            continue;
        };
        if active {
            forget(status, uid);
            let note = format!("Saw completed job: {name}, condition: {}", end.type_);
            events.push(NewEvent::normal("SawCompletedJob", note));
        }
        let completed = job.status.as_ref().and_then(|status| status.completion_time.clone());
        if end.type_ == "Complete" && completed > status.last_successful_time {
            status.last_successful_time = completed;
        }
    }
    for gone in status.active.clone().into_iter().flatten() {
        if gone.uid.as_ref().is_some_and(|uid| lost.contains(uid)) {
            forget(status, gone.uid.as_deref());
            let note = format!("Active job went missing: {}", gone.name.unwrap_or_default());
            events.push(NewEvent::normal("MissingJob", note));
        }
    }
    events
}

/// The finished Jobs beyond the limits of the history, those that started first.
pub(super) fn history(cron: &CronJob, jobs: &[Arc<Job>]) -> Vec<Arc<Job>> {
    let beyond = |kind: &str, limit: Option<i32>| {
        let Some(limit) = limit.and_then(|limit| usize::try_from(limit).ok()) else { return Vec::new() };
        let mut of_kind: Vec<_> =
            jobs.iter().filter(|job| finished(job).is_some_and(|end| end.type_ == kind)).cloned().collect();
        // A Job that never started comes last.
        let start = |job: &Job| job.status.as_ref().and_then(|status| status.start_time.clone());
        of_kind.sort_by_key(|job| (start(job).is_none(), start(job), job.metadata.name.clone()));
        of_kind.truncate(of_kind.len().saturating_sub(limit));
        of_kind
    };
    let spec = optional::<CronJobSpec>(&cron.spec);
    let mut all = beyond("Complete", spec.and_then(|spec| spec.successful_jobs_history_limit));
    all.extend(beyond("Failed", spec.and_then(|spec| spec.failed_jobs_history_limit)));
    all
}

/// Whether the status lists a Job of this uid as active.
pub(super) fn is_active(status: &CronJobStatus, uid: Option<&str>) -> bool {
    status.active.iter().flatten().any(|active| active.uid.as_deref() == uid)
}

/// Takes a Job off the list of active ones.
pub(super) fn forget(status: &mut CronJobStatus, uid: Option<&str>) {
    let mut left: Vec<ObjectReference> = status.active.take().unwrap_or_default();
    left.retain(|active| active.uid.as_deref() != uid);
    status.active = (!left.is_empty()).then_some(left);
}

/// The Job's name.
pub(super) fn name(job: &Job) -> &str {
    job.metadata.name.as_deref().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::tests::{cron_job, ended, reference, running};
    use super::*;

    fn reasons(events: &[NewEvent]) -> Vec<&str> {
        events.iter().map(|events| events.reason).collect()
    }

    fn active(names: &[&str]) -> CronJobStatus {
        let active = names.iter().map(|name| reference(name)).collect();
        CronJobStatus { active: Some(active), ..CronJobStatus::default() }
    }

    #[test]
    fn a_finished_job_is_no_longer_active_and_its_success_is_remembered() {
        let mut status = active(&["a", "b"]);
        let jobs =
            [ended("a", "Complete", 5), ended("b", "Failed", 6), ended("old", "Complete", 3)].map(Arc::new);
        let events = review(&mut status, &jobs, &BTreeSet::new());
        assert_eq!(reasons(&events), ["SawCompletedJob", "SawCompletedJob"]);
        assert_eq!(events[1].note, "Saw completed job: b, condition: Failed");
        assert_eq!(status.active, None);
        assert_eq!(
            status.last_successful_time,
            jobs[0].status.clone().and_then(|status| status.completion_time)
        );
        assert_eq!(review(&mut status, &jobs, &BTreeSet::new()), []);
    }

    #[test]
    fn an_unknown_job_is_told_of_and_a_missing_one_forgotten() {
        let mut status = active(&["gone", "here"]);
        let lost = BTreeSet::from(["uid-gone".to_owned()]);
        let events = review(&mut status, &[Arc::new(running("here")), Arc::new(running("stranger"))], &lost);
        assert_eq!(reasons(&events), ["UnexpectedJob", "MissingJob"]);
        assert_eq!(events[0].note, "Saw a job that the controller did not create or forgot: stranger");
        assert_eq!(events[1].note, "Active job went missing: gone");
        assert_eq!(status.active, active(&["here"]).active);
    }

    #[test]
    fn each_history_keeps_the_jobs_that_started_last() {
        let cron = cron_job(json!({"successfulJobsHistoryLimit": 1, "failedJobsHistoryLimit": 0}));
        let jobs = [
            ended("c", "Complete", 3),
            ended("a", "Complete", 9),
            ended("b", "Complete", 1),
            ended("f", "Failed", 2),
            running("r"),
        ];
        let gone: Vec<_> =
            history(&cron, &jobs.map(Arc::new)).iter().map(|job| name(job).to_owned()).collect();
        assert_eq!(gone, ["b", "c", "f"]);
        let all = cron_job(json!({}));
        assert!(
            history(&all, &[Arc::new(ended("c", "Complete", 3))]).is_empty(),
            "no limits, no end of history"
        );
    }
}
