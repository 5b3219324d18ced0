//! The conditions of a Job.

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::{Job, JobCondition, JobStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

/// How a Job ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum JobResult {
    /// `Complete`.
    Success,
    /// `Failed`.
    Failure,
}

impl JobResult {
    /// The condition that says how the Job will end, while its pods are still being counted.
    pub(super) fn interim(self) -> &'static str {
        match self {
            Self::Success => "SuccessCriteriaMet",
            Self::Failure => "FailureTarget",
        }
    }

    /// The condition of a Job that has ended.
    pub(super) fn terminal(self) -> &'static str {
        match self {
            Self::Success => "Complete",
            Self::Failure => "Failed",
        }
    }
}

/// The true condition of this type.
pub(super) fn is_true<'a>(job: &'a Job, kind: &str) -> Option<&'a JobCondition> {
    let conditions = job.status.as_ref()?.conditions.as_ref()?;
    conditions.iter().find(|condition| condition.type_ == kind && condition.status == "True")
}

/// Whether and how a Job has ended (`IsJobFinished` in `pkg/controller/job/util`).
pub(crate) fn finished(job: &Job) -> Option<&JobCondition> {
    let conditions = job.status.as_ref()?.conditions.as_ref()?;
    let ended = |condition: &&JobCondition| {
        matches!(condition.type_.as_str(), "Complete" | "Failed") && condition.status == "True"
    };
    conditions.iter().find(ended)
}

/// Makes a condition say this; whether that changes it. One that is not there is not false (`ensureJobConditionStatus`).
pub(super) fn set(
    status: &mut JobStatus,
    kind: &str,
    holds: bool,
    reason: &str,
    message: &str,
    now: Timestamp,
) -> bool {
    let new = JobCondition {
        type_: kind.to_owned(),
        status: if holds { "True" } else { "False" }.to_owned(),
        reason: Some(reason.to_owned()),
        message: Some(message.to_owned()),
        last_probe_time: Some(Time(now)),
        last_transition_time: Some(Time(now)),
    };
    let conditions = status.conditions.get_or_insert_default();
    match conditions.iter_mut().find(|condition| condition.type_ == kind) {
        Some(old) => {
            let same = old.status == new.status && old.reason == new.reason && old.message == new.message;
            if !same {
                *old = new;
            }
            !same
        }
        None => {
            if holds {
                conditions.push(new);
            } else if conditions.is_empty() {
                status.conditions = None;
            }
            holds
        }
    }
}
