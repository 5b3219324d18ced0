//! Which pods would have to go for a more important one (`pkg/scheduler/framework/preemption` and
//! `plugins/defaultpreemption`).

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::core::{Selector, SelectorExt};
use kubewright_objects::optional;

use super::cluster_state::ClusterState;
use super::decision::unavailable;
use super::filter::{Question, Refusal};
use super::node_state::NodeState;
use super::pod_info::{PodInfo, selector};

/// How many nodes with possible victims are looked at, in hundredths of those that could have any, and at least.
const CANDIDATES_PERCENT: usize = 10;
const CANDIDATES_AT_LEAST: usize = 100;

/// What came of looking for victims.
#[derive(Clone, Debug)]
pub(super) enum Preemption {
    /// These have to go from this node.
    Victims { node: Arc<str>, victims: Vec<Arc<PodInfo>> },
    /// The pod may not ask for any.
    NotEligible(&'static str),
    /// It would not help; this is why.
    Useless(String),
}

/// Looks for victims for the pod in question, which `refusals` kept off every node.
pub(super) fn preempt(
    question: &Question<'_>,
    cluster: &ClusterState,
    refusals: &BTreeMap<Arc<str>, Refusal>,
    budgets: &[Arc<PodDisruptionBudget>],
) -> Preemption {
    if let Some(reason) = ineligible(question.pod_info, cluster, refusals) {
        return Preemption::NotEligible(reason);
    }
    let resolvable = refusals.iter().filter(|(_, refusal)| refusal.is_resolvable);
    let potential: Vec<&NodeState> = resolvable.filter_map(|(name, _)| cluster.node(name)).collect();
    let enough = (potential.len() * CANDIDATES_PERCENT / 100).max(CANDIDATES_AT_LEAST);
    let mut budgets: Vec<Budget> = budgets.iter().filter_map(|budget| Budget::of(budget)).collect();
    let mut candidates: Vec<Candidate<'_>> = Vec::new();
    let mut against: BTreeMap<Cow<'static, str>, usize> = BTreeMap::new();
    for node in &potential {
        match Candidate::on(node, question, cluster, &mut budgets) {
            Ok(candidate) => candidates.push(candidate),
            Err(reasons) => {
                for reason in reasons {
                    *against.entry(reason).or_default() += 1;
                }
            }
        }
        if candidates.len() >= enough && candidates.iter().any(|candidate| candidate.violations == 0) {
            break;
        }
    }
    let Some(best) = candidates.into_iter().min_by_key(Candidate::cost) else {
        let rest = cluster.nodes().len() - potential.len();
        if rest > 0 {
            against.insert("Preemption is not helpful for scheduling".into(), rest);
        }
        return Preemption::Useless(unavailable(cluster.nodes().len(), &against));
    };
    Preemption::Victims { node: Arc::clone(&best.node.name), victims: best.victims }
}

/// Why the pod may not ask others to go (`PodEligibleToPreemptOthers`).
fn ineligible(
    pod_info: &PodInfo,
    cluster: &ClusterState,
    refusals: &BTreeMap<Arc<str>, Refusal>,
) -> Option<&'static str> {
    let policy = pod_info.pod.spec.as_ref().and_then(|spec| spec.preemption_policy.as_deref());
    if policy == Some("Never") {
        return Some("not eligible due to preemptionPolicy=Never.");
    }
    let node = cluster.node(pod_info.nominated_node())?;
    if refusals.get(&node.name).is_some_and(|refusal| !refusal.is_resolvable) {
        return None;
    }
    let is_making_room = |other: &Arc<PodInfo>| other.priority < pod_info.priority && was_preempted(other);
    let waits = node.pods.values().any(is_making_room);
    waits.then_some("not eligible due to a terminating pod on the nominated node.")
}

fn was_preempted(pod_info: &PodInfo) -> bool {
    pod_info.is_terminating
        && crate::facts::conditions(&pod_info.pod).iter().any(|condition| {
            condition.type_ == "DisruptionTarget"
                && condition.status == "True"
                && condition.reason.as_deref() == Some("PreemptionByScheduler")
        })
}

/// A node, and who would have to leave it: the most important first.
struct Candidate<'a> {
    node: &'a NodeState,
    victims: Vec<Arc<PodInfo>>,
    /// How many of them a budget protects.
    violations: usize,
}

