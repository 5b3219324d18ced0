//! Where a DaemonSet lacks a pod, or has one too many (`podsShouldBeOnNode` in
//! `pkg/controller/daemon/daemon_controller.go`).

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{DaemonSet, DaemonSetSpec};
use k8s_openapi::api::core::v1::{Node, Pod, PodSpec};
use kubewright_objects::optional;
use kubewright_runtime::EventType;

use super::backoff::{Backoff, BackoffKey};
use super::daemon::{self, ByNode, Updated, is_going};
use super::eligibility::{self, Fit};
use super::rolling::{self, Bounds};
use crate::pod::{self, Availability};

/// What is seen of a set.
pub(super) struct Observed<'a> {
    pub(super) set: &'a DaemonSet,
    pub(super) nodes: &'a [Arc<Node>],
    /// The set's pods.
    pub(super) pods: &'a ByNode,
    /// The hash of the current revision.
    pub(super) hash: &'a str,
    pub(super) failures: &'a Backoff,
    pub(super) now: Timestamp,
}

/// What to do.
#[derive(Debug, Default, PartialEq)]
pub(super) struct PodChanges {
    /// The nodes that get a pod.
    pub(super) create: Vec<String>,
    /// The pods that go.
    pub(super) delete: Vec<Arc<Pod>>,
    /// What to tell people first.
    pub(super) notes: Vec<Note>,
    /// The places whose failed pods go.
    pub(super) retried: Vec<BackoffKey>,
    /// When to look at failed pods again.
    pub(super) again: Option<Duration>,
}

/// An event.
#[derive(Debug, PartialEq)]
pub(super) struct Note {
    pub(super) kind: EventType,
    pub(super) reason: &'static str,
    pub(super) text: String,
}

impl PodChanges {
    /// Whether it writes nothing.
    fn is_idle(&self) -> bool {
        self.create.is_empty() && self.delete.is_empty()
    }
}

/// The next step: first every node gets what it should have, then an update goes on.
pub(super) fn plan(observed: &Observed<'_>) -> PodChanges {
    let fits = Fits::of(observed.set, observed.nodes);
    let mut step = keep(observed, &fits);
    if step.is_idle() && is_rolling(observed.set) {
        let update = rolling::step(observed, &fits, Bounds::of(observed.set, fits.wanted()));
        step.create = update.create;
        step.delete = update.delete;
    }
    step
}

/// What each node is to the set.
pub(super) struct Fits<'a>(Vec<(&'a str, Fit)>);

impl<'a> Fits<'a> {
    pub(super) fn of(set: &DaemonSet, nodes: &'a [Arc<Node>]) -> Self {
        let spec = wanted_spec(set);
        let fit = |node: &'a Arc<Node>| {
            (node.metadata.name.as_deref().unwrap_or_default(), eligibility::fit(&spec, node))
        };
        Self(nodes.iter().map(fit).collect())
    }

    /// Each node and what it is.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&'a str, Fit)> {
        self.0.iter().copied()
    }

    /// How many nodes should run the daemon.
    pub(super) fn wanted(&self) -> i32 {
        let wanted = self.0.iter().filter(|(_, fit)| *fit == Fit::Runs).count();
        i32::try_from(wanted).unwrap_or(i32::MAX)
    }
}

/// The spec that the set's pods have, wherever they are.
pub(super) fn wanted_spec(set: &DaemonSet) -> PodSpec {
    daemon::template(set, "").spec.unwrap_or_default()
}

fn is_rolling(set: &DaemonSet) -> bool {
    let strategy = optional::<DaemonSetSpec>(&set.spec).and_then(|spec| spec.update_strategy.as_ref());
    strategy.and_then(|strategy| strategy.type_.as_deref()) != Some("OnDelete")
}

fn keep(observed: &Observed<'_>, fits: &Fits<'_>) -> PodChanges {
    let mut step = PodChanges::default();
    for (node, fit) in fits.iter() {
        match (fit, observed.pods.get(node)) {
            (Fit::Runs, None) => step.create.push(node.to_owned()),
            (Fit::Runs | Fit::Stays, Some(pods)) => keep_on_node(observed, node, fit, pods, &mut step),
            (Fit::Not, Some(pods)) => step.delete.extend(pods.iter().filter(|pod| !is_going(pod)).cloned()),
            (Fit::Stays | Fit::Not, None) => {}
        }
    }
    step.delete.extend(homeless(observed));
    step
}

