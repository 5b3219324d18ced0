//! What an At's status says of its command, in conditions.

use jiff::Timestamp;
use kube::ResourceExt;
use kubewright::{
    EventType,
    conditions::{self, NewCondition, Status},
};

use crate::{AtKind, AtStatus, Phase, ending::Ending, pod::pod_key};

/// What was found out about an At.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Finding {
    /// What it asks for makes no sense: a word, and a text.
    Senseless(&'static str, String),
    /// It waits for its time.
    Armed,
    /// Nobody is to start it.
    Suspended,
    /// Somebody else's pod has the name.
    Conflict,
    /// It would have had to be started until then.
    Late(Timestamp),
    /// It was in the past already.
    Skipped,
    /// Its pod is there.
    Started,
    /// Its pod was taken away, and there will be another.
    Lost,
    /// Its command ended.
    Ended(Ending),
}

/// The status with the conditions that say so. A condition keeps its time of transition for as long as its status stays.
pub(crate) fn settle<K: AtKind>(at: &K, mut status: AtStatus, finding: &Finding, now: Timestamp) -> AtStatus {
    for wanted in [accepted(finding), conflict(at, finding), succeeded(finding)] {
        conditions::set(&mut status.conditions, &wanted.of(at), now);
    }
    status
}

fn accepted(finding: &Finding) -> NewCondition {
    match finding {
        Finding::Senseless(reason, message) => {
            NewCondition::new("Accepted", Status::False, *reason).message(message.clone())
        }
        _ => NewCondition::new("Accepted", Status::True, "Understood"),
    }
}

fn conflict<K: AtKind>(at: &K, finding: &Finding) -> NewCondition {
    if *finding != Finding::Conflict {
        return NewCondition::new("Conflict", Status::False, "NoConflict");
    }
    let name = pod_key(&kubewright::Key::of(at)).name;
    let message =
        format!("Pod {name} exists and is not controlled by this At: the command waits until it is gone");
    NewCondition::new("Conflict", Status::True, "PodNotOwned").message(message)
}

fn succeeded(finding: &Finding) -> NewCondition {
    let unknown = |reason: &str, message: &str| {
        NewCondition::new("Succeeded", Status::Unknown, reason).message(message)
    };
    match finding {
        Finding::Senseless(..) | Finding::Armed => unknown("Pending", "the command was not started yet"),
        Finding::Suspended => unknown("Suspended", "spec.suspend is set: nothing is started"),
        Finding::Conflict => unknown("Pending", "the name of the pod is taken"),
        Finding::Started => unknown("Running", "the command runs"),
        Finding::Lost => unknown("PodLost", "the pod was deleted before its command ended; it is run again"),
        Finding::Late(latest) => NewCondition::new("Succeeded", Status::False, "Missed")
            .message(format!("the command was not started until {latest}, and now is too late")),
        Finding::Skipped => NewCondition::new("Succeeded", Status::False, "Skipped")
            .message("the schedule was in the past already, and spec.ifPast is Skip"),
        Finding::Ended(ending) => {
            NewCondition::new("Succeeded", ending.succeeded.into(), ending.reason.clone())
                .message(ending.message.clone())
        }
    }
}

/// An event to be recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NewEvent {
    pub(crate) kind: EventType,
    pub(crate) reason: String,
    pub(crate) note: String,
}

/// What somebody who looks at the At wants to hear of, now that its status is no longer the `old` one.
pub(crate) fn events_of<K: AtKind>(at: &K, old: Option<&AtStatus>, new: &AtStatus) -> Vec<NewEvent> {
    let mut events = Vec::new();
    let mut record = |kind, reason: &str, note: String| {
        events.push(NewEvent { kind, reason: reason.to_owned(), note });
    };
    let turned = |type_: &str, status: Status| {
        let of = |conditions: &[_]| conditions::find(conditions, type_).cloned();
        let was = old.and_then(|old| of(&old.conditions));
        of(&new.conditions).filter(|is| {
            let is_news =
                was.as_ref().is_none_or(|was| (&was.status, &was.reason) != (&is.status, &is.reason));
            is.status == status.as_str() && is_news
        })
    };
    for (type_, status) in [("Accepted", Status::False), ("Conflict", Status::True)] {
        if let Some(condition) = turned(type_, status) {
            record(EventType::Warning, &condition.reason, condition.message);
        }
    }
    let launched = old.and_then(|old| old.pod_uid.as_ref()) != new.pod_uid.as_ref() && new.pod_uid.is_some();
    if launched {
        record(
            EventType::Normal,
            "Started",
            format!("Started pod {}", new.pod_name.as_deref().unwrap_or_default()),
        );
    }
    if old.map_or(0, |old| old.lost_pods) < new.lost_pods {
        let note =
            format!("The pod of {} was deleted before its command ended; it is run again", at.name_any());
        record(EventType::Warning, "PodLost", note);
    }
    let over = |status: &AtStatus| matches!(status.phase, Phase::Done | Phase::Missed);
    if over(new)
        && !old.is_some_and(over)
        && let Some(condition) = conditions::find(&new.conditions, "Succeeded")
    {
        let well = condition.status == "True" || condition.reason == "Skipped";
        let kind = if well { EventType::Normal } else { EventType::Warning };
        record(kind, &condition.reason, condition.message.clone());
    }
    events
}