impl<'a> Candidate<'a> {
    /// The fewest pods that have to leave `node` (`SelectVictimsOnNode`).
    fn on(
        node: &'a NodeState,
        question: &Question<'_>,
        cluster: &ClusterState,
        budgets: &mut [Budget],
    ) -> Result<Self, Vec<Cow<'static, str>>> {
        let pod_info = question.pod_info;
        let none = || vec!["No preemption victims found for incoming pod".into()];
        if cluster.lowest_priority().is_none_or(|lowest| lowest >= pod_info.priority) {
            return Err(none());
        }
        let lesser = node.pods.values().filter(|other| other.priority < pod_info.priority);
        let mut lesser: Vec<Arc<PodInfo>> = lesser.cloned().collect();
        if lesser.is_empty() {
            return Err(none());
        }
        let (mut question, mut emptied) = (question.supposing(), node.clone());
        for other in &lesser {
            question.suppose(other, &emptied, -1);
            emptied.remove(&other.uid);
        }
        question.asked_of(&emptied, cluster).map_err(|refusal| refusal.reasons)?;
        lesser.sort_by_key(|other| importance(other));
        let (protected, free) = split(lesser, budgets);
        let mut victims = Vec::new();
        let mut violations = 0;
        for (other, is_protected) in protected
            .into_iter()
            .map(|other| (other, true))
            .chain(free.into_iter().map(|other| (other, false)))
        {
            question.suppose(&other, &emptied, 1);
            emptied.add(Arc::clone(&other));
            if question.asked_of(&emptied, cluster).is_err() {
                question.suppose(&other, &emptied, -1);
                emptied.remove(&other.uid);
                violations += usize::from(is_protected);
                victims.push(other);
            }
        }
        if victims.is_empty() {
            // Somebody's promise stood against it a moment ago, and nothing does now: the next pass will place it.
            return Err(none());
        }
        victims.sort_by_key(|other| importance(other));
        Ok(Self { node, victims, violations })
    }

    /// The less, the better (`pickOneNodeForPreemption`).
    fn cost(&self) -> impl Ord + use<> {
        let highest = self.victims.first().map(|victim| victim.priority);
        let shifted = |victim: &Arc<PodInfo>| i64::from(victim.priority) + i64::from(i32::MAX) + 1;
        let first_start = self
            .victims
            .iter()
            .filter(|victim| Some(victim.priority) == highest)
            .map(|victim| victim.started())
            .min();
        (
            self.violations,
            highest,
            self.victims.iter().map(shifted).sum::<i64>(),
            self.victims.len(),
            Reverse(first_start),
        )
    }
}

/// The most important first: by priority, then those that run longer (`MoreImportantPod`).
fn importance(pod_info: &PodInfo) -> impl Ord + use<> {
    (Reverse(pod_info.priority), pod_info.started(), Arc::clone(&pod_info.uid))
}

/// What is left of a disruption budget.
struct Budget {
    namespace: String,
    selector: Selector,
    allowed: i32,
    left: i32,
    disrupted: Vec<String>,
}

impl Budget {
    /// A budget that selects nothing, or everything, protects nobody here.
    fn of(budget: &PodDisruptionBudget) -> Option<Self> {
        let wanted = selector(budget.spec.as_ref()?.selector.as_ref())?;
        let status = budget.status.as_ref();
        let disrupted = status.and_then(|status| status.disrupted_pods.as_ref());
        let allowed = status
            .and_then(|status| optional::<i32>(&status.disruptions_allowed).copied())
            .unwrap_or_default();
        (!wanted.selects_all()).then(|| Self {
            namespace: budget.metadata.namespace.clone().unwrap_or_default(),
            selector: wanted,
            allowed,
            left: allowed,
            disrupted: disrupted.into_iter().flatten().map(|(name, _)| name.clone()).collect(),
        })
    }

    fn protects(&self, pod_info: &PodInfo) -> bool {
        let name = pod_info.pod.metadata.name.as_deref().unwrap_or_default();
        self.namespace == pod_info.namespace()
            && !pod_info.class.labels.is_empty()
            && self.selector.matches(&pod_info.class.labels)
            && !self.disrupted.iter().any(|disrupted| disrupted == name)
    }
}

/// Those whose going a budget does not allow, and the others; in their order (`filterPodsWithPDBViolation`).
fn split(pods_info: Vec<Arc<PodInfo>>, budgets: &mut [Budget]) -> (Vec<Arc<PodInfo>>, Vec<Arc<PodInfo>>) {
    for budget in &mut *budgets {
        budget.left = budget.allowed;
    }
    pods_info.into_iter().partition(|pod_info| {
        let mut is_violated = false;
        for budget in budgets.iter_mut().filter(|budget| budget.protects(pod_info)) {
            budget.left = budget.left.saturating_sub(1);
            is_violated |= budget.left < 0;
        }
        is_violated
    })
}
