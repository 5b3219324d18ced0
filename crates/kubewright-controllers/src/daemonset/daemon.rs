//! The pod of a daemon: what it tolerates, how it finds its node, and of which template it is
//! (`pkg/controller/daemon/util/daemonset_util.go`).

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::apps::v1::{DaemonSet, DaemonSetSpec};
use k8s_openapi::api::core::v1::{
    NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, Pod, PodSpec, PodTemplateSpec, Toleration,
};
use kubewright_objects::optional;

use crate::{history, pod};

/// On a DaemonSet (an annotation) and its pods (a label): how often the template changed. Older than revisions.
const GENERATION: &str = "deprecated.daemonset.template.generation";
const GENERATION_LABEL: &str = "pod-template-generation";

/// Taints that no daemon minds, by effect: it has to run on nodes that are not well.
const TOLERATED: [(&str, &str); 6] = [
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
];
const TOLERATED_ON_HOST_NETWORK: (&str, &str) = ("node.kubernetes.io/network-unavailable", "NoSchedule");

/// The pods of a set by the node that they are on or will be.
pub(super) type ByNode = BTreeMap<String, Vec<Arc<Pod>>>;

/// The set's template as its pods get it, but for the node.
pub(super) fn template(set: &DaemonSet, hash: &str) -> PodTemplateSpec {
    let mut template =
        optional::<DaemonSetSpec>(&set.spec).map(|spec| spec.template.clone()).unwrap_or_default();
    tolerate(template.spec.get_or_insert_default());
    let labels = template.metadata.get_or_insert_default().labels.get_or_insert_default();
    if let Some(generation) = generation(set) {
        labels.insert(GENERATION_LABEL.into(), generation.to_string());
    }
    labels.insert(history::POD_LABEL.into(), hash.to_owned());
    template
}

/// Adds the tolerations of every daemon; one of the user's for the same taint gives way only if it is limited in time.
fn tolerate(spec: &mut PodSpec) {
    let host_network = spec.host_network.unwrap_or_default();
    let tolerations = spec.tolerations.get_or_insert_default();
    for (key, effect) in TOLERATED.into_iter().chain(host_network.then_some(TOLERATED_ON_HOST_NETWORK)) {
        let wanted = Toleration {
            key: Some(key.into()),
            operator: Some("Exists".into()),
            effect: Some(effect.into()),
            ..Toleration::default()
        };
        let same = |has: &&mut Toleration| {
            Toleration {
                toleration_seconds: None,
                value: has.value.clone().filter(|v| !v.is_empty()),
                ..(**has).clone()
            } == wanted
        };
        let mut known = tolerations.iter_mut().filter(same).peekable();
        if known.peek().is_none() {
            drop(known);
            tolerations.push(wanted);
        } else {
            known.for_each(|has| has.clone_from(&wanted));
        }
    }
}

/// The template for the pod of one node. The scheduler brings it there: an affinity to the node takes the place of all
/// terms that the user required, which the node satisfies.
pub(super) fn for_node(mut template: PodTemplateSpec, node: &str) -> PodTemplateSpec {
    let affinity = template.spec.get_or_insert_default().affinity.get_or_insert_default();
    let affinity = affinity.node_affinity.get_or_insert_default();
    affinity.required_during_scheduling_ignored_during_execution = Some(NodeSelector {
        node_selector_terms: vec![NodeSelectorTerm {
            match_fields: Some(vec![NodeSelectorRequirement {
                key: "metadata.name".into(),
                operator: "In".into(),
                values: Some(vec![node.to_owned()]),
            }]),
            match_expressions: None,
        }],
    });
    template
}

/// Groups pods by node. A pod that has ended and is being deleted is none any more, unless `ended` ones count; nor is
/// one of which nobody knows where it will go.
pub(super) fn by_node(pods: &[Arc<Pod>]) -> ByNode {
    let mut by_node = ByNode::new();
    let ended = |pod: &Pod| pod::is_finished(pod) && is_going(pod);
    for pod in pods.iter().filter(|pod| !ended(pod)) {
        if let Some(node) = target(pod) {
            by_node.entry(node.to_owned()).or_default().push(Arc::clone(pod));
        }
    }
    by_node
}

