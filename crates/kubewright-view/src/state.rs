//! The state of an object, from its conditions, its phase and its counts: a pure function.

use serde::Serialize;
use serde_json::Value;

/// How far an object is; the greater of two is the worse.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// Its kind says nothing of this.
    Plain,
    /// It is as it is wanted.
    Ready,
    /// It is on its way.
    Progressing,
    /// Somebody has to look.
    Failing,
}

/// Conditions that are bad when they hold.
const BAD: [&str; 5] = ["Failed", "Degraded", "ReplicaFailure", "Stalled", "NamesConflict"];
/// Conditions that say that an object is as it is wanted, the first that is there counts.
const GOOD: [&str; 8] =
    ["Ready", "Available", "Complete", "Established", "Succeeded", "Synced", "Approved", "Accepted"];
/// Parts of reasons that say that it does not get further by waiting.
const TROUBLE: [&str; 9] = [
    "Fail",
    "Error",
    "BackOff",
    "Invalid",
    "Unschedulable",
    "Denied",
    "Forbidden",
    "DeadlineExceeded",
    "Lost",
];

/// The state of an object and why it is that, in a few words; empty where there is nothing to say.
pub(crate) fn state(object: &Value) -> (State, String) {
    if object["metadata"]["deletionTimestamp"].is_string() {
        return (State::Progressing, being_deleted(object));
    }
    let status = &object["status"];
    match text(&object["kind"]) {
        "Pod" => return pod(status),
        "Event" => {
            let state = if object["type"] == "Warning" { State::Failing } else { State::Plain };
            return (state, text(&object["reason"]).to_owned());
        }
        _ => {}
    }
    if let Some(found) = by_conditions(status) {
        return found;
    }
    if let Some((ready, wanted)) = counts(object) {
        let state = if ready >= wanted { State::Ready } else { State::Progressing };
        return (state, format!("{ready} of {wanted} ready"));
    }
    by_phase(status)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn being_deleted(object: &Value) -> String {
    let finalizers: Vec<&str> = list(&object["metadata"]["finalizers"]).map(text).collect();
    match finalizers.as_slice() {
        [] => "being deleted".to_owned(),
        some => format!("being deleted, waits for {}", some.join(", ")),
    }
}

fn is_trouble(reason: &str) -> bool {
    TROUBLE.iter().any(|part| reason.contains(part))
}

fn described(told: &Value) -> String {
    let (reason, message) = (text(&told["reason"]), text(&told["message"]));
    let message = message.lines().next().unwrap_or_default();
    match (reason, message) {
        ("", message) => message.to_owned(),
        (reason, "") => reason.to_owned(),
        (reason, message) => format!("{reason}: {message}"),
    }
}

fn pod(status: &Value) -> (State, String) {
    match text(&status["phase"]) {
        "Failed" => return (State::Failing, described(status)),
        "Succeeded" => return (State::Ready, "Succeeded".to_owned()),
        _ => {}
    }
    let containers = list(&status["initContainerStatuses"]).chain(list(&status["containerStatuses"]));
    let mut waiting = containers.map(|container| &container["state"]["waiting"]);
    if let Some(waiting) = waiting.find(|waiting| {
        is_trouble(text(&waiting["reason"])) || text(&waiting["reason"]).starts_with("ErrImage")
    }) {
        return (State::Failing, described(waiting));
    }
    let condition = |name: &str| list(&status["conditions"]).find(|condition| condition["type"] == name);
    if let Some(scheduled) = condition("PodScheduled").filter(|told| told["status"] == "False") {
        return (State::Failing, described(scheduled));
    }
    match condition("Ready") {
        Some(ready) if ready["status"] == "True" => (State::Ready, text(&status["phase"]).to_owned()),
        Some(ready) => (State::Progressing, described(ready)),
        None => (State::Progressing, text(&status["phase"]).to_owned()),
    }
}

fn by_conditions(status: &Value) -> Option<(State, String)> {
    let holds = |condition: &&Value| condition["status"] == "True";
    let is = |condition: &Value, names: &[&str]| names.contains(&text(&condition["type"]));
    if let Some(bad) = list(&status["conditions"]).filter(holds).find(|told| is(told, &BAD)) {
        return Some((State::Failing, described(bad)));
    }
    let stuck = |told: &&Value| told["type"] == "Progressing" && told["status"] == "False";
    if let Some(stuck) = list(&status["conditions"]).find(stuck) {
        return Some((State::Failing, described(stuck)));
    }
    let named = |name: &str| list(&status["conditions"]).find(|told| told["type"] == *name);
    let good = GOOD.iter().find_map(|name| named(name))?;
    Some(match text(&good["status"]) {
        "True" => (State::Ready, text(&good["type"]).to_owned()),
        _ if is_trouble(text(&good["reason"])) => (State::Failing, described(good)),
        _ => (State::Progressing, described(good)),
    })
}

/// How many are ready of how many that are wanted.
fn counts(object: &Value) -> Option<(u64, u64)> {
    let (spec, status) = (&object["spec"], &object["status"]);
    let number = |value: &Value| value.as_u64();
    if let Some(wanted) = number(&status["desiredNumberScheduled"]) {
        return Some((number(&status["numberReady"]).unwrap_or(0), wanted));
    }
    let wanted = number(&spec["replicas"])?;
    status.is_object().then(|| (number(&status["readyReplicas"]).unwrap_or(0), wanted))
}

fn by_phase(status: &Value) -> (State, String) {
    let phase = text(&status["phase"]);
    let state = match phase {
        "" => State::Plain,
        "Active" | "Bound" | "Available" | "Ready" | "Running" | "Succeeded" | "Done" | "Completed" => {
            State::Ready
        }
        phase if is_trouble(phase) => State::Failing,
        _ => State::Progressing,
    };
    (state, phase.to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[expect(clippy::needless_pass_by_value, reason = "objects are written where they are handed over")]
    fn of(object: Value) -> (State, String) {
        state(&object)
    }

    #[test]
    fn a_pod_is_failing_when_waiting_does_not_help() {
        let waiting = |reason: &str| {
            json!({"kind": "Pod", "status": {"phase": "Pending",
                "containerStatuses": [{"state": {"waiting": {"reason": reason, "message": "m"}}}]}})
        };
        assert_eq!(of(waiting("CrashLoopBackOff")), (State::Failing, "CrashLoopBackOff: m".into()));
        assert_eq!(of(waiting("ErrImagePull")).0, State::Failing);
        assert_eq!(of(waiting("ContainerCreating")), (State::Progressing, "Pending".into()));
        let scheduled = json!({"type": "PodScheduled", "status": "False", "reason": "Unschedulable"});
        let pod = json!({"kind": "Pod", "status": {"phase": "Pending", "conditions": [scheduled]}});
        assert_eq!(of(pod), (State::Failing, "Unschedulable".into()));
        let ready = json!({"type": "Ready", "status": "True"});
        let pod = json!({"kind": "Pod", "status": {"phase": "Running", "conditions": [ready]}});
        assert_eq!(of(pod), (State::Ready, "Running".into()));
    }

    #[test]
    fn conditions_say_whether_it_is_ready_on_its_way_or_failing() {
        let one = |name: &str, status: &str, reason: &str| {
            of(json!({"kind": "X", "status": {"conditions": [
                {"type": name, "status": status, "reason": reason}]}}))
            .0
        };
        assert_eq!(one("Available", "True", ""), State::Ready);
        assert_eq!(one("Available", "False", "MinimumReplicasUnavailable"), State::Progressing);
        assert_eq!(one("Ready", "False", "ApplyFailed"), State::Failing);
        assert_eq!(one("ReplicaFailure", "True", ""), State::Failing);
        assert_eq!(one("Progressing", "False", "ProgressDeadlineExceeded"), State::Failing);
        assert_eq!(one("Paused", "True", ""), State::Plain);
    }

    #[test]
    fn counts_and_phases_stand_for_conditions_where_there_are_none() {
        let set = |ready: u64| json!({"kind": "ReplicaSet", "spec": {"replicas": 2}, "status": {"readyReplicas": ready}});
        assert_eq!(of(set(1)), (State::Progressing, "1 of 2 ready".into()));
        assert_eq!(of(set(2)).0, State::Ready);
        assert_eq!(of(json!({"kind": "Namespace", "status": {"phase": "Active"}})).0, State::Ready);
        assert_eq!(of(json!({"kind": "X", "status": {"phase": "Failed"}})).0, State::Failing);
        assert_eq!(of(json!({"kind": "ConfigMap"})), (State::Plain, String::new()));
    }

    #[test]
    fn an_object_that_is_being_deleted_names_what_it_waits_for() {
        let metadata = json!({"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["a/b"]});
        let found = of(json!({"kind": "X", "metadata": metadata}));
        assert_eq!(found, (State::Progressing, "being deleted, waits for a/b".into()));
    }
}
