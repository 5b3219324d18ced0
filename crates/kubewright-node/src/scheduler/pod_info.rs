//! What the scheduler knows of a pod, worked out once.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Pod, PodAffinityTerm, PodSpec, PodStatus, Toleration, Volume};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::api::ObjectMeta;
use kube::core::{Selector, SelectorExt};
use serde_json::json;

use super::resources::{Resources, Scored};
use crate::facts::tolerations;
use crate::selection::RequiredNodeAffinity;

/// A port of the node that a pod takes: protocol, number and address.
pub(super) type HostPort = (String, i32, String);

/// The labels of objects.
pub(super) type Labels = BTreeMap<String, String>;

/// What affinities and spreading know pods by. The pods of one owner share it, so counting classes costs less than
/// counting pods.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Class {
    pub(super) namespace: String,
    pub(super) labels: Labels,
}

/// A pod, waiting or placed.
#[derive(Clone, Debug)]
pub(super) struct PodInfo {
    pub(super) pod: Arc<Pod>,
    pub(super) uid: Arc<str>,
    pub(super) class: Arc<Class>,
    pub(super) priority: i32,
    pub(super) requests: Resources,
    pub(super) scored: Scored,
    pub(super) ports: Vec<HostPort>,
    pub(super) terms: Option<Arc<Terms>>,
    pub(super) is_terminating: bool,
}

impl PodInfo {
    /// All that decisions need of `pod`.
    pub(super) fn of(pod: Arc<Pod>) -> Self {
        let meta = &pod.metadata;
        let class = Class {
            namespace: meta.namespace.clone().unwrap_or_default(),
            labels: meta.labels.clone().unwrap_or_default(),
        };
        Self {
            uid: meta.uid.as_deref().unwrap_or_default().into(),
            priority: pod.spec.as_ref().and_then(|spec| spec.priority).unwrap_or_default(),
            requests: Resources::requested(&pod),
            scored: Resources::scored(&pod),
            ports: host_ports(&pod),
            terms: Terms::of(&pod, &class.namespace).map(Arc::new),
            is_terminating: meta.deletion_timestamp.is_some(),
            class: Arc::new(class),
            pod,
        }
    }

    /// What decisions on others ask of a pod that has its node: it stays for long, and the pod itself is large.
    pub(super) fn placed(pod: Arc<Pod>) -> Self {
        let rest = Arc::new(without_containers(&pod));
        Self { pod: rest, ..Self::of(pod) }
    }

    /// The pod's namespace.
    pub(super) fn namespace(&self) -> &str {
        &self.class.namespace
    }

    /// `spec.tolerations`.
    pub(super) fn tolerations(&self) -> &[Toleration] {
        tolerations(&self.pod)
    }

    /// Which nodes the pod asks for.
    pub(super) fn required_node_affinity(&self) -> RequiredNodeAffinity<'_> {
        self.pod.spec.as_ref().map(RequiredNodeAffinity::of).unwrap_or_default()
    }

    /// `status.nominatedNodeName`; empty when there is none.
    pub(super) fn nominated_node(&self) -> &str {
        let status = self.pod.status.as_ref();
        status.and_then(|status| status.nominated_node_name.as_deref()).unwrap_or_default()
    }

    /// Since when the pod runs; one that does not say is taken for the newest.
    pub(super) fn started(&self) -> Timestamp {
        let start = self.pod.status.as_ref().and_then(|status| status.start_time.as_ref());
        start.map_or(Timestamp::MAX, |start| start.0)
    }
}

