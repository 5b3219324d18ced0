//! The node lifecycle controller: which nodes are heard of, what their conditions mean for pods (taints), and the
//! labels of old that go with those of today (`pkg/controller/nodelifecycle/node_lifecycle_controller.go`).
//!
//! Nodes are looked at when they, or their leases, change and when their time is up, not every five seconds.

mod health;
mod taints;
mod zones;

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::ObjectMeta;
use kubewright_node::facts::is_node_ready;
use kubewright_runtime::{Context, Controller, Error, Event, EventType, Key, Outcome, Predicate, Reconciler};
use parking_lot::Mutex;
use serde_json::{Value, json};

use self::health::{Health, Heard};
use self::taints::Eviction;
use self::zones::{EvictionQueues, Rate, Zone};
use crate::pod;

/// Where the leases of nodes are.
const LEASES: &str = "kube-node-lease";
/// How soon a node is looked at again whose pods are to be sent away, and are not yet (`nodeMonitorPeriod`).
const SOON: Duration = Duration::from_secs(5);
/// Labels of today, and those of old that say the same (`labelReconcileInfo`).
const LABELS: [(&str, &str); 2] =
    [("kubernetes.io/os", "beta.kubernetes.io/os"), ("kubernetes.io/arch", "beta.kubernetes.io/arch")];

