//! Whether a node is heard of (`tryUpdateNodeHealth` in `pkg/controller/nodelifecycle/node_lifecycle_controller.go`).

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Node, NodeCondition};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kubewright_node::facts::node_conditions;
use serde_json::{Value, json};

/// A node that was heard of is given up after this (`--node-monitor-grace-period`).
const GRACE: Duration = Duration::from_secs(50);
/// One that never said how it is, after this (`--node-startup-grace-period`).
const STARTUP_GRACE: Duration = Duration::from_secs(60);

/// What a node says about itself changed last at this time.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Heard {
    renewed: Option<Timestamp>,
    heartbeat: Option<Timestamp>,
    at: Option<Timestamp>,
}

/// What is to be done about it.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Health {
    /// It was heard of; look again after this.
    HeardOf(Duration),
    /// It was not, and its conditions say so.
    Silent,
    /// It was not: these are its conditions from now on.
    FellSilent(Vec<Value>),
}

/// What is to be thought of the node; `heard` is what was known before and is brought up to date.
pub(super) fn check(node: &Node, lease: Option<&Lease>, heard: &mut Heard, now: Timestamp) -> Health {
    let renewed = lease.and_then(|lease| lease.spec.as_ref()?.renew_time.as_ref()).map(|time| time.0);
    let ready = node_conditions(node).iter().find(|condition| condition.type_ == "Ready");
    let heartbeat = ready.and_then(|ready| ready.last_heartbeat_time.as_ref()).map(|time| time.0);
    let first = match &ready {
        Some(_) => Some(now),
        None => node.metadata.creation_timestamp.as_ref().map(|time| time.0),
    };
    let is_news = heard.at.is_none() || renewed > heard.renewed || heartbeat != heard.heartbeat;
    if is_news {
        let at = if heard.at.is_none() { first.or(Some(now)) } else { Some(now) };
        *heard = Heard { renewed, heartbeat, at };
    }
    let grace = if ready.is_some() { patience(lease) } else { STARTUP_GRACE };
    let since = heard.at.unwrap_or(now);
    let silent_for = Duration::try_from(now.duration_since(since)).unwrap_or_default();
    if let Some(left) = grace.checked_sub(silent_for) {
        return Health::HeardOf(left + Duration::from_secs(1));
    }
    if ready.is_some_and(|ready| ready.status == "Unknown") {
        return Health::Silent;
    }
    Health::FellSilent(unknown(node, now))
}

/// A kubelet renews its lease four times in its duration and is given a quarter more; a lease that says that it lasts
/// longer than a kubelet's is believed (those of simulated nodes last days).
fn patience(lease: Option<&Lease>) -> Duration {
    let seconds = lease.and_then(|lease| lease.spec.as_ref()?.lease_duration_seconds).unwrap_or_default();
    let lasts = Duration::from_secs(u64::try_from(seconds).unwrap_or_default());
    GRACE.max(lasts * 5 / 4)
}

/// The node's conditions when nobody knows how it is.
fn unknown(node: &Node, now: Timestamp) -> Vec<Value> {
    let mut all: Vec<NodeCondition> = node_conditions(node).to_vec();
    for kind in ["Ready", "MemoryPressure", "DiskPressure", "PIDPressure"] {
        match all.iter_mut().find(|condition| condition.type_ == kind) {
            Some(condition) if condition.status == "Unknown" => {}
            Some(condition) => {
                condition.status = "Unknown".into();
                condition.reason = Some("NodeStatusUnknown".into());
                condition.message = Some("Kubelet stopped posting node status.".into());
                condition.last_transition_time = Some(Time(now));
            }
            None => all.push(NodeCondition {
                type_: kind.into(),
                status: "Unknown".into(),
                reason: Some("NodeStatusNeverUpdated".into()),
                message: Some("Kubelet never posted node status.".into()),
                last_heartbeat_time: node.metadata.creation_timestamp.clone(),
                last_transition_time: Some(Time(now)),
            }),
        }
    }
    all.iter().map(|condition| json!(condition)).collect()
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
    use kubewright_world::SIMULATION_START as NOW;

    use super::*;

    fn node(ready: Option<&str>) -> Node {
        let conditions: Vec<_> = ready
            .map(|status| json!({"type": "Ready", "status": status, "lastHeartbeatTime": Time(NOW)}))
            .into_iter()
            .collect();
        kubewright_objects::from_value(json!({"metadata": {"name": "n", "creationTimestamp": Time(NOW)},
            "status": {"conditions": conditions}}))
        .expect("a node")
    }

    fn lease(renewed: Timestamp, seconds: i32) -> Lease {
        kubewright_objects::from_value(
            json!({"spec": {"renewTime": MicroTime(renewed), "leaseDurationSeconds": seconds}}),
        )
        .expect("a lease")
    }

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_node_whose_lease_stops_falls_silent_after_fifty_seconds() {
        let (node, mut heard) = (node(Some("True")), Heard::default());
        let mut at = |seconds: u32, renewed: u32| {
            check(&node, Some(&lease(NOW + SECOND * renewed, 40)), &mut heard, NOW + SECOND * seconds)
        };
        assert_eq!(at(0, 0), Health::HeardOf(SECOND * 51));
        assert_eq!(at(40, 40), Health::HeardOf(SECOND * 51));
        assert_eq!(at(90, 40), Health::HeardOf(SECOND));
        let Health::FellSilent(conditions) = at(91, 40) else { panic!("it did not") };
        assert_eq!(conditions[0]["reason"], "NodeStatusUnknown");
        assert_eq!(conditions[1]["reason"], "NodeStatusNeverUpdated");
        assert_eq!(conditions.len(), 4);
        assert_eq!(at(92, 92), Health::HeardOf(SECOND * 51), "its lease was renewed");
    }

    #[test]
    fn a_lease_of_days_is_believed() {
        let (node, mut heard) = (node(Some("True")), Heard::default());
        let day = SECOND * 24 * 60 * 60;
        let lease = lease(NOW, 4 * 24 * 60 * 60);
        check(&node, Some(&lease), &mut heard, NOW);
        assert!(matches!(check(&node, Some(&lease), &mut heard, NOW + day * 4), Health::HeardOf(_)));
        assert!(matches!(check(&node, Some(&lease), &mut heard, NOW + day * 6), Health::FellSilent(_)));
    }

    #[test]
    fn a_node_that_never_said_how_it_is_has_a_minute() {
        let (node, mut heard) = (node(None), Heard::default());
        assert!(matches!(check(&node, None, &mut heard, NOW + SECOND * 10), Health::HeardOf(_)));
        let Health::FellSilent(conditions) = check(&node, None, &mut heard, NOW + SECOND * 61) else {
            panic!("it did not")
        };
        assert!(conditions.iter().all(|condition| condition["status"] == "Unknown"));
    }

    #[test]
    fn a_silent_node_that_says_so_is_left_alone() {
        let (node, mut heard) = (node(Some("Unknown")), Heard::default());
        check(&node, None, &mut heard, NOW);
        assert_eq!(check(&node, None, &mut heard, NOW + SECOND * 100), Health::Silent);
    }
}
