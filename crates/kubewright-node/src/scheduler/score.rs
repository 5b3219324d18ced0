//! Which of the nodes that will do is the best: kube-scheduler's default scores and their weights
//! (`apis/config/v1/default_plugins.go`; images are not looked at, since simulated nodes have none).

use kube::core::Selector;

use super::affinity::Preferences;
use super::cluster_state::ClusterState;
use super::node_state::NodeState;
use super::pod_info::{Labels, PodInfo};
use super::resources::Scored;
use super::spread;
use crate::selection::{is_tolerated, preference};

const BEST: i64 = 100;

/// The best of `feasible`: the one with the highest score; among equals the one with the fewest pods, then by name.
/// (kube-scheduler lets chance decide.)
pub(super) fn best<'a>(
    pod_info: &PodInfo,
    cluster: &ClusterState,
    feasible: &[&'a NodeState],
    namespace_labels: &dyn Fn(&str) -> Labels,
    of_owner: impl FnOnce() -> Option<Selector>,
) -> Option<&'a NodeState> {
    if let [only] = feasible {
        return Some(only);
    }
    let mut totals = vec![0_i64; feasible.len()];
    let mut add = |weight: i64, scores: &mut dyn Iterator<Item = i64>| {
        for (total, score) in totals.iter_mut().zip(scores) {
            *total += weight * score;
        }
    };
    add(1, &mut feasible.iter().map(|node| least_allocated(pod_info, node)));
    if !pod_info.requests.is_nothing() {
        add(1, &mut feasible.iter().map(|node| balanced(pod_info, node)));
    }
    add(3, &mut taints(pod_info, feasible).into_iter());
    add(2, &mut affinity(pod_info, feasible).into_iter());
    if let Some(scores) = spread::scores(pod_info, cluster, feasible, of_owner) {
        add(2, &mut scores.into_iter());
    }
    let preferences = Preferences::of(pod_info, cluster, namespace_labels);
    if !preferences.is_empty() {
        add(2, &mut between_extremes(feasible.iter().map(|node| preferences.of_node(node)).collect()));
    }
    let rank = |(node, total): (&&NodeState, i64)| (-total, node.pods.len(), node.name.clone());
    let ranked = feasible.iter().zip(totals).min_by_key(|(node, total)| rank((node, *total)));
    ranked.map(|(node, _)| *node)
}

/// How much of processor time and memory is left (`least_allocated.go`).
fn least_allocated(pod_info: &PodInfo, node: &NodeState) -> i64 {
    let left = |wanted: i64, used: i64, room: i64| {
        let requested = used.saturating_add(wanted);
        if requested > room { 0 } else { (room - requested).saturating_mul(BEST) / room }
    };
    let (wanted, used): (Scored, Scored) = (pod_info.scored, node.scored);
    let rooms =
        [(wanted.cpu, used.cpu, node.allocatable.cpu), (wanted.memory, used.memory, node.allocatable.memory)];
    let mut sum = 0;
    let mut count = 0;
    for (wanted, used, room) in rooms {
        if room > 0 {
            sum += left(wanted, used, room);
            count += 1;
        }
    }
    if count == 0 { 0 } else { sum / count }
}

/// Whether the pod brings the use of processor time and memory closer together (`balanced_allocation.go`).
fn balanced(pod_info: &PodInfo, node: &NodeState) -> i64 {
    let with = evenness(node, pod_info.requests.cpu, pod_info.requests.memory);
    BEST / 2 + (BEST / 2 + with - evenness(node, 0, 0)) / 2
}

#[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "a score is coarse")]
fn evenness(node: &NodeState, cpu: i64, memory: i64) -> i64 {
    let used = |wanted: i64, used: i64, room: i64| {
        (room > 0).then(|| ((used.saturating_add(wanted)) as f64 / room as f64).min(1.0))
    };
    let cpu = used(cpu, node.requested.cpu, node.allocatable.cpu);
    let memory = used(memory, node.requested.memory, node.allocatable.memory);
    let deviation = match (cpu, memory) {
        (Some(cpu), Some(memory)) => ((cpu - memory) / 2.0).abs(),
        _ => 0.0,
    };
    ((1.0 - deviation) * BEST as f64) as i64
}

/// The fewer taints would rather keep the pod off, the better.
fn taints(pod_info: &PodInfo, feasible: &[&NodeState]) -> Vec<i64> {
    let disliked = |node: &&NodeState| {
        let untolerated =
            |taint: &&k8s_openapi::api::core::v1::Taint| !is_tolerated(taint, pod_info.tolerations());
        i64::try_from(node.discouraging.iter().filter(untolerated).count()).unwrap_or(i64::MAX)
    };
    let counts: Vec<i64> = feasible.iter().map(disliked).collect();
    let most = counts.iter().max().copied().unwrap_or_default();
    counts.into_iter().map(|count| if most == 0 { BEST } else { BEST - BEST * count / most }).collect()
}

/// The more of the preferred node affinity is met, the better.
fn affinity(pod_info: &PodInfo, feasible: &[&NodeState]) -> Vec<i64> {
    let affinity = pod_info.pod.spec.as_ref().and_then(|spec| spec.affinity.as_ref());
    let of_nodes = affinity.and_then(|affinity| affinity.node_affinity.as_ref());
    let terms = of_nodes
        .and_then(|affinity| affinity.preferred_during_scheduling_ignored_during_execution.as_deref());
    let Some(terms) = terms.filter(|terms| !terms.is_empty()) else { return Vec::new() };
    let met: Vec<i64> = feasible.iter().map(|node| preference(terms, node.info())).collect();
    let most = met.iter().max().copied().unwrap_or_default();
    met.into_iter().map(|met| if most == 0 { 0 } else { BEST * met / most }).collect()
}

/// From the lowest to the highest in equal steps, 0 to 100.
fn between_extremes(sums: Vec<i64>) -> impl Iterator<Item = i64> {
    let least = sums.iter().min().copied().unwrap_or_default();
    let most = sums.iter().max().copied().unwrap_or_default();
    sums.into_iter().map(move |sum| if most == least { 0 } else { BEST * (sum - least) / (most - least) })
}
