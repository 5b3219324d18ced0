//! The pod garbage collector: pods that nobody else ends (`pkg/controller/podgc/gc_controller.go`).
//!
//! It looks at a pod when it changes and when its time is up, not at all pods every 20 seconds.

use std::collections::BTreeSet;
use std::collections::btree_map::{BTreeMap, Entry};
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::DeleteParams;
use kubewright_node::facts::{is_node_ready, taints};
use kubewright_runtime::{Context, Controller, Error, Event, Key, Outcome, Predicate, Reconciler};
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::pod;

/// How often kube-controller-manager looks; a deleted pod that no node has goes after this (`gcCheckPeriod`).
const PERIOD: Duration = Duration::from_secs(20);
/// How long a node may be missing before its pods go (`quarantineTime`).
const QUARANTINE: Duration = Duration::from_secs(40);
/// How many ended pods there may be (`--terminated-pod-gc-threshold`).
const MOST_FINISHED: usize = 12_500;
const OUT_OF_SERVICE: &str = "node.kubernetes.io/out-of-service";

/// The controller. Keys without a namespace are nodes.
pub(crate) fn controller() -> Controller {
    Controller::new("pod-garbage-collector", Collector::default())
        .for_kind::<Pod>()
        .predicate(Predicate::of(|event: &Event<'_, Pod>| match event {
            Event::Update { old, new } => {
                pod::node_name(old) != pod::node_name(new)
                    || pod::is_finished(old) != pod::is_finished(new)
                    || old.metadata.deletion_timestamp != new.metadata.deletion_timestamp
            }
            Event::Create(_) | Event::Delete(_) | Event::Generic(_) => true,
        }))
        .watches(|node: &Node| vec![Key::of(node)])
        .predicate(Predicate::of(|event: &Event<'_, Node>| match event {
            Event::Delete(_) | Event::Generic(_) => true,
            Event::Create(_) => false,
            Event::Update { old, new } => is_out_of_service(old) != is_out_of_service(new),
        }))
}

#[derive(Default)]
struct Collector {
    /// Since when the reason to end a pod is there.
    since: Mutex<BTreeMap<Key, (PodGcReason, Timestamp)>>,
    finished: Mutex<BTreeSet<Key>>,
}

/// Why a pod is to be ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PodGcReason {
    /// It is being deleted, and no node will end it.
    Unscheduled,
    /// Its node is gone.
    Orphaned,
    /// It is being deleted on a node that somebody took out of service.
    OutOfService,
}

impl PodGcReason {
    fn wait(self) -> Duration {
        match self {
            Self::Unscheduled => PERIOD,
            Self::Orphaned => QUARANTINE,
            Self::OutOfService => Duration::ZERO,
        }
    }
}

impl Reconciler for Collector {
    async fn reconcile(&self, ctx: &Context, key: &Key) -> Result<Outcome, Error> {
        if key.namespace.is_some() {
            return self.look_at(ctx, key).await;
        }
        let mut next = Outcome::Done;
        for pod in ctx.list::<Pod>(None).iter().filter(|pod| pod::node_name(pod) == key.name) {
            next = next.sooner(self.look_at(ctx, &Key::of(&**pod)).await?);
        }
        Ok(next)
    }
}

impl Collector {
    async fn look_at(&self, ctx: &Context, key: &Key) -> Result<Outcome, Error> {
        let Some(pod) = ctx.get::<Pod>(key) else {
            self.since.lock().remove(key);
            self.finished.lock().remove(key);
            return Ok(Outcome::Done);
        };
        if let Some(oldest) = self.one_too_many(ctx, &pod) {
            end(ctx, &oldest, None).await?;
        }
        let node = ctx.get::<Node>(&Key::cluster_scoped(pod::node_name(&pod)));
        let Some(reason) = reason(&pod, node.as_deref()) else {
            self.since.lock().remove(key);
            return Ok(Outcome::Done);
        };
        let now = ctx.world().clock.now();
        let left = self.time_left(key, reason, now);
        if !left.is_zero() {
            return Ok(Outcome::RequeueAfter(left));
        }
        let condition = (reason == PodGcReason::Orphaned).then(|| {
            pod::with_disruption(&pod, "DeletionByPodGC", "PodGC: node no longer exists", &Time(now))
        });
        end(ctx, &pod, condition).await?;
        self.since.lock().remove(key);
        Ok(Outcome::Done)
    }