/// Who the pod is, what volumes it shares with others, and how it stands.
fn without_containers(pod: &Pod) -> Pod {
    let (meta, spec) = (&pod.metadata, pod.spec.as_ref());
    let shared = |volume: &&Volume| {
        volume.persistent_volume_claim.is_some() || volume.ephemeral.is_some() || volume.csi.is_some()
    };
    let volumes: Vec<_> =
        spec.and_then(|spec| spec.volumes.as_ref()).into_iter().flatten().filter(shared).cloned().collect();
    Pod {
        metadata: ObjectMeta {
            name: meta.name.clone(),
            namespace: meta.namespace.clone(),
            uid: meta.uid.clone(),
            resource_version: meta.resource_version.clone(),
            generation: meta.generation,
            ..ObjectMeta::default()
        },
        spec: (!volumes.is_empty()).then(|| PodSpec { volumes: Some(volumes), ..PodSpec::default() }),
        status: pod.status.as_ref().map(|status| PodStatus {
            start_time: status.start_time.clone(),
            conditions: status.conditions.clone(),
            ..PodStatus::default()
        }),
    }
}

/// The affinities of a pod to other pods.
#[derive(Clone, Debug)]
pub(super) struct Terms {
    /// Equal for pods whose terms say the same.
    pub(super) key: String,
    pub(super) affinity: Vec<Term>,
    pub(super) anti_affinity: Vec<Term>,
    /// What a matching pod adds to the score of its topology; negative for anti-affinity.
    pub(super) preferred: Vec<(i64, Term)>,
}

impl Terms {
    fn of(pod: &Pod, namespace: &str) -> Option<Self> {
        let affinity = pod.spec.as_ref()?.affinity.as_ref()?;
        let (near, far) = (affinity.pod_affinity.as_ref(), affinity.pod_anti_affinity.as_ref());
        let all = |terms: Option<&Vec<PodAffinityTerm>>| {
            terms.into_iter().flatten().map(|term| Term::of(term, namespace)).collect::<Vec<_>>()
        };
        let weighted_near =
            near.and_then(|near| near.preferred_during_scheduling_ignored_during_execution.as_ref());
        let weighted_far =
            far.and_then(|far| far.preferred_during_scheduling_ignored_during_execution.as_ref());
        let preferred = weighted_near
            .into_iter()
            .flatten()
            .map(|term| (1, term))
            .chain(weighted_far.into_iter().flatten().map(|term| (-1, term)))
            .map(|(sign, term)| (sign * i64::from(term.weight), Term::of(&term.pod_affinity_term, namespace)))
            .collect();
        let terms = Self {
            key: json!([namespace, near, far]).to_string(),
            affinity: all(
                near.and_then(|near| near.required_during_scheduling_ignored_during_execution.as_ref())
            ),
            anti_affinity: all(
                far.and_then(|far| far.required_during_scheduling_ignored_during_execution.as_ref())
            ),
            preferred,
        };
        let is_any =
            !(terms.affinity.is_empty() && terms.anti_affinity.is_empty() && terms.preferred.is_empty());
        is_any.then_some(terms)
    }
}

/// One term: which pods, and what "near" means. (`matchLabelKeys` are part of the selector by the time that a pod is
/// stored.)
#[derive(Clone, Debug)]
pub(super) struct Term {
    pub(super) topology_key: String,
    selector: Option<Selector>,
    namespaces: BTreeSet<String>,
    namespace_selector: Option<Selector>,
}

impl Term {
    fn of(term: &PodAffinityTerm, namespace: &str) -> Self {
        let mut namespaces: BTreeSet<String> = term.namespaces.iter().flatten().cloned().collect();
        if namespaces.is_empty() && term.namespace_selector.is_none() {
            namespaces.insert(namespace.to_owned());
        }
        Self {
            topology_key: term.topology_key.clone(),
            selector: selector(term.label_selector.as_ref()),
            namespaces,
            namespace_selector: selector(term.namespace_selector.as_ref()),
        }
    }

    /// Whether the term means pods of this class.
    pub(super) fn matches(&self, class: &Class, namespace_labels: &dyn Fn(&str) -> Labels) -> bool {
        self.selector.as_ref().is_some_and(|selector| selector.matches(&class.labels))
            && (self.namespaces.contains(&class.namespace)
                || self.namespace_selector.as_ref().is_some_and(|selector| {
                    selector.selects_all() || selector.matches(&namespace_labels(&class.namespace))
                }))
    }
}

