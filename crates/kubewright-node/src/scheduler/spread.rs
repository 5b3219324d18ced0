//! Topology spread constraints (`pkg/scheduler/framework/plugins/podtopologyspread`).

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{Pod, TopologySpreadConstraint};
use kube::core::{Expression, Selector, SelectorExt};

use super::affinity::staying_on;
use super::cluster_state::{ClusterState, Count};
use super::node_state::NodeState;
use super::pod_info::{Labels, PodInfo, selector};
use crate::selection::{RequiredNodeAffinity, is_tolerated};

const HOSTNAME: &str = "kubernetes.io/hostname";
const ZONE: &str = "topology.kubernetes.io/zone";

/// A constraint with its defaults.
#[derive(Clone, Debug)]
struct Constraint {
    max_skew: i64,
    topology_key: String,
    selector: Option<Selector>,
    min_domains: usize,
    honors_affinity: bool,
    honors_taints: bool,
}

impl Constraint {
    fn of(constraint: &TopologySpreadConstraint, labels: &Labels) -> Self {
        let mut wanted = selector(constraint.label_selector.as_ref());
        if let Some(wanted) = &mut wanted {
            let keys = constraint.match_label_keys.iter().flatten();
            let own = keys.filter_map(|key| Some((key.clone(), labels.get(key)?.clone())));
            wanted.extend(own.map(|(key, value)| Expression::Equal(key, value)));
        }
        let honors =
            |policy: Option<&String>, default: bool| policy.map_or(default, |policy| policy == "Honor");
        Self {
            max_skew: i64::from(constraint.max_skew),
            topology_key: constraint.topology_key.clone(),
            selector: wanted,
            min_domains: usize::try_from(constraint.min_domains.unwrap_or(1)).unwrap_or(1),
            honors_affinity: honors(constraint.node_affinity_policy.as_ref(), true),
            honors_taints: honors(constraint.node_taints_policy.as_ref(), false),
        }
    }

    /// One of those that hold for pods that name none (`systemDefaultConstraints`).
    fn by_default(topology_key: &str, max_skew: i64, selector: &Selector) -> Self {
        Self {
            max_skew,
            topology_key: topology_key.to_owned(),
            selector: Some(selector.clone()),
            min_domains: 1,
            honors_affinity: true,
            honors_taints: false,
        }
    }

    fn matches(&self, labels: &Labels) -> bool {
        self.selector.as_ref().is_some_and(|selector| selector.matches(labels))
    }

    /// Whether pods of this class count; a selector without requirements counts none (`countPodsMatchSelector`).
    fn counts(&self, labels: &Labels) -> bool {
        self.selector.as_ref().is_some_and(|selector| !selector.selects_all()) && self.matches(labels)
    }

    /// Whether pods on this node count.
    fn includes(&self, pod_info: &PodInfo, wanted: RequiredNodeAffinity<'_>, node: &NodeState) -> bool {
        let tolerated = || node.barring.iter().all(|taint| is_tolerated(taint, pod_info.tolerations()));
        (!self.honors_affinity || wanted.matches(node.info())) && (!self.honors_taints || tolerated())
    }
}

fn constraints(pod: &Pod, when_unsatisfiable: &str, labels: &Labels) -> Vec<Constraint> {
    let all = pod.spec.as_ref().and_then(|spec| spec.topology_spread_constraints.as_ref());
    let all = all.into_iter().flatten().filter(|one| one.when_unsatisfiable == when_unsatisfiable);
    all.map(|one| Constraint::of(one, labels)).collect()
}

fn has_all(constraints: &[Constraint], node: &NodeState) -> bool {
    constraints.iter().all(|constraint| node.label(&constraint.topology_key).is_some())
}

/// Why a node will not do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Skewed {
    /// It is in no domain of the constraint.
    NoDomain,
    /// Its domain would have too many.
    TooMany,
}

