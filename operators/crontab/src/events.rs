//! What somebody who looks at a CronTab wants to hear of, in the words of the CronJob controller
//! (`pkg/controller/cronjob/cronjob_controllerv2.go`).

use jiff::Timestamp;
use kubewright::{EventType, conditions};

use crate::CronTabStatus;

/// An event to be recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewEvent {
    /// Whether somebody should look at it.
    pub kind: EventType,
    /// A word for programs.
    pub reason: String,
    /// The same for people.
    pub note: String,
}

impl NewEvent {
    pub(crate) fn normal(reason: &str, note: impl Into<String>) -> Self {
        Self { kind: EventType::Normal, reason: reason.to_owned(), note: note.into() }
    }

    pub(crate) fn warning(reason: &str, note: impl Into<String>) -> Self {
        Self { kind: EventType::Warning, reason: reason.to_owned(), note: note.into() }
    }
}

/// It is too late for the run `at`.
pub(crate) fn missed(at: Timestamp) -> NewEvent {
    let at = at.strftime("%a, %d %b %Y %H:%M:%S +0000");
    NewEvent::warning("MissSchedule", format!("Missed scheduled time to start a job: {at}"))
}

/// More runs than usual were missed before `at`.
pub(crate) fn too_many(at: Timestamp) -> NewEvent {
    let note = format!(
        "too many missed start times (> 100) before {at}: only that run is started. Check clock skew, or set spec.startingDeadlineSeconds"
    );
    NewEvent::warning("TooManyMissedTimes", note)
}

/// What is new in a status: conditions that turned.
pub(crate) fn turned(old: Option<&CronTabStatus>, new: &CronTabStatus) -> Vec<NewEvent> {
    let mut events = Vec::new();
    for (type_, bad) in [("Scheduled", "False"), ("Blocked", "True")] {
        let was = old.and_then(|old| conditions::find(&old.conditions, type_));
        let Some(is) = conditions::find(&new.conditions, type_).filter(|is| is.status == bad) else {
            continue;
        };
        if was.is_some_and(|was| (&was.reason, &was.message) == (&is.reason, &is.message)) {
            continue;
        }
        let is_asked_for = matches!(is.reason.as_str(), "Suspended" | "JobAlreadyActive");
        let kind = if is_asked_for { EventType::Normal } else { EventType::Warning };
        events.push(NewEvent { kind, reason: is.reason.clone(), note: is.message.clone() });
    }
    events
}
