//! From what is observed to what should be: a pure function.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;
use kubewright::finalizer;

use crate::{
    AtKind, AtStatus, IfLost, IfPast, Phase,
    ending::{Ending, Progress, progress},
    pod::{self, FINALIZER, Senseless},
    status::{Finding, settle},
};

/// What holds the name of an At's pod.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Found<'a> {
    /// Nothing.
    Nothing,
    /// The At's own pod.
    Own(&'a Pod),
    /// The pod of an At of the same name that is gone, as the pod is going to be.
    Leftover,
    /// A pod that the At does not control.
    Foreign,
}

/// What a pass over one At does.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// What happens, once the status is written.
    pub step: Step,
    /// The status that the At should have.
    pub status: AtStatus,
    /// When to look again, whatever happens until then.
    pub again: Option<Timestamp>,
}

/// What happens to the pod.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Nothing.
    Wait,
    /// It is time, and this is the pod. What the status says comes after it.
    Launch(Box<Pod>),
    /// What became of it is in the status: it may go when somebody wants it to.
    Release,
    /// The same, and it is deleted, so that it does not start its command once more.
    Stop,
    /// All is over for long enough: the At is deleted, its pod with it.
    Expire,
}

/// How long until a name that somebody else's pod has is tried again.
const LOOK_AGAIN: SignedDuration = SignedDuration::from_secs(30);

/// What to do for `at`, where `found` has the name of its pod.
#[must_use]
pub fn plan<K: AtKind>(at: &K, found: Found<'_>, now: Timestamp) -> Plan {
    let status =
        AtStatus { observed_generation: at.meta().generation, ..at.status().cloned().unwrap_or_default() };
    if status.phase == Phase::Done {
        return finished(at, status, found, now);
    }
    match (found, &status.pod_uid) {
        (Found::Own(pod), known) if known.is_none() || *known == pod.metadata.uid => {
            running(at, status, pod, now)
        }
        // It was deleted by force: whoever takes a pod's finalizer away takes what becomes of its command.
        (_, Some(_)) => gone(at, status, now),
        (found, None) => waiting(at, status, found, now),
    }
}

/// The command was not started.
fn waiting<K: AtKind>(at: &K, mut status: AtStatus, found: Found<'_>, now: Timestamp) -> Plan {
    let spec = at.asked();
    let wait = |status, finding: Finding, again| {
        let status = settle(at, status, &finding, now);
        Plan { step: Step::Wait, status, again }
    };
    let (due, pod) = match pod::order(at) {
        Ok(order) => order,
        Err(Senseless { reason, message }) => {
            let status = AtStatus { phase: Phase::Pending, scheduled_time: None, ..status };
            return wait(status, Finding::Senseless(reason, message), None);
        }
    };
    let rearmed = status.scheduled_time.as_ref().map(|time| time.0) != Some(due);
    if status.phase == Phase::Missed && !rearmed {
        return finished(at, status, found, now);
    }
    let first_seen = rearmed && status.lost_pods == 0;
    if rearmed {
        status.phase = Phase::Pending;
    }
    status.scheduled_time = Some(Time(due));
    if spec.suspend {
        return wait(status, Finding::Suspended, None);
    }
    if now < due {
        return wait(status, Finding::Armed, Some(due));
    }
    if let Some(missed) = missed(at, first_seen, due, now).filter(|_| status.lost_pods == 0) {
        status.phase = Phase::Missed;
        status.completion_time = Some(Time(now));
        let again = expiry(at, &status);
        return wait(status, missed, again);
    }
    match found {
        Found::Foreign => wait(status, Finding::Conflict, now.checked_add(LOOK_AGAIN).ok()),
        // The end of what is on its way out brings us here again.
        Found::Leftover | Found::Own(_) => wait(status, Finding::Armed, now.checked_add(LOOK_AGAIN).ok()),
        Found::Nothing => Plan { step: Step::Launch(Box::new(pod)), status, again: None },
    }
}

