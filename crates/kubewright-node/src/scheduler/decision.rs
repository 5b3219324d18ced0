//! One decision: where a pod goes, or why nowhere (`schedulePod` in `pkg/scheduler/schedule_one.go`).

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound::{Excluded, Included, Unbounded};
use std::sync::Arc;

use super::cluster_state::ClusterState;
use super::devices::{Devices, NoDevices, Reservation};
use super::filter::{Plugin, Question, Refusal};
use super::listers::Listers;
use super::node_state::NodeState;
use super::pod_info::PodInfo;
use super::preemption::{Preemption, preempt};
use super::score;
use super::volumes::{Binding, Claims};

/// Up to so many nodes all are looked at, and at least so many of more (`minFeasibleNodesToFind`).
const NODES_AT_LEAST: usize = 100;
/// At least so many hundredths of them (`minFeasibleNodesPercentageToFind`).
const PERCENT_AT_LEAST: usize = 5;

/// Where a pod goes.
#[derive(Clone, Debug)]
pub(super) enum Decision {
    /// To this node, once this is written.
    Place { node: Arc<str>, bindings: Vec<Binding>, reservations: Vec<Reservation> },
    /// Nowhere, and nothing is said: what it needs is not there yet.
    Hold(BTreeSet<Plugin>),
    /// Nowhere for now.
    Refuse(Refused),
}

/// That a pod goes nowhere, and what is to be done about it.
#[derive(Clone, Debug)]
pub(super) struct Refused {
    /// The sentence of the condition and the event.
    pub(super) message: String,
    /// What stood against it: when that changes, it is worth another try.
    pub(super) by: BTreeSet<Plugin>,
    pub(super) nomination: Nomination,
    /// Those that are to go, the most important first.
    pub(super) victims: Vec<Arc<PodInfo>>,
}

/// What becomes of `status.nominatedNodeName`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Nomination {
    Keep,
    Clear,
    Node(Arc<str>),
}

/// Makes decisions; remembers where it stopped looking, so that each node has its turn in large clusters.
#[derive(Debug, Default)]
pub(super) struct Decider {
    next: Option<Arc<str>>,
}

impl Decider {
    /// Where `pod_info` goes, or why nowhere.
    pub(super) fn decide(
        &mut self,
        pod_info: &PodInfo,
        cluster: &ClusterState,
        listers: &dyn Listers,
    ) -> Decision {
        if cluster.nodes().is_empty() {
            return Decision::Refuse(Refused {
                message: "no nodes available to schedule pods".into(),
                by: BTreeSet::from([Plugin::NodeName]),
                nomination: Nomination::Keep,
                victims: Vec::new(),
            });
        }
        let devices = match Devices::of(pod_info, listers) {
            Ok(devices) => devices,
            Err(NoDevices::NotYet) => return Decision::Hold(BTreeSet::from([Plugin::DynamicResources])),
            Err(NoDevices::Because(reason)) => {
                return refuse_everywhere(pod_info, cluster, listers, &reason, Plugin::DynamicResources);
            }
        };
        let claims = match Claims::of(pod_info, listers) {
            Ok(claims) => claims,
            Err(reason) => {
                return refuse_everywhere(pod_info, cluster, listers, &reason, Plugin::VolumeBinding);
            }
        };
        let question = Question::about(pod_info, cluster, &claims, &devices, listers);
        let named = question.wanted.names();
        if named.as_ref().is_some_and(BTreeSet::is_empty) {
            let reason = "pod affinity terms conflict";
            return refuse_everywhere(pod_info, cluster, listers, reason, Plugin::NodeAffinity);
        }
        if let Some(node) = cluster.node(pod_info.nominated_node())
            && question.asked_of(node, cluster).is_ok()
        {
            return place(pod_info, node, &claims, &devices);
        }
        let mut refusals = BTreeMap::new();
        let feasible = match &named {
            Some(names) => {
                let nodes = names.iter().filter_map(|name| cluster.node(name));
                filter(nodes, usize::MAX, &question, cluster, &mut refusals)
            }
            None => self.search(&question, cluster, &mut refusals),
        };
        let labels = |namespace: &str| listers.namespace_labels(namespace);
        let best = score::best(pod_info, cluster, &feasible, &labels, || listers.of_owner(pod_info));
        match best {
            Some(node) => place(pod_info, node, &claims, &devices),
            None => refuse(&question, cluster, listers, &refusals),
        }
    }

