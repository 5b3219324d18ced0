//! A step of a DaemonSet's rolling update (`rollingUpdate` in `pkg/controller/daemon/update.go`).

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::apps::v1::{DaemonSet, DaemonSetSpec, RollingUpdateDaemonSet};
use k8s_openapi::api::core::v1::Pod;
use kubewright_objects::optional;

use super::daemon::{Updated, is_going};
use super::eligibility::Fit;
use super::plan::{Fits, Observed};
use crate::share::{Rounding, resolve};

/// How far an update may stray from one pod for each node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bounds {
    /// On so many nodes a new pod may run beside an old one.
    pub(super) surge: i32,
    /// On so many nodes there may be no available pod.
    pub(super) unavailable: i32,
}

impl Bounds {
    /// What `set` allows on `wanted` nodes. Percentages are rounded up; when both come to nothing one node may be without
    /// a pod, or no update would ever move.
    pub(super) fn of(set: &DaemonSet, wanted: i32) -> Self {
        let rolling = rolling(set);
        let surge = Self::surge(rolling, wanted);
        let unavailable = rolling.and_then(|rolling| rolling.max_unavailable.as_ref());
        let unavailable = unavailable.map_or(0, |value| resolve(value, wanted, Rounding::Up));
        let unavailable = if wanted > 0 && surge == 0 { unavailable.max(1) } else { unavailable };
        Self { surge, unavailable }
    }

    /// Whether there may ever be two pods on a node.
    pub(super) fn allow_surge(set: &DaemonSet) -> bool {
        Self::surge(rolling(set), 1) > 0
    }

    fn surge(rolling: Option<&RollingUpdateDaemonSet>, wanted: i32) -> i32 {
        let surge = rolling.and_then(|rolling| rolling.max_surge.as_ref());
        surge.map_or(0, |value| resolve(value, wanted, Rounding::Up))
    }
}

fn rolling(set: &DaemonSet) -> Option<&RollingUpdateDaemonSet> {
    let strategy = optional::<DaemonSetSpec>(&set.spec)?.update_strategy.as_ref()?;
    if strategy.type_.as_deref() == Some("OnDelete") {
        return None;
    }
    strategy.rolling_update.as_ref()
}

/// What an update does next.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Update {
    /// Nodes that get a new pod beside the old one.
    pub(super) create: Vec<String>,
    /// Old pods that go; where no surge is allowed their successors come when they are gone.
    pub(super) delete: Vec<Arc<Pod>>,
}

/// The next step of an update within `bounds`. Every node has what it should have otherwise.
pub(super) fn step(observed: &Observed<'_>, fits: &Fits<'_>, bounds: Bounds) -> Update {
    let updated = Updated::of(observed.set, observed.hash);
    let nodes = by_node(observed, fits, &updated);
    if bounds.surge == 0 {
        replace(observed, &nodes, bounds.unavailable)
    } else {
        surge(observed, fits, &nodes, bounds.surge)
    }
}

/// The pods of a node.
enum OnNode<'a> {
    /// At most one old and one new pod.
    Pair { new: Option<&'a Arc<Pod>>, old: Option<&'a Arc<Pod>> },
    /// More than that; they have to be put in order first.
    Excess,
}

/// The pods of each node that has some, or should have one.
fn by_node<'a>(
    observed: &'a Observed<'_>,
    fits: &Fits<'a>,
    updated: &Updated<'_>,
) -> BTreeMap<&'a str, OnNode<'a>> {
    let wanted = fits.iter().filter(|(_, fit)| *fit == Fit::Runs);
    let mut nodes: BTreeMap<_, _> =
        wanted.map(|(node, _)| (node, OnNode::Pair { new: None, old: None })).collect();
    nodes.extend(observed.pods.iter().map(|(node, pods)| (node.as_str(), on_node(pods, updated))));
    nodes
}

fn on_node<'a>(pods: &'a [Arc<Pod>], updated: &Updated<'_>) -> OnNode<'a> {
    let (mut new, mut old) = (None, None);
    for pod in pods.iter().filter(|pod| !is_going(pod)) {
        let place = if updated.is(pod) { &mut new } else { &mut old };
        if place.replace(pod).is_some() {
            return OnNode::Excess;
        }
    }
    OnNode::Pair { new, old }
}

/// Without surge: old pods that are not available go anyway, available ones as far as the bound lets them.
fn replace(observed: &Observed<'_>, nodes: &BTreeMap<&str, OnNode<'_>>, most: i32) -> Update {
    let mut unavailable = 0;
    let (mut gone, mut candidates) = (Vec::new(), Vec::new());
    for pods in nodes.values() {
        match pods {
            OnNode::Pair { new: Some(new), old: None } => {
                unavailable += i32::from(!observed.is_available(new));
            }
            OnNode::Pair { new: None, old: Some(old) } if observed.is_available(old) => {
                candidates.push(Arc::clone(old));
            }
            OnNode::Pair { new: None, old: Some(old) } => {
                gone.push(Arc::clone(old));
                unavailable += 1;
            }
            OnNode::Pair { .. } | OnNode::Excess => unavailable += 1,
        }
    }
    gone.extend(candidates.into_iter().take(usize::try_from(most - unavailable).unwrap_or_default()));
    Update { create: Vec::new(), delete: gone }
}

/// With surge: a new pod comes beside an old one, at once where the old one is not available and otherwise as far as
/// the bound lets it; when the new one is available, the old one goes. Old pods on nodes that should have none any more
/// go as pods on other nodes become available.
fn surge(observed: &Observed<'_>, fits: &Fits<'_>, nodes: &BTreeMap<&str, OnNode<'_>>, most: i32) -> Update {
    let runs: BTreeMap<_, _> = fits.iter().collect();
    let should_run = |node: &str| runs.get(node) == Some(&Fit::Runs);
    let (mut surging, mut available) = (0, 0);
    let mut update = Update::default();
    let (mut candidates, mut leaving) = (Vec::new(), Vec::new());
    for (node, pods) in nodes {
        let OnNode::Pair { new, old } = pods else {
            surging += 1;
            continue;
        };
        let old_is_available = old.is_some_and(|old| observed.is_available(old));
        let counted = old.or(*new).is_some_and(|pod| observed.is_available(pod));
        available += i32::from(counted);
        match (new, old) {
            (_, None) => {}
            (Some(new), Some(old)) if observed.is_available(new) => update.delete.push(Arc::clone(old)),
            (Some(_), Some(_)) => surging += 1,
            (None, Some(_)) if should_run(node) => {
                let nodes = if old_is_available { &mut candidates } else { &mut update.create };
                nodes.push((*node).to_owned());
            }
            (None, Some(old)) if old_is_available => leaving.push(Arc::clone(old)),
            (None, Some(old)) => update.delete.push(Arc::clone(old)),
        }
    }
    let spare = usize::try_from(available - fits.wanted()).unwrap_or_default();
    update.delete.extend(leaving.into_iter().take(spare));
    update.create.extend(candidates.into_iter().take(usize::try_from(most - surging).unwrap_or_default()));
    update
}