/// The constraints that must hold, with the pods of each domain.
#[derive(Clone, Debug, Default)]
pub(super) struct Spread(Vec<(Constraint, BTreeMap<String, i64>)>);

impl Spread {
    /// How the pods of `cluster` are spread, as `pod_info`'s constraints count.
    pub(super) fn of(pod_info: &PodInfo, cluster: &ClusterState) -> Self {
        let constraints = constraints(&pod_info.pod, "DoNotSchedule", &pod_info.class.labels);
        if constraints.is_empty() {
            return Self::default();
        }
        let wanted = pod_info.required_node_affinity();
        let counted: Vec<Vec<_>> =
            constraints.iter().map(|constraint| counted(constraint, pod_info, cluster)).collect();
        let mut domains = vec![BTreeMap::new(); constraints.len()];
        for node in cluster.nodes().values().filter(|node| has_all(&constraints, node)) {
            for (index, constraint) in constraints.iter().enumerate() {
                if constraint.includes(pod_info, wanted, node) {
                    let value = node.label(&constraint.topology_key).unwrap_or_default();
                    *domains[index].entry(value.to_owned()).or_default() +=
                        staying_on(&counted[index], &node.name);
                }
            }
        }
        Self(constraints.into_iter().zip(domains).collect())
    }

    /// Takes into account that `other` comes to `node`, or with -1 that it leaves.
    pub(super) fn adjust(&mut self, pod_info: &PodInfo, other: &PodInfo, node: &NodeState, sign: i64) {
        let has_all = self.0.iter().all(|(constraint, _)| node.label(&constraint.topology_key).is_some());
        if !has_all || other.namespace() != pod_info.namespace() || other.is_terminating {
            return;
        }
        let wanted = pod_info.required_node_affinity();
        for (constraint, domains) in &mut self.0 {
            if constraint.matches(&other.class.labels) && constraint.includes(pod_info, wanted, node) {
                let value = node.label(&constraint.topology_key).unwrap_or_default();
                *domains.entry(value.to_owned()).or_default() += sign;
            }
        }
    }

    /// The fewest pods in a domain, for each constraint; worked out once for many nodes.
    pub(super) fn minima(&self) -> Vec<i64> {
        let fewest = |(constraint, domains): &(Constraint, BTreeMap<String, i64>)| {
            if domains.len() < constraint.min_domains {
                return 0;
            }
            domains.values().min().copied().unwrap_or_default()
        };
        self.0.iter().map(fewest).collect()
    }

    /// Whether the pod may come to `node` when `minima` are the fewest in a domain.
    pub(super) fn allow(&self, pod_info: &PodInfo, node: &NodeState, minima: &[i64]) -> Result<(), Skewed> {
        for ((constraint, domains), fewest) in self.0.iter().zip(minima) {
            let Some(value) = node.label(&constraint.topology_key) else { return Err(Skewed::NoDomain) };
            let itself = i64::from(constraint.matches(&pod_info.class.labels));
            let there = domains.get(value).copied().unwrap_or_default();
            if there + itself - fewest > constraint.max_skew {
                return Err(Skewed::TooMany);
            }
        }
        Ok(())
    }
}

/// The counts by node of the classes that a constraint counts.
fn counted<'a>(
    constraint: &Constraint,
    pod_info: &'a PodInfo,
    cluster: &'a ClusterState,
) -> Vec<&'a BTreeMap<Arc<str>, Count>> {
    let meant = cluster.classes_in(pod_info.namespace());
    meant.filter(|(class, _)| constraint.counts(&class.labels)).map(|(_, by_node)| by_node).collect()
}

