//! The taints that say what a node's conditions and `spec.unschedulable` say (`doNoScheduleTaintingPass`,
//! `processTaintBaseEviction` in `pkg/controller/nodelifecycle/node_lifecycle_controller.go`).

use k8s_openapi::api::core::v1::{Node, Taint};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kubewright_node::facts::{self, node_conditions, node_readiness};
use serde_json::{Value, json};

const NOT_READY: &str = "node.kubernetes.io/not-ready";
const UNREACHABLE: &str = "node.kubernetes.io/unreachable";
const UNSCHEDULABLE: &str = "node.kubernetes.io/unschedulable";
/// Condition, its status, and the taint that it stands for.
const TAINTS: [(&str, &str, &str); 6] = [
    ("DiskPressure", "True", "node.kubernetes.io/disk-pressure"),
    ("MemoryPressure", "True", "node.kubernetes.io/memory-pressure"),
    ("NetworkUnavailable", "True", "node.kubernetes.io/network-unavailable"),
    ("Ready", "False", NOT_READY),
    ("PIDPressure", "True", "node.kubernetes.io/pid-pressure"),
    ("Ready", "Unknown", UNREACHABLE),
];

/// Whether the pods of nodes that are not ready are sent away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Eviction {
    /// They are.
    On,
    /// They will be, when it is their node's turn.
    Waits,
    /// No node at all is ready: then it is the network or the control plane, and nobody is sent anywhere.
    Off,
}

/// The patch that gives the node the taints that it should have and takes those off that it should not; `None` when it
/// has them. Taints of other keys or effects stay, in their place.
pub(super) fn plan(node: &Node, eviction: Eviction, now: &Time) -> Option<Value> {
    let taints = facts::taints(node);
    let is_kept =
        |taint: &Taint| taint.effect != "NoSchedule" || !is_ours(taint) || is_called_for(node, &taint.key);
    let mut wanted: Vec<Taint> = taints.iter().filter(|taint| is_kept(taint)).cloned().collect();
    for key in TAINTS.iter().map(|(_, _, key)| *key).chain([UNSCHEDULABLE]) {
        let has = |taint: &Taint| taint.effect == "NoSchedule" && taint.key == key;
        if is_called_for(node, key) && !wanted.iter().any(has) {
            wanted.push(Taint {
                key: key.into(),
                effect: "NoSchedule".into(),
                time_added: Some(now.clone()),
                ..Taint::default()
            });
        }
    }
    let called_for = if eviction == Eviction::Off { None } else { evicting(node) };
    let is_stale = |taint: &Taint| {
        taint.effect == "NoExecute"
            && [NOT_READY, UNREACHABLE].contains(&taint.key.as_str())
            && called_for != Some(taint.key.as_str())
    };
    wanted.retain(|taint| !is_stale(taint));
    let is_missing = |key: &&str| !wanted.iter().any(|has| has.effect == "NoExecute" && has.key == **key);
    if eviction == Eviction::On
        && let Some(key) = called_for.filter(is_missing)
    {
        wanted.push(Taint {
            key: key.into(),
            effect: "NoExecute".into(),
            time_added: Some(now.clone()),
            ..Taint::default()
        });
    }
    if wanted == taints {
        return None;
    }
    let wanted = if wanted.is_empty() { Value::Null } else { json!(wanted) };
    Some(json!({"metadata": {"resourceVersion": node.metadata.resource_version}, "spec": {"taints": wanted}}))
}

fn is_ours(taint: &Taint) -> bool {
    taint.key == UNSCHEDULABLE || TAINTS.iter().any(|(_, _, key)| *key == taint.key)
}

/// A node of which nobody has said yet whether it is ready keeps the taint that it was born with.
fn is_called_for(node: &Node, key: &str) -> bool {
    if key == UNSCHEDULABLE {
        return node.spec.as_ref().and_then(|spec| spec.unschedulable) == Some(true);
    }
    let status = |kind: &str| {
        node_conditions(node).iter().find(|has| has.type_ == kind).map(|has| has.status.as_str())
    };
    let unheard_of = key == NOT_READY && status("Ready").is_none();
    unheard_of || TAINTS.iter().any(|(kind, wanted, taint)| *taint == key && status(kind) == Some(*wanted))
}

/// The taint that sends pods away from a node that is not ready, or of which nobody knows.
pub(super) fn evicting(node: &Node) -> Option<&'static str> {
    match node_readiness(node)? {
        "False" => Some(NOT_READY),
        "Unknown" => Some(UNREACHABLE),
        _ => None,
    }
}