/// Pods that wait for a node that is gone: no scheduler will ever bind them.
fn homeless<'a>(observed: &'a Observed<'_>) -> impl Iterator<Item = Arc<Pod>> + use<'a> {
    let nodes: BTreeSet<_> = observed.nodes.iter().filter_map(|node| node.metadata.name.as_deref()).collect();
    let without_node = observed.pods.iter().filter(move |(node, _)| !nodes.contains(node.as_str()));
    without_node.flat_map(|(_, pods)| pods).filter(|pod| pod::node_name(pod).is_empty()).cloned()
}

fn keep_on_node(observed: &Observed<'_>, node: &str, fit: Fit, pods: &[Arc<Pod>], step: &mut PodChanges) {
    let mut running = Vec::new();
    for pod in pods.iter().filter(|pod| !is_going(pod)) {
        match pod::phase(pod) {
            "Failed" => replace_failed(observed, node, pod, step),
            "Succeeded" => {
                step.notes.push(note(
                    EventType::Normal,
                    "SucceededDaemonPod",
                    "succeeded",
                    node,
                    pod,
                    "delete",
                ));
                step.delete.push(Arc::clone(pod));
            }
            _ => running.push(Arc::clone(pod)),
        }
    }
    daemon::by_age(&mut running);
    if !Bounds::allow_surge(observed.set) {
        step.delete.extend(running.into_iter().skip(1));
    } else if running.is_empty() && fit == Fit::Runs {
        step.create.push(node.to_owned());
    } else if running.len() > 1 {
        step.delete.extend(too_many_of_surge(observed, &running));
    }
}

fn replace_failed(observed: &Observed<'_>, node: &str, pod: &Arc<Pod>, step: &mut PodChanges) {
    let meta = &observed.set.metadata;
    let generation = observed.set.status.as_ref().and_then(|status| status.observed_generation);
    let place = (meta.uid.clone().unwrap_or_default(), generation.unwrap_or_default(), node.to_owned());
    if let Some(delay) = observed.failures.running(&place, observed.now) {
        step.again = Some(step.again.map_or(delay, |again| again.min(delay)));
        return;
    }
    step.retried.push(place);
    step.notes.push(note(EventType::Warning, "FailedDaemonPod", "failed", node, pod, "kill"));
    step.delete.push(Arc::clone(pod));
}

fn note(kind: EventType, reason: &'static str, what: &str, node: &str, pod: &Pod, verb: &str) -> Note {
    let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
    let name = pod.metadata.name.as_deref().unwrap_or_default();
    let text = format!("Found {what} daemon pod {namespace}/{name} on node {node}, will try to {verb} it");
    Note { kind, reason, text }
}

/// With a surge two pods may be on a node: one of the current template that is not available yet, and one of another
/// that is ready. `running` comes sorted by age.
fn too_many_of_surge(observed: &Observed<'_>, running: &[Arc<Pod>]) -> Vec<Arc<Pod>> {
    let updated = Updated::of(observed.set, observed.hash);
    let (new, old): (Vec<_>, Vec<_>) = running.iter().cloned().partition(|pod| updated.has_hash(pod));
    let mut gone: Vec<_> = new
        .iter()
        .chain(&old)
        .filter(|pod| {
            !new.first().is_some_and(|first| Arc::ptr_eq(first, pod))
                && !old.first().is_some_and(|first| Arc::ptr_eq(first, pod))
        })
        .cloned()
        .collect();
    if let (Some(new), Some(old)) = (new.first(), old.first())
        && (!pod::is_ready(old) || observed.is_available(new))
    {
        gone.push(Arc::clone(old));
    }
    gone
}

impl Observed<'_> {
    /// Whether the pod has been ready for long enough.
    pub(super) fn is_available(&self, pod: &Pod) -> bool {
        pod::availability(pod, min_ready(self.set), self.now) == Availability::Available
    }
}

/// `spec.minReadySeconds`.
pub(super) fn min_ready(set: &DaemonSet) -> Duration {
    pod::seconds(
        optional::<DaemonSetSpec>(&set.spec).and_then(|spec| spec.min_ready_seconds).unwrap_or_default(),
    )
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