/// Why it is too late for the command, if it is.
fn missed<K: AtKind>(at: &K, first_seen: bool, due: Timestamp, now: Timestamp) -> Option<Finding> {
    let spec = at.asked();
    let made = at.meta().creation_timestamp.as_ref().map_or(now, |made| made.0);
    // An edit makes a new schedule; of when it was made nothing is known but that it is seen now.
    let asked = if at.meta().generation.unwrap_or(1) > 1 { now } else { made };
    if spec.if_past == IfPast::Skip && first_seen && due < asked {
        return Some(Finding::Skipped);
    }
    let deadline = spec.starting_deadline_seconds?;
    let latest = due.checked_add(SignedDuration::from_secs(deadline)).ok()?;
    (latest < now).then_some(Finding::Late(latest))
}

/// The pod is there.
fn running<K: AtKind>(at: &K, mut status: AtStatus, pod: &Pod, now: Timestamp) -> Plan {
    status.phase = Phase::Running;
    status.pod_name = Some(pod.name_any());
    status.pod_uid = pod.metadata.uid.clone();
    status.start_time = pod.metadata.creation_timestamp.clone();
    if status.scheduled_time.is_none() {
        status.scheduled_time = pod::order(at).ok().map(|(due, _)| Time(due));
    }
    let again = match progress(pod, at.asked(), now) {
        Progress::Runs => None,
        Progress::Stops(until) => Some(until),
        Progress::Ended(ending) => {
            let plan = ended(at, status, &ending, now);
            let step = if ending.must_stop { Step::Stop } else { Step::Release };
            return Plan { step, ..plan };
        }
    };
    Plan { step: Step::Wait, status: settle(at, status, &Finding::Started, now), again }
}

/// The pod was there, and is not any more.
fn gone<K: AtKind>(at: &K, mut status: AtStatus, now: Timestamp) -> Plan {
    if at.asked().if_lost == IfLost::Report {
        return ended(at, status, &Ending::lost("the pod is not there any more"), now);
    }
    status.pod_uid = None;
    status.lost_pods = status.lost_pods.saturating_add(1);
    // The next pass makes another.
    Plan { step: Step::Wait, status: settle(at, status, &Finding::Lost, now), again: Some(now) }
}

/// The command ended, or its pod is being taken away from it.
fn ended<K: AtKind>(at: &K, mut status: AtStatus, ending: &Ending, now: Timestamp) -> Plan {
    if ending.is_lost && at.asked().if_lost == IfLost::Rerun {
        // Once it is gone there can be another of its name.
        return Plan { step: Step::Release, status: settle(at, status, &Finding::Lost, now), again: None };
    }
    status.phase = Phase::Done;
    status.exit_code = ending.exit_code;
    status.completion_time = Some(Time(ending.at.unwrap_or(now)));
    let status = settle(at, status, &Finding::Ended(ending.clone()), now);
    let again = expiry(at, &status);
    Plan { step: Step::Release, status, again }
}

/// All is over.
fn finished<K: AtKind>(at: &K, status: AtStatus, found: Found<'_>, now: Timestamp) -> Plan {
    let again = expiry(at, &status);
    if again.is_some_and(|end| end <= now) {
        return Plan { step: Step::Expire, status, again: None };
    }
    let held = matches!(found, Found::Own(pod) if status.pod_uid == pod.metadata.uid && finalizer::has(pod, FINALIZER));
    let crashes = matches!(found, Found::Own(pod) if matches!(progress(pod, at.asked(), now), Progress::Ended(Ending { must_stop: true, .. })));
    let step = match (crashes, held) {
        (true, _) => Step::Stop,
        (false, true) => Step::Release,
        (false, false) => Step::Wait,
    };
    Plan { step, status, again }
}

/// When the At is to be deleted.
fn expiry<K: AtKind>(at: &K, status: &AtStatus) -> Option<Timestamp> {
    let ttl = SignedDuration::from_secs(at.asked().ttl_seconds_after_finished?);
    status.completion_time.as_ref()?.0.checked_add(ttl).ok()
}

#[cfg(test)]
mod tests;
