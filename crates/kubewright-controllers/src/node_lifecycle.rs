//! The node lifecycle controller, as far as it keeps pods off nodes: taints that say what a node's conditions and
//! `spec.unschedulable` say (`doNoScheduleTaintingPass` in `pkg/controller/nodelifecycle/node_lifecycle_controller.go`).
//!
//! That a node has fallen silent, and the eviction of its pods, are not looked at yet.

use k8s_openapi::api::core::v1::{Node, Taint};
use kubewright_runtime::{Context, Controller, Error, Key, Outcome, Reconciler};
use serde_json::{Value, json};

const NOT_READY: &str = "node.kubernetes.io/not-ready";
const UNSCHEDULABLE: &str = "node.kubernetes.io/unschedulable";
/// Condition, its status, and the taint that it stands for.
const TAINTS: [(&str, &str, &str); 6] = [
    ("DiskPressure", "True", "node.kubernetes.io/disk-pressure"),
    ("MemoryPressure", "True", "node.kubernetes.io/memory-pressure"),
    ("NetworkUnavailable", "True", "node.kubernetes.io/network-unavailable"),
    ("Ready", "False", NOT_READY),
    ("PIDPressure", "True", "node.kubernetes.io/pid-pressure"),
    ("Ready", "Unknown", "node.kubernetes.io/unreachable"),
];

/// The controller, which runs under the name of its events' source.
pub(crate) fn controller() -> Controller {
    Controller::new("node-controller", Tainter).for_kind::<Node>()
}

struct Tainter;

impl Reconciler for Tainter {
    async fn reconcile(&self, ctx: &Context, key: &Key) -> Result<Outcome, Error> {
        let Some(node) = ctx.get::<Node>(key) else { return Ok(Outcome::Done) };
        let Some(patch) = plan(&node) else { return Ok(Outcome::Done) };
        match ctx.patch::<Node>(key, patch).await {
            Err(error) if error.is_not_found() => Ok(Outcome::Done),
            written => written.map(|_| Outcome::Done),
        }
    }
}

/// The patch that gives the node the taints that it should have and takes those off that it should not; `None` when it
/// has them. Taints of other keys or effects stay, in their place.
fn plan(node: &Node) -> Option<Value> {
    let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_deref()).unwrap_or_default();
    let is_kept =
        |taint: &Taint| taint.effect != "NoSchedule" || !is_ours(taint) || is_called_for(node, &taint.key);
    let mut wanted: Vec<Taint> = taints.iter().filter(|taint| is_kept(taint)).cloned().collect();
    for key in TAINTS.iter().map(|(_, _, key)| *key).chain([UNSCHEDULABLE]) {
        let has = |taint: &Taint| taint.effect == "NoSchedule" && taint.key == key;
        if is_called_for(node, key) && !wanted.iter().any(has) {
            wanted.push(Taint { key: key.into(), effect: "NoSchedule".into(), ..Taint::default() });
        }
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
    let conditions = node.status.as_ref().and_then(|status| status.conditions.as_deref()).unwrap_or_default();
    let status = |kind: &str| conditions.iter().find(|has| has.type_ == kind).map(|has| has.status.as_str());
    let unheard_of = key == NOT_READY && status("Ready").is_none();
    unheard_of || TAINTS.iter().any(|(kind, wanted, taint)| *taint == key && status(kind) == Some(*wanted))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(taints: &[&str], unschedulable: bool, conditions: &[(&str, &str)]) -> Node {
        let taints: Vec<_> = taints.iter().map(|key| json!({"key": key, "effect": "NoSchedule"})).collect();
        let conditions: Vec<_> =
            conditions.iter().map(|(kind, status)| json!({"type": kind, "status": status})).collect();
        serde_json::from_value(json!({
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
            keys(plan(&node(&["mine", NOT_READY], false, &[("Ready", "True")]))),
            Some(vec!["mine".into()])
        );
        assert_eq!(plan(&node(&["mine", NOT_READY], false, &[])), None);
    }

    #[test]
    fn a_cordoned_node_is_tainted_and_an_uncordoned_one_is_not() {
        let cordoned = node(&["mine"], true, &[("Ready", "True")]);
        assert_eq!(keys(plan(&cordoned)), Some(vec!["mine".into(), UNSCHEDULABLE.into()]));
        let uncordoned = plan(&node(&[UNSCHEDULABLE], false, &[("Ready", "True")])).expect("a patch");
        assert_eq!(uncordoned["spec"]["taints"], Value::Null);
    }

    #[test]
    fn pressures_are_taints_in_order() {
        let all = ["MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable"]
            .map(|kind| (kind, "True"));
        let conditions: Vec<_> = all.into_iter().chain([("Ready", "True")]).collect();
        let taints = keys(plan(&node(&[], false, &conditions))).expect("a patch");
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
        assert_eq!(plan(&node(&taints, false, &conditions)), None);
    }

    #[test]
    fn another_effect_of_the_same_key_is_somebody_elses() {
        let mut evicting = node(&[NOT_READY], false, &[("Ready", "True")]);
        let taints = evicting.spec.as_mut().and_then(|spec| spec.taints.as_mut()).expect("taints");
        taints[0].effect = "NoExecute".into();
        assert_eq!(plan(&evicting), None);
    }
}
