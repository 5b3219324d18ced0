//! Which DaemonSets a change of a node concerns (`syncNodeUpdate` in `pkg/controller/daemon/daemon_controller.go`).

use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::{Node, Pod};
use kubewright_node::facts::taints;
use kubewright_runtime::{Context, Controller, Error, Event, Key, Outcome, Predicate, Reconciler};
use tokio::sync::mpsc::UnboundedSender;

use super::eligibility::{self, Fit};
use super::plan;

/// A controller that sends the keys of the DaemonSets that have something to do because of a node.
pub(super) fn controller(concerned: UnboundedSender<Key>) -> Controller {
    Controller::new("daemonset-controller-nodes", Nodes { concerned })
        .for_kind::<Node>()
        .predicate(Predicate::of(may_matter))
        .reads::<DaemonSet>()
        .reads::<Pod>()
}

/// Only labels and taints say where daemons run; heartbeats do not.
fn may_matter(event: &Event<'_, Node>) -> bool {
    match event {
        Event::Create(_) | Event::Generic(_) => true,
        Event::Update { old, new } => {
            old.metadata.labels != new.metadata.labels || taints(old) != taints(new)
        }
        Event::Delete(_) => false,
    }
}

struct Nodes {
    concerned: UnboundedSender<Key>,
}

impl Reconciler for Nodes {
    async fn reconcile(&self, ctx: &Context, key: &Key) -> Result<Outcome, Error> {
        let Some(node) = ctx.get::<Node>(key) else { return Ok(Outcome::Done) };
        for set in ctx.list::<DaemonSet>(None) {
            let pods = ctx.owned_by::<Pod>(set.metadata.uid.as_deref().unwrap_or_default());
            let runs = pods.iter().any(|pod| crate::pod::node_name(pod) == key.name);
            if concerns(&set, &node, runs) {
                // The receiver is gone only when the controllers end.
                let _ = self.concerned.send(Key::of(&*set));
            }
        }
        Ok(Outcome::Done)
    }
}

/// Whether `set`, which has a pod on the node or not, lacks one there, has to remove it, or counts some as misplaced.
fn concerns(set: &DaemonSet, node: &Node, runs: bool) -> bool {
    let misscheduled = set.status.as_ref().is_some_and(|status| status.number_misscheduled > 0);
    match eligibility::fit(&plan::wanted_spec(set), node) {
        Fit::Runs if !runs => true,
        Fit::Not if runs => true,
        _ => runs && misscheduled,
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{daemon_set, node, tainted};
    use super::*;

    #[test]
    fn a_node_concerns_sets_that_have_something_to_do_there() {
        let mut set = daemon_set();
        assert!(concerns(&set, &node("a"), false) && !concerns(&set, &node("a"), true));
        assert!(concerns(&set, &tainted("a", "NoExecute"), true));
        assert!(!concerns(&set, &tainted("a", "NoSchedule"), true), "it may stay");
        set.status.get_or_insert_default().number_misscheduled = 1;
        assert!(concerns(&set, &node("a"), true), "it is counted anew");
    }

    #[test]
    fn heartbeats_do_not_matter() {
        let (before, mut after) = (node("a"), node("a"));
        after.status.get_or_insert_default();
        assert!(!may_matter(&Event::Update { old: &before, new: &after }));
        assert!(may_matter(&Event::Update { old: &before, new: &tainted("a", "NoExecute") }));
    }
}