/// The controller, which runs under the name of its events' source.
pub(crate) fn controller() -> Controller {
    Controller::new("node-controller", Lifecycle::default())
        .for_kind::<Node>()
        .watches(|lease: &Lease| {
            let is_of_a_node = lease.metadata.namespace.as_deref() == Some(LEASES);
            lease.metadata.name.iter().filter(|_| is_of_a_node).map(Key::cluster_scoped).collect()
        })
        .predicate(Predicate::of(|event: &Event<'_, Lease>| !matches!(event, Event::Delete(_))))
        .reads::<Pod>()
}

/// What is known of a node.
#[derive(Debug)]
struct Known {
    node: Node,
    heard: Heard,
    was_ready: bool,
}

#[derive(Default)]
struct Lifecycle {
    known: Mutex<BTreeMap<String, Known>>,
    turns: EvictionQueues,
}

impl Reconciler for Lifecycle {
    async fn reconcile(&self, ctx: &Context, key: &Key) -> Result<Outcome, Error> {
        let Some(node) = ctx.get::<Node>(key) else {
            let gone = self.known.lock().remove(&key.name);
            self.turns.leave(&key.name);
            if let Some(gone) = gone {
                record_node_event(
                    ctx,
                    &gone.node,
                    "RemovingNode",
                    &format!("Removing Node {} from Controller", key.name),
                );
            }
            return Ok(Outcome::Done);
        };
        if self.track(&node) {
            record_node_event(
                ctx,
                &node,
                "RegisteredNode",
                &format!("Registered Node {} in Controller", key.name),
            );
        }
        let now = ctx.world().clock.now();
        let next = match self.listen(ctx, &node) {
            Health::HeardOf(wait) => Some(wait),
            Health::Silent => None,
            Health::FellSilent(conditions) => {
                let patch = json!({
                    "metadata": {"resourceVersion": node.metadata.resource_version},
                    "status": {"conditions": conditions},
                });
                match ctx.patch_status::<Node>(key, patch).await {
                    Err(error) if error.is_not_found() => return Ok(Outcome::Done),
                    written => written?,
                };
                None
            }
        };
        let Some(node) = ctx.get::<Node>(key) else { return Ok(Outcome::Done) };
        if self.has_fallen(&node) {
            let note = format!("Node {} status is now: NodeNotReady", key.name);
            ctx.event(&*node, EventType::Normal, "NodeNotReady", &note);
            mark_pods(ctx, key, &Time(now)).await?;
        }
        let (eviction, turn) = self.eviction(ctx, &node);
        let patch = merged(taints::plan(&node, eviction, &Time(now)), labels(&node));
        if let Some(patch) = patch {
            match ctx.patch::<Node>(key, patch).await {
                Err(error) if error.is_not_found() => return Ok(Outcome::Done),
                written => written?,
            };
        }
        Ok(next.into_iter().chain(turn).min().map_or(Outcome::Done, Outcome::RequeueAfter))
    }
}

impl Lifecycle {
    /// Whether the node is new; it is known from now on.
    fn track(&self, node: &Node) -> bool {
        let mut known = self.known.lock();
        let name = node.metadata.name.clone().unwrap_or_default();
        let before = known.get(&name).filter(|known| known.node.metadata.uid == node.metadata.uid);
        if before.is_some() {
            return false;
        }
        // What is needed of it when it is gone.
        let metadata = ObjectMeta {
            name: node.metadata.name.clone(),
            uid: node.metadata.uid.clone(),
            ..ObjectMeta::default()
        };
        let reference = Node { metadata, ..Node::default() };
        known.insert(name, Known { node: reference, heard: Heard::default(), was_ready: false });
        true
    }

    fn listen(&self, ctx: &Context, node: &Node) -> Health {
        let name = node.metadata.name.clone().unwrap_or_default();
        let lease = ctx.get::<Lease>(&Key::namespaced(LEASES, &name));
        let mut known = self.known.lock();
        match known.get_mut(&name) {
            Some(known) => health::check(node, lease.as_deref(), &mut known.heard, ctx.world().clock.now()),
            None => Health::Silent,
        }
    }

    /// Whether the pods of a node are to be sent away now, and when to ask again if not.
    fn eviction(&self, ctx: &Context, node: &Node) -> (Eviction, Option<Duration>) {
        let name = node.metadata.name.as_deref().unwrap_or_default();
        if taints::evicting(node).is_none() {
            self.turns.leave(name);
            return (Eviction::On, None);
        }
        let zone = Zone::of(node);
        let rate = zones::rate(&zone, &ctx.list::<Node>(None));
        if !matches!(rate, Rate::Every(_)) {
            self.turns.leave(name);
        }
        let wait = match rate {
            Rate::Halted => return (Eviction::Off, Some(SOON)),
            _ if taints::is_evicting(node) => Duration::ZERO,
            Rate::Never => SOON,
            Rate::Every(time) => self.turns.wait(zone, name, time, ctx.world().clock.now()),
        };
        match wait {
            Duration::ZERO => (Eviction::On, None),
            // The state of the zone may change before.
            wait => (Eviction::Waits, Some(wait.min(SOON))),
        }
    }

    /// Whether the node was ready and is not any more.
    fn has_fallen(&self, node: &Node) -> bool {
        let is_ready = is_node_ready(node);
        let mut known = self.known.lock();
        let Some(known) = known.get_mut(node.metadata.name.as_deref().unwrap_or_default()) else {
            return false;
        };
        std::mem::replace(&mut known.was_ready, is_ready) && !is_ready
    }
}

fn record_node_event(ctx: &Context, node: &Node, reason: &str, what: &str) {
    let name = node.metadata.name.as_deref().unwrap_or_default();
    ctx.event(node, EventType::Normal, reason, &format!("Node {name} event: {what}"));
}

/// Nobody knows of the pods of a node that is not ready any more whether they are (`MarkPodsNotReady`).
async fn mark_pods(ctx: &Context, node: &Key, now: &Time) -> Result<(), Error> {
    for of_node in ctx.list::<Pod>(None).iter().filter(|pod| pod::node_name(pod) == node.name) {
        if !pod::is_ready(of_node) {
            continue;
        }
        let conditions = of_node.status.as_ref().and_then(|status| status.conditions.as_deref());
        let unready: Vec<Value> = conditions
            .unwrap_or_default()
            .iter()
            .map(|condition| {
                let mut said = json!(condition);
                if condition.type_ == "Ready" {
                    said["status"] = json!("False");
                    said["lastTransitionTime"] = json!(now);
                }
                said
            })
            .collect();
        let patch = json!({"metadata": {"uid": of_node.metadata.uid}, "status": {"conditions": unready}});
        match ctx.patch_status::<Pod>(&Key::of(&**of_node), patch).await {
            Err(error) if error.is_not_found() || error.is_conflict() => continue,
            written => written?,
        };
        ctx.event(&**of_node, EventType::Warning, "NodeNotReady", "Node is not ready");
    }
    Ok(())
}

/// The patch that brings the labels of old in line.
fn labels(node: &Node) -> Option<Value> {
    let labels = node.metadata.labels.as_ref()?;
    let stale = LABELS.iter().filter_map(|(today, old)| {
        let value = labels.get(*today)?;
        (labels.get(*old) != Some(value)).then(|| ((*old).to_owned(), json!(value)))
    });
    let stale: serde_json::Map<_, _> = stale.collect();
    (!stale.is_empty()).then(|| json!({"metadata": {"labels": stale}}))
}

/// Both patches in one.
fn merged(taints: Option<Value>, labels: Option<Value>) -> Option<Value> {
    match (taints, labels) {
        (Some(mut patch), Some(labels)) => {
            patch["metadata"]["labels"] = labels["metadata"]["labels"].clone();
            Some(patch)
        }
        (taints, labels) => taints.or(labels),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_of_old_follow_those_of_today() {
        let node = |labels: Value| -> Node {
            kubewright_objects::from_value(json!({"metadata": {"name": "n", "labels": labels}}))
                .expect("a node")
        };
        let patch = labels(&node(json!({"kubernetes.io/os": "linux", "beta.kubernetes.io/os": "plan9"})));
        assert_eq!(patch, Some(json!({"metadata": {"labels": {"beta.kubernetes.io/os": "linux"}}})));
        assert_eq!(
            labels(&node(json!({"kubernetes.io/os": "linux", "beta.kubernetes.io/os": "linux"}))),
            None
        );
        assert_eq!(labels(&node(json!({"beta.kubernetes.io/os": "linux"}))), None);
    }
}