    fn time_left(&self, key: &Key, reason: PodGcReason, now: Timestamp) -> Duration {
        let mut all = self.since.lock();
        let since = match all.entry(key.clone()) {
            Entry::Occupied(known) if known.get().0 == reason => known.get().1,
            Entry::Occupied(mut other) => {
                other.insert((reason, now));
                now
            }
            Entry::Vacant(none) => none.insert((reason, now)).1,
        };
        let passed = Duration::try_from(now.duration_since(since)).unwrap_or_default();
        reason.wait().saturating_sub(passed)
    }

    /// Counts a pod that has ended; gives the one that has to make room for it: evicted ones first, then the oldest.
    fn one_too_many(&self, ctx: &Context, pod: &Pod) -> Option<std::sync::Arc<Pod>> {
        let key = Key::of(pod);
        let mut finished = self.finished.lock();
        if !pod::is_finished(pod) {
            finished.remove(&key);
            return None;
        }
        if !finished.insert(key) || finished.len() <= MOST_FINISHED {
            return None;
        }
        let all = finished.iter().filter_map(|key| ctx.get::<Pod>(key));
        all.min_by_key(|pod| {
            let created = pod.metadata.creation_timestamp.as_ref().map(|time| time.0);
            (!is_evicted(pod), created, pod.metadata.name.clone())
        })
    }
}

fn reason(pod: &Pod, node: Option<&Node>) -> Option<PodGcReason> {
    let is_going = pod.metadata.deletion_timestamp.is_some();
    if pod::node_name(pod).is_empty() {
        return is_going.then_some(PodGcReason::Unscheduled);
    }
    match node {
        None => Some(PodGcReason::Orphaned),
        Some(node) => (is_going && is_out_of_service(node)).then_some(PodGcReason::OutOfService),
    }
}

fn is_out_of_service(node: &Node) -> bool {
    !is_node_ready(node) && taints(node).iter().any(|taint| taint.key == OUT_OF_SERVICE)
}

fn is_evicted(pod: &Pod) -> bool {
    let reason = pod.status.as_ref().and_then(|status| status.reason.as_deref());
    pod::phase(pod) == "Failed" && reason == Some("Evicted")
}

/// Ends the pod: it has failed, unless it ended before, and is deleted at once.
async fn end(ctx: &Context, pod: &Pod, conditions: Option<Vec<Value>>) -> Result<(), Error> {
    let key = Key::of(pod);
    if !pod::is_finished(pod) {
        let mut patch = json!({"metadata": {"uid": pod.metadata.uid}, "status": {"phase": "Failed"}});
        if let Some(conditions) = conditions {
            patch["status"]["conditions"] = json!(conditions);
        }
        match ctx.patch_status::<Pod>(&key, patch).await {
            Err(error) if error.is_not_found() || error.is_conflict() => return Ok(()),
            written => written?,
        };
    }
    let at_once = DeleteParams { grace_period_seconds: Some(0), ..DeleteParams::default() };
    ctx.delete::<Pod>(&key, at_once).await.map(|_| ())
}

#[cfg(test)]
mod tests {
    use kubewright_world::SIMULATION_START as NOW;

    use super::*;

    fn node(ready: &str) -> Node {
        kubewright_objects::from_value(json!({"metadata": {"name": "n"},
            "spec": {"taints": [{"key": OUT_OF_SERVICE, "effect": "NoExecute"}]},
            "status": {"conditions": [{"type": "Ready", "status": ready}]}}))
        .expect("a node")
    }

    #[test]
    fn only_what_nobody_else_ends_is_collected() {
        let bound = crate::pod::tests::pod("p", "Running", None);
        assert_eq!(reason(&bound, None), Some(PodGcReason::Orphaned));
        assert_eq!(reason(&bound, Some(&node("False"))), None);
        let mut going = bound.clone();
        going.metadata.deletion_timestamp = Some(Time(NOW));
        assert_eq!(reason(&going, Some(&node("True"))), None);
        assert_eq!(reason(&going, Some(&node("False"))), Some(PodGcReason::OutOfService));
        let mut unbound = going.clone();
        unbound.spec.as_mut().expect("a spec").node_name = None;
        assert_eq!(reason(&unbound, None), Some(PodGcReason::Unscheduled));
        unbound.metadata.deletion_timestamp = None;
        assert_eq!(reason(&unbound, None), None);
    }

    #[test]
    fn a_missing_node_has_forty_seconds_to_come_back() {
        let collector = Collector::default();
        let key = Key::namespaced("shop", "p");
        let left = |seconds: u64| {
            collector.time_left(&key, PodGcReason::Orphaned, NOW + Duration::from_secs(seconds))
        };
        assert_eq!(left(0), Duration::from_secs(40));
        assert_eq!(left(30), Duration::from_secs(10));
        assert_eq!(left(41), Duration::ZERO);
    }
}