    /// Looks for enough nodes that will do, from where the last search ended (`findNodesThatPassFilters`).
    fn search<'c>(
        &mut self,
        question: &Question<'_>,
        cluster: &'c ClusterState,
        refusals: &mut BTreeMap<Arc<str>, Refusal>,
    ) -> Vec<&'c NodeState> {
        let all = cluster.nodes();
        let enough = enough(all.len());
        if enough >= all.len() {
            return filter(all.values(), enough, question, cluster, refusals);
        }
        let from = |start: &Arc<str>| all.range::<Arc<str>, _>((Included(start), Unbounded));
        let before = |end: &Arc<str>| all.range::<Arc<str>, _>((Unbounded, Excluded(end)));
        let next = self.next.take().or_else(|| all.keys().next().cloned());
        let Some(next) = next else { return Vec::new() };
        let mut order = from(&next).chain(before(&next)).map(|(_, node)| node);
        let feasible = filter(&mut order, enough, question, cluster, refusals);
        self.next = order.next().map(|node| Arc::clone(&node.name));
        feasible
    }
}

/// How many nodes that will do are enough to choose from (`numFeasibleNodesToFind`).
fn enough(nodes: usize) -> usize {
    if nodes < NODES_AT_LEAST {
        return nodes;
    }
    let percent = 50_usize.saturating_sub(nodes / 125).max(PERCENT_AT_LEAST);
    (nodes * percent / 100).max(NODES_AT_LEAST)
}

fn filter<'c>(
    nodes: impl Iterator<Item = &'c NodeState>,
    enough: usize,
    question: &Question<'_>,
    cluster: &ClusterState,
    refusals: &mut BTreeMap<Arc<str>, Refusal>,
) -> Vec<&'c NodeState> {
    let mut feasible = Vec::new();
    for node in nodes {
        match question.asked_of(node, cluster) {
            Ok(()) => feasible.push(node),
            Err(refusal) => {
                refusals.insert(Arc::clone(&node.name), refusal);
            }
        }
        if feasible.len() >= enough {
            break;
        }
    }
    feasible
}

fn place(pod_info: &PodInfo, node: &NodeState, claims: &Claims, devices: &Devices) -> Decision {
    Decision::Place {
        node: Arc::clone(&node.name),
        bindings: claims.on(node).unwrap_or_default(),
        reservations: devices.on(node, &pod_info.pod).unwrap_or_default(),
    }
}

/// The pod fits nowhere, for a reason that has nothing to do with nodes.
fn refuse_everywhere(
    pod_info: &PodInfo,
    cluster: &ClusterState,
    listers: &dyn Listers,
    reason: &str,
    by: Plugin,
) -> Decision {
    let (claims, devices) = (Claims::default(), Devices::default());
    let question = Question::about(pod_info, cluster, &claims, &devices, listers);
    let (suffix, nomination, _) = consequences(&question, cluster, listers, &BTreeMap::new());
    let all = cluster.nodes().len();
    Decision::Refuse(Refused {
        message: format!("0/{all} nodes are available: {reason}.{suffix}"),
        by: BTreeSet::from([by]),
        nomination,
        victims: Vec::new(),
    })
}

fn refuse(
    question: &Question<'_>,
    cluster: &ClusterState,
    listers: &dyn Listers,
    refusals: &BTreeMap<Arc<str>, Refusal>,
) -> Decision {
    let mut reasons: BTreeMap<Cow<'static, str>, usize> = BTreeMap::new();
    for reason in refusals.values().flat_map(|refusal| &refusal.reasons) {
        *reasons.entry(reason.clone()).or_default() += 1;
    }
    let mut by: BTreeSet<Plugin> = refusals.values().map(|refusal| refusal.by).collect();
    let unasked = cluster.nodes().len() - refusals.len();
    if unasked > 0 {
        by.insert(Plugin::NodeAffinity);
        reasons.insert("node(s) didn't satisfy plugin(s) [NodeAffinity]".into(), unasked);
    }
    let (suffix, nomination, victims) = consequences(question, cluster, listers, refusals);
    let message = unavailable(cluster.nodes().len(), &reasons) + &suffix;
    Decision::Refuse(Refused { message, by, nomination, victims })
}

/// What preemption does about it: what it says, and who has to go.
fn consequences(
    question: &Question<'_>,
    cluster: &ClusterState,
    listers: &dyn Listers,
    refusals: &BTreeMap<Arc<str>, Refusal>,
) -> (String, Nomination, Vec<Arc<PodInfo>>) {
    match preempt(question, cluster, refusals, &listers.budgets()) {
        Preemption::Victims { node, victims } => (String::new(), Nomination::Node(node), victims),
        Preemption::NotEligible(reason) => (format!(" preemption: {reason}"), Nomination::Keep, Vec::new()),
        Preemption::Useless(reason) => (format!(" preemption: {reason}"), Nomination::Clear, Vec::new()),
    }
}

/// The sentence that counts what stood against a pod (`FitError.Error` in `pkg/scheduler/framework/types.go`).
pub(super) fn unavailable(nodes: usize, reasons: &BTreeMap<Cow<'static, str>, usize>) -> String {
    let mut counted: Vec<_> = reasons.iter().map(|(reason, count)| format!("{count} {reason}")).collect();
    counted.sort();
    if counted.is_empty() {
        return format!("0/{nodes} nodes are available:");
    }
    format!("0/{nodes} nodes are available: {}.", counted.join(", "))
}