/// The selector; none selects nothing, and so does one that makes no sense.
pub(super) fn selector(selector: Option<&LabelSelector>) -> Option<Selector> {
    Selector::try_from(selector?.clone()).ok()
}

fn host_ports(pod: &Pod) -> Vec<HostPort> {
    let Some(spec) = &pod.spec else { return Vec::new() };
    let sidecars = spec.init_containers.iter().flatten();
    let sidecars = sidecars.filter(|container| container.restart_policy.as_deref() == Some("Always"));
    spec.containers
        .iter()
        .chain(sidecars)
        .flat_map(|container| container.ports.iter().flatten())
        .filter_map(|port| {
            let number = port.host_port.filter(|number| *number > 0)?;
            let protocol = port.protocol.clone().unwrap_or_else(|| "TCP".into());
            Some((protocol, number, port.host_ip.clone().unwrap_or_default()))
        })
        .collect()
}

/// Whether two pods on one node would collide in a port of it.
pub(crate) fn want_the_same_port(one: &Pod, other: &Pod) -> bool {
    let taken = host_ports(other);
    host_ports(one).iter().any(|port| taken.iter().any(|other| collide(port, other)))
}

/// Whether two pods cannot both have these: the same protocol and number collide, unless on two different addresses.
pub(super) fn collide(a: &HostPort, b: &HostPort) -> bool {
    let any = |address: &str| address.is_empty() || address == "0.0.0.0";
    (&a.0, a.1) == (&b.0, b.1) && (any(&a.2) || any(&b.2) || a.2 == b.2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(namespace: &str, labels: &[(&str, &str)]) -> Class {
        let labels = labels.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Class { namespace: namespace.to_owned(), labels }
    }

    fn term(term: &serde_json::Value) -> Term {
        Term::of(&kubewright_objects::from_value(term).expect("a term"), "shop")
    }

    #[test]
    fn a_term_means_pods_of_its_own_namespace_unless_it_names_others() {
        let labels_of = |namespace: &str| Labels::from([("name".to_owned(), namespace.to_owned())]);
        let plain = json!({"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "web"}}});
        let web = |namespace| class(namespace, &[("app", "web")]);
        assert!(term(&plain).matches(&web("shop"), &labels_of));
        assert!(!term(&plain).matches(&web("other"), &labels_of));
        assert!(!term(&plain).matches(&class("shop", &[("app", "db")]), &labels_of));

        let mut named = plain.clone();
        named["namespaces"] = json!(["other"]);
        assert!(term(&named).matches(&web("other"), &labels_of));
        assert!(!term(&named).matches(&web("shop"), &labels_of));

        let mut selected = plain.clone();
        selected["namespaceSelector"] = json!({"matchLabels": {"name": "third"}});
        assert!(term(&selected).matches(&web("third"), &labels_of));
        assert!(!term(&selected).matches(&web("shop"), &labels_of));
        selected["namespaceSelector"] = json!({});
        assert!(term(&selected).matches(&web("shop"), &labels_of));

        let silent = json!({"topologyKey": "zone"});
        assert!(!term(&silent).matches(&web("shop"), &labels_of), "no selector selects nothing");
    }

    #[test]
    fn a_host_port_is_free_on_another_address() {
        let port = |address: &str| ("TCP".to_owned(), 80, address.to_owned());
        assert!(!collide(&port("10.0.0.1"), &port("10.0.0.2")));
        assert!(collide(&port("10.0.0.1"), &port("10.0.0.1")));
        assert!(collide(&port("10.0.0.1"), &port("")));
        assert!(!collide(&port(""), &("UDP".to_owned(), 80, String::new())));
    }
}