/// Whether the pods of a node are sent away already.
pub(super) fn is_evicting(node: &Node) -> bool {
    let sends =
        |taint: &Taint| taint.effect == "NoExecute" && [NOT_READY, UNREACHABLE].contains(&taint.key.as_str());
    facts::taints(node).iter().any(sends)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan_now(node: &Node) -> Option<Value> {
        plan(node, Eviction::On, &Time(kubewright_world::SIMULATION_START))
    }

    fn node(taints: &[&str], unschedulable: bool, conditions: &[(&str, &str)]) -> Node {
        let taints: Vec<_> = taints.iter().map(|key| json!({"key": key, "effect": "NoSchedule"})).collect();
        let conditions: Vec<_> =
            conditions.iter().map(|(kind, status)| json!({"type": kind, "status": status})).collect();
        kubewright_objects::from_value(json!({
            "metadata": {"name": "n", "resourceVersion": "7"},
            "spec": {"taints": taints, "unschedulable": unschedulable},
            "status": {"conditions": conditions},
        }))
        .expect("a node")
    }

    fn keys(patch: Option<Value>) -> Option<Vec<String>> {
        let patch = patch?;
        let taints = patch["spec"]["taints"].as_array().cloned().unwrap_or_default();
        Some(taints.iter().filter_map(|taint| taint["key"].as_str().map(str::to_owned)).collect())
    }

    #[test]
    fn the_taint_of_birth_goes_when_the_node_is_ready() {
        assert_eq!(
            keys(plan_now(&node(&["mine", NOT_READY], false, &[("Ready", "True")]))),
            Some(vec!["mine".into()])
        );
        assert_eq!(plan_now(&node(&["mine", NOT_READY], false, &[])), None);
    }

    #[test]
    fn a_cordoned_node_is_tainted_and_an_uncordoned_one_is_not() {
        let cordoned = node(&["mine"], true, &[("Ready", "True")]);
        assert_eq!(keys(plan_now(&cordoned)), Some(vec!["mine".into(), UNSCHEDULABLE.into()]));
        let uncordoned = plan_now(&node(&[UNSCHEDULABLE], false, &[("Ready", "True")])).expect("a patch");
        assert_eq!(uncordoned["spec"]["taints"], Value::Null);
    }

    #[test]
    fn pressures_are_taints_in_order() {
        let all = ["MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable"]
            .map(|kind| (kind, "True"));
        let conditions: Vec<_> = all.into_iter().chain([("Ready", "True")]).collect();
        let taints = keys(plan_now(&node(&[], false, &conditions))).expect("a patch");
        assert_eq!(
            taints,
            [
                "node.kubernetes.io/disk-pressure",
                "node.kubernetes.io/memory-pressure",
                "node.kubernetes.io/network-unavailable",
                "node.kubernetes.io/pid-pressure",
            ]
        );
        let taints: Vec<_> = taints.iter().map(String::as_str).collect();
        assert_eq!(plan_now(&node(&taints, false, &conditions)), None);
    }

    fn evicting_keys(node: &Node, eviction: Eviction) -> Vec<String> {
        let now = Time(kubewright_world::SIMULATION_START);
        let wanted = plan(node, eviction, &now).map(|patch| patch["spec"]["taints"].clone());
        let wanted = wanted
            .and_then(|taints| kubewright_objects::from_value::<Vec<Taint>>(taints).ok())
            .unwrap_or_default();
        wanted.into_iter().filter(|taint| taint.effect == "NoExecute").map(|taint| taint.key).collect()
    }

    #[test]
    fn pods_are_sent_away_from_a_node_that_is_not_ready_or_silent() {
        assert_eq!(evicting_keys(&node(&[], false, &[("Ready", "False")]), Eviction::On), [NOT_READY]);
        assert_eq!(evicting_keys(&node(&[], false, &[("Ready", "Unknown")]), Eviction::On), [UNREACHABLE]);
        assert!(evicting_keys(&node(&[], false, &[("Ready", "Unknown")]), Eviction::Off).is_empty());
        assert!(evicting_keys(&node(&[], false, &[("Ready", "True")]), Eviction::On).is_empty());
    }

    #[test]
    fn a_node_that_is_ready_again_sends_nobody_away() {
        let mut evicting = node(&[NOT_READY], false, &[("Ready", "True")]);
        let taints = evicting.spec.as_mut().and_then(|spec| spec.taints.as_mut()).expect("taints");
        taints[0].effect = "NoExecute".into();
        taints.push(Taint { key: "mine".into(), effect: "NoExecute".into(), ..Taint::default() });
        assert_eq!(keys(plan_now(&evicting)), Some(vec!["mine".into()]));
    }
}