/// The constraints that had better hold, and what each feasible node scores by them; 0 to 100 (`scoring.go`).
///
/// `of_owner` is what selects the pods of the same service or owner: pods that name no constraints are spread over
/// nodes and zones by it.
pub(super) fn scores(
    pod_info: &PodInfo,
    cluster: &ClusterState,
    feasible: &[&NodeState],
    of_owner: impl FnOnce() -> Option<Selector>,
) -> Option<Vec<i64>> {
    let named = pod_info.pod.spec.as_ref().and_then(|spec| spec.topology_spread_constraints.as_ref());
    let names_some = named.is_some_and(|named| !named.is_empty());
    let constraints = if names_some {
        constraints(&pod_info.pod, "ScheduleAnyway", &pod_info.class.labels)
    } else {
        let selector = of_owner().filter(|selector| !selector.selects_all())?;
        vec![Constraint::by_default(HOSTNAME, 3, &selector), Constraint::by_default(ZONE, 5, &selector)]
    };
    if constraints.is_empty() {
        return None;
    }
    let is_counted = |node: &NodeState| !names_some || has_all(&constraints, node);
    let mut sums = vec![0.0_f64; feasible.len()];
    for constraint in &constraints {
        let counts = counted(constraint, pod_info, cluster);
        let domains = if constraint.topology_key == HOSTNAME {
            None
        } else {
            Some(domain_counts(constraint, pod_info, cluster, feasible, &counts, &is_counted))
        };
        let size = domains
            .as_ref()
            .map_or_else(|| feasible.iter().filter(|node| is_counted(node)).count(), BTreeMap::len);
        #[expect(clippy::cast_precision_loss, reason = "nodes and pods of a cluster are few")]
        for (sum, node) in sums.iter_mut().zip(feasible) {
            let Some(value) = node.label(&constraint.topology_key).filter(|_| is_counted(node)) else {
                continue;
            };
            let count = domains.as_ref().map_or_else(
                || staying_on(&counts, &node.name),
                |domains| domains.get(value).copied().unwrap_or_default(),
            );
            *sum += count as f64 * (size as f64 + 2.0).ln() + (constraint.max_skew - 1) as f64;
        }
    }
    Some(normalized(&sums, feasible, is_counted))
}

/// The pods in each domain that a feasible node is in.
fn domain_counts<'a>(
    constraint: &Constraint,
    pod_info: &PodInfo,
    cluster: &ClusterState,
    feasible: &[&'a NodeState],
    counts: &[&BTreeMap<Arc<str>, Count>],
    is_counted: &dyn Fn(&NodeState) -> bool,
) -> BTreeMap<&'a str, i64> {
    let of_feasible = feasible.iter().filter(|node| is_counted(node));
    let mut domains: BTreeMap<&str, i64> =
        of_feasible.filter_map(|node| Some((node.label(&constraint.topology_key)?, 0))).collect();
    if domains.is_empty() {
        return domains;
    }
    let wanted = pod_info.required_node_affinity();
    for (name, count) in counts.iter().flat_map(|by_node| by_node.iter()) {
        let Some(node) = cluster.node(name).filter(|node| is_counted(node)) else { continue };
        let Some(value) = node.label(&constraint.topology_key) else { continue };
        if let Some(sum) = domains.get_mut(value)
            && constraint.includes(pod_info, wanted, node)
        {
            *sum += count.staying;
        }
    }
    domains
}

/// The fewer pods are around, the more: from the sums to 0..=100.
fn normalized(sums: &[f64], feasible: &[&NodeState], is_counted: impl Fn(&NodeState) -> bool) -> Vec<i64> {
    #[expect(clippy::cast_possible_truncation, reason = "scores are small")]
    let rounded: Vec<Option<i64>> =
        sums.iter().zip(feasible).map(|(sum, node)| is_counted(node).then_some(sum.round() as i64)).collect();
    let most = rounded.iter().flatten().max().copied().unwrap_or_default();
    let least = rounded.iter().flatten().min().copied().unwrap_or_default();
    rounded
        .into_iter()
        .map(|sum| match sum {
            None => 0,
            Some(_) if most == 0 => 100,
            Some(sum) => 100 * (most + least - sum) / most,
        })
        .collect()
}
