//! What a pod says of its command.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ContainerStateTerminated, ContainerStatus, Pod};

use crate::{AtSpec, pod::container_of};

/// How far a pod is.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Progress {
    /// Its command runs, or will.
    Runs,
    /// It is being deleted, and has until then to end.
    Stops(Timestamp),
    /// It is over.
    Ended(Ending),
}

/// How a command ended.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Ending {
    /// Whether it did what it was to do.
    pub(crate) succeeded: bool,
    /// A word for programs.
    pub(crate) reason: String,
    /// The same for people.
    pub(crate) message: String,
    pub(crate) exit_code: Option<i32>,
    pub(crate) at: Option<Timestamp>,
    /// Whether its pod was taken away from it.
    pub(crate) is_lost: bool,
    /// Whether the pod would start it once more.
    pub(crate) must_stop: bool,
}

impl Ending {
    /// The pod was taken away.
    pub(crate) fn lost(message: &str) -> Self {
        Self {
            succeeded: false,
            reason: "PodLost".to_owned(),
            message: message.to_owned(),
            exit_code: None,
            at: None,
            is_lost: true,
            must_stop: false,
        }
    }
}

/// What `pod` says of the command of an At with this `spec`.
pub(crate) fn progress(pod: &Pod, spec: &AtSpec, now: Timestamp) -> Progress {
    let status = pod.status.as_ref();
    let phase = status.and_then(|status| status.phase.as_deref()).unwrap_or_default();
    let container = container(pod);
    let last = container.and_then(terminated);
    let deletion = pod.metadata.deletion_timestamp.as_ref().map(|time| time.0);
    match (phase, deletion) {
        ("Succeeded", _) => Progress::Ended(Ending {
            succeeded: true,
            reason: "Completed".to_owned(),
            message: "the command ended with exit code 0".to_owned(),
            exit_code: Some(last.map_or(0, |last| last.exit_code)),
            at: last.and_then(|last| last.finished_at.as_ref()).map(|time| time.0),
            is_lost: false,
            must_stop: false,
        }),
        ("Failed", None) => Progress::Ended(failed(pod, last)),
        ("Failed", Some(_)) => Progress::Ended(Ending {
            exit_code: last.map(|last| last.exit_code),
            ..Ending::lost("the pod was deleted before its command ended")
        }),
        (_, Some(deletion)) if deletion <= now => {
            Progress::Ended(Ending::lost("the pod was deleted before its command ended"))
        }
        (_, Some(deletion)) => Progress::Stops(deletion),
        (_, None) => out_of_tries(container, spec).map_or(Progress::Runs, Progress::Ended),
    }
}

/// The pod failed: its command, or who runs it, gave up.
fn failed(pod: &Pod, last: Option<&ContainerStateTerminated>) -> Ending {
    let status = pod.status.as_ref();
    let of_pod = status.and_then(|status| status.reason.clone()).filter(|reason| is_word(reason));
    let message = status.and_then(|status| status.message.clone()).filter(|message| !message.is_empty());
    let exit_code = last.map(|last| last.exit_code);
    let ended = exit_code.map_or_else(
        || "the pod failed".to_owned(),
        |code| format!("the command ended with exit code {code}"),
    );
    Ending {
        succeeded: false,
        reason: of_pod.unwrap_or_else(|| "Failed".to_owned()),
        message: message.unwrap_or(ended),
        exit_code,
        at: last.and_then(|last| last.finished_at.as_ref()).map(|time| time.0),
        is_lost: false,
        must_stop: false,
    }
}

/// The command failed once more than it may be started again.
fn out_of_tries(container: Option<&ContainerStatus>, spec: &AtSpec) -> Option<Ending> {
    let (container, limit) = (container?, spec.backoff_limit.filter(|limit| *limit > 0)?);
    let last = terminated(container).filter(|last| last.exit_code != 0)?;
    let waits = container.state.as_ref().is_some_and(|state| state.running.is_none());
    (container.restart_count >= limit && waits).then(|| Ending {
        succeeded: false,
        reason: "BackoffLimitExceeded".to_owned(),
        message: format!(
            "the command ended with exit code {}, for the last of {} times",
            last.exit_code,
            container.restart_count.saturating_add(1)
        ),
        exit_code: Some(last.exit_code),
        at: last.finished_at.as_ref().map(|time| time.0),
        is_lost: false,
        must_stop: true,
    })
}

fn container(pod: &Pod) -> Option<&ContainerStatus> {
    let name = container_of(pod)?;
    let statuses = pod.status.as_ref()?.container_statuses.as_ref()?;
    statuses.iter().find(|status| status.name == name)
}

/// How the container ended last.
fn terminated(container: &ContainerStatus) -> Option<&ContainerStateTerminated> {
    let now = container.state.as_ref().and_then(|state| state.terminated.as_ref());
    now.or_else(|| container.last_state.as_ref()?.terminated.as_ref())
}

/// What the reason of a condition may be.
fn is_word(reason: &str) -> bool {
    reason.starts_with(|first: char| first.is_ascii_alphabetic())
        && reason.len() <= 128
        && reason.chars().all(|letter| letter.is_ascii_alphanumeric())
}