/// The node that the pod is on, or that its affinity names (`GetTargetNodeName`).
pub(super) fn target(pod: &Pod) -> Option<&str> {
    let node = pod::node_name(pod);
    if !node.is_empty() {
        return Some(node);
    }
    let affinity = pod.spec.as_ref()?.affinity.as_ref()?.node_affinity.as_ref()?;
    let required = affinity.required_during_scheduling_ignored_during_execution.as_ref()?;
    let fields = required.node_selector_terms.iter().flat_map(|term| term.match_fields.iter().flatten());
    let named = fields.into_iter().find(|field| field.key == "metadata.name" && field.operator == "In")?;
    match named.values.as_deref()? {
        [node] => Some(node),
        _ => None,
    }
}

/// How often the set's template changed, if somebody counts.
fn generation(set: &DaemonSet) -> Option<i64> {
    set.metadata.annotations.as_ref()?.get(GENERATION)?.parse().ok()
}

/// Tells pods of the current template from others.
pub(super) struct Updated<'a> {
    hash: &'a str,
    generation: Option<String>,
}

impl<'a> Updated<'a> {
    /// `hash` is that of the current revision.
    pub(super) fn of(set: &DaemonSet, hash: &'a str) -> Self {
        Self { hash, generation: generation(set).map(|generation| generation.to_string()) }
    }

    /// Whether the pod is of the current template (`IsPodUpdated`).
    pub(super) fn is(&self, pod: &Pod) -> bool {
        let by_generation = self
            .generation
            .as_deref()
            .is_some_and(|wanted| pod::label(pod, GENERATION_LABEL) == Some(wanted));
        by_generation || self.has_hash(pod)
    }

    /// Whether the pod carries the hash of the current revision.
    pub(super) fn has_hash(&self, pod: &Pod) -> bool {
        pod::label(pod, history::POD_LABEL) == Some(self.hash)
    }
}

/// Whether the pod is being deleted.
pub(super) fn is_going(pod: &Pod) -> bool {
    pod.metadata.deletion_timestamp.is_some()
}

/// Sorts pods: those with a node first, then the oldest (`podByCreationTimestampAndPhase`).
pub(super) fn by_age(pods: &mut [Arc<Pod>]) {
    pods.sort_by(|a, b| {
        let rank = |pod: &Pod| {
            let meta = &pod.metadata;
            (pod::node_name(pod).is_empty(), meta.creation_timestamp.clone(), meta.name.clone())
        };
        rank(a).cmp(&rank(b))
    });
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::tests::{daemon_set, pod_on};
    use super::*;

    fn tolerations(spec: serde_json::Value) -> Vec<Toleration> {
        let mut spec: PodSpec = kubewright_objects::from_value(spec).expect("a spec");
        tolerate(&mut spec);
        spec.tolerations.expect("tolerations")
    }

    #[test]
    fn a_daemon_tolerates_what_is_wrong_with_nodes() {
        assert_eq!(tolerations(json!({"containers": []})).len(), 6);
        assert_eq!(tolerations(json!({"containers": [], "hostNetwork": true})).len(), 7);
        let limited = json!({"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute",
            "tolerationSeconds": 300});
        let all = tolerations(json!({"containers": [], "tolerations": [limited]}));
        assert_eq!((all.len(), all[0].toleration_seconds), (6, None));
    }

    #[test]
    fn a_pod_is_tied_to_its_node_and_labelled_with_its_revision() {
        let set = daemon_set();
        let template = for_node(template(&set, "abc"), "n1");
        let labels = template.metadata.as_ref().and_then(|meta| meta.labels.clone()).expect("labels");
        assert_eq!((labels[history::POD_LABEL].as_str(), labels[GENERATION_LABEL].as_str()), ("abc", "1"));
        let pod = Pod { spec: template.spec, ..Pod::default() };
        assert_eq!(target(&pod), Some("n1"));
    }

    #[test]
    fn a_pod_is_updated_by_its_hash_or_its_generation() {
        let set = daemon_set();
        let updated = Updated::of(&set, "new");
        assert!(updated.is(&pod_on("n", "new", None)));
        let mut old = pod_on("n", "old", None);
        assert!(!updated.is(&old));
        old.metadata.labels.as_mut().expect("labels").insert(GENERATION_LABEL.into(), "1".into());
        assert!(updated.is(&old) && !updated.has_hash(&old));
    }

    #[test]
    fn pods_with_a_node_come_before_waiting_ones_and_old_before_young() {
        let mut waiting = pod_on("n", "h", None);
        waiting.spec.as_mut().expect("a spec").node_name = None;
        waiting.metadata.name = Some("a".into());
        let mut pods = [waiting, pod_on("n", "h", None)].map(Arc::new);
        by_age(&mut pods);
        assert_eq!(pods[1].metadata.name.as_deref(), Some("a"));
    }
}
