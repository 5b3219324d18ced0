//! Event handlers of the scheduler: which changes of pods, nodes and other objects matter to it.

use std::collections::BTreeSet;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{Node, Pod};
use kubewright_runtime::{Event, Key};
use parking_lot::Mutex;

use super::filter::Plugin;
use crate::facts::{is_finished, node_name};

/// What changed since the last look.
#[derive(Debug, Default)]
pub(super) struct ClusterEvents {
    pub(super) pods: BTreeSet<Key>,
    pub(super) nodes: BTreeSet<Key>,
    /// What other objects may have made possible.
    pub(super) helped: BTreeSet<Plugin>,
}

/// Collects events until somebody has time for them.
#[derive(Clone, Debug, Default)]
pub(super) struct Inbox(Arc<Mutex<ClusterEvents>>);

impl Inbox {
    pub(super) fn pod(&self, pod: &Pod) {
        self.0.lock().pods.insert(Key::of(pod));
    }

    pub(super) fn node(&self, node: &Node) {
        self.0.lock().nodes.insert(Key::of(node));
    }

    pub(super) fn helped(&self, plugin: Plugin) {
        self.0.lock().helped.insert(plugin);
    }

    pub(super) fn take(&self) -> ClusterEvents {
        std::mem::take(&mut *self.0.lock())
    }
}

/// What the containers of a placed pod do is nothing to the scheduler.
pub(super) fn matters_of_pod(event: &Event<'_, Pod>) -> bool {
    let Event::Update { old, new } = event else { return true };
    let nominated = |pod: &Pod| pod.status.as_ref().and_then(|status| status.nominated_node_name.clone());
    let claims = |pod: &Pod| pod.status.as_ref().and_then(|status| status.resource_claim_statuses.clone());
    node_name(old) != node_name(new)
        || is_finished(old) != is_finished(new)
        || old.metadata.uid != new.metadata.uid
        || old.metadata.deletion_timestamp != new.metadata.deletion_timestamp
        || old.metadata.labels != new.metadata.labels
        || nominated(old) != nominated(new)
        || claims(old) != claims(new)
        || old.spec != new.spec
}

/// The conditions and heartbeats of a node are nothing that a filter looks at.
pub(super) fn matters_of_node(event: &Event<'_, Node>) -> bool {
    let Event::Update { old, new } = event else { return true };
    fn allocatable(
        node: &Node,
    ) -> Option<&std::collections::BTreeMap<String, k8s_openapi::apimachinery::pkg::api::resource::Quantity>>
    {
        node.status.as_ref().and_then(|status| status.allocatable.as_ref())
    }
    old.metadata.labels != new.metadata.labels
        || allocatable(old) != allocatable(new)
        || old.metadata.uid != new.metadata.uid
        || old.metadata.annotations != new.metadata.annotations
        || old.spec != new.spec
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn heartbeats_of_a_node_do_not_matter() {
        let node = |ready: &str| -> Node {
            let conditions = json!([{"type": "Ready", "status": ready}]);
            kubewright_objects::from_value(
                json!({"metadata": {"name": "n"}, "status": {"conditions": conditions}}),
            )
            .expect("a node")
        };
        assert!(!matters_of_node(&Event::Update { old: &node("True"), new: &node("False") }));
        let mut cordoned = node("True");
        cordoned.spec = kubewright_objects::from_value(json!({"unschedulable": true})).ok();
        assert!(matters_of_node(&Event::Update { old: &node("True"), new: &cordoned }));
    }

    #[test]
    fn that_a_placed_pod_runs_does_not_matter_and_that_it_ends_does() {
        let pod = |status: Value| -> Pod {
            kubewright_objects::from_value(
                json!({"spec": {"nodeName": "n", "containers": []}, "status": status}),
            )
            .expect("a pod")
        };
        let (pending, running) = (pod(json!({"phase": "Pending"})), pod(json!({"phase": "Running"})));
        assert!(!matters_of_pod(&Event::Update { old: &pending, new: &running }));
        let ended = pod(json!({"phase": "Succeeded"}));
        assert!(matters_of_pod(&Event::Update { old: &running, new: &ended }));
    }
}
