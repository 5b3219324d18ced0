//! The scheduler: gives every pod that has no node one (`pkg/scheduler`).
//!
//! It looks at all waiting pods at once, by priority and age, whenever a pod or a node changed in a way that matters;
//! one walk over the cluster places as many pods as wait. Filters: unschedulable nodes, taints, node selector and
//! required node affinity, host ports, resources. Pod (anti-)affinity, topology spread, volumes and preemption are not
//! looked at yet.

mod placement;
mod requests;
mod selection;

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{Binding, Node, ObjectReference, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::Api;
use kube::api::{ObjectMeta, PostParams};
use kubewright_runtime::{Context, Controller, Error, Event, EventType, Key, Outcome, Predicate, Reconciler};
use parking_lot::Mutex;
use serde_json::{Value, json};

use self::placement::Places;
use crate::facts::{condition_json, is_finished, node_name};

/// The scheduler of pods that name no other.
const NAME: &str = "default-scheduler";

/// The controller, which runs under the name of its events' source.
#[must_use]
pub fn scheduler() -> Controller {
    let round = || vec![Key::cluster("round")];
    Controller::new(NAME, Scheduler::default())
        .watches(move |_: &Pod| round())
        .predicate(Predicate::of(is_reason_for_a_round))
        .watches(move |_: &Node| round())
        .predicate(Predicate::of(changes_a_place))
}

/// A pod waits, or one that had a place gave it up.
fn is_reason_for_a_round(event: &Event<'_, Pod>) -> bool {
    match event {
        Event::Create(pod) => is_waiting(pod),
        Event::Update { old, new } => is_waiting(new) || (takes_place(old) && !takes_place(new)),
        Event::Delete(pod) => takes_place(pod),
    }
}

/// A node came, or changed in what the filters look at; its conditions and heartbeats are none of that.
fn changes_a_place(event: &Event<'_, Node>) -> bool {
    match event {
        Event::Create(_) => true,
        Event::Update { old, new } => {
            let allocatable =
                |node: &Node| node.status.as_ref().and_then(|status| status.allocatable.clone());
            old.spec != new.spec
                || old.metadata.labels != new.metadata.labels
                || allocatable(old) != allocatable(new)
        }
        Event::Delete(_) => false,
    }
}

/// Whether the pod is this scheduler's and waits for a node.
fn is_waiting(pod: &Pod) -> bool {
    let Some(spec) = &pod.spec else { return false };
    node_name(pod).is_empty()
        && pod.metadata.deletion_timestamp.is_none()
        && !is_finished(pod)
        && spec.scheduler_name.as_deref().is_none_or(|name| name == NAME)
        && spec.scheduling_gates.as_ref().is_none_or(Vec::is_empty)
}

/// Whether the pod takes something of a node.
fn takes_place(pod: &Pod) -> bool {
    !node_name(pod).is_empty() && !is_finished(pod)
}

#[derive(Default)]
struct Scheduler {
    /// The nodes of pods that were bound and that the cache does not show as such yet, by uid.
    assumed: Mutex<BTreeMap<String, String>>,
}

impl Reconciler for Scheduler {
    async fn reconcile(&self, ctx: &Context, _: &Key) -> Result<Outcome, Error> {
        let pods = ctx.list::<Pod>(None);
        let mut places = Places::new(ctx.list::<Node>(None));
        let mut waiting = self.observe(&pods, &mut places);
        waiting.sort_by_key(|pod| turn(pod));
        let mut failed = Ok(Outcome::Done);
        for pod in waiting {
            let decided = match places.find(&pod) {
                Ok(node) => {
                    let node = node.to_owned();
                    places.occupy(&node, &pod);
                    self.bind(ctx, &pod, &node).await
                }
                Err(reason) => refuse(ctx, &pod, &reason).await,
            };
            if let Err(error) = decided {
                failed = failed.and(Err(error));
            }
        }
        failed
    }
}

impl Scheduler {
    /// Puts every pod that has a node, or was given one, on it; gives those that wait.
    fn observe(&self, pods: &[Arc<Pod>], places: &mut Places) -> Vec<Arc<Pod>> {
        let mut assumed = self.assumed.lock();
        let mut still_assumed = BTreeMap::new();
        let mut waiting = Vec::new();
        for pod in pods {
            let uid = pod.metadata.uid.clone().unwrap_or_default();
            if takes_place(pod) {
                places.occupy(node_name(pod), pod);
            } else if let Some(node) = assumed.get(&uid).filter(|_| node_name(pod).is_empty()) {
                places.occupy(node, pod);
                still_assumed.insert(uid, node.clone());
            } else if is_waiting(pod) {
                waiting.push(Arc::clone(pod));
            }
        }
        *assumed = still_assumed;
        waiting
    }

    async fn bind(&self, ctx: &Context, pod: &Pod, node: &str) -> Result<(), Error> {
        let Key { namespace, name } = Key::of(pod);
        let namespace = namespace.unwrap_or_default();
        let binding = Binding {
            metadata: ObjectMeta {
                name: Some(name.clone()),
                namespace: Some(namespace.clone()),
                uid: pod.metadata.uid.clone(),
                ..ObjectMeta::default()
            },
            target: ObjectReference {
                kind: Some("Node".into()),
                name: Some(node.to_owned()),
                ..ObjectReference::default()
            },
        };
        let api = Api::<Pod>::namespaced(ctx.client().clone(), &namespace);
        let bound: Result<Value, _> =
            api.create_subresource("binding", &name, &PostParams::default(), &binding).await;
        match bound.map_err(Error::from) {
            Ok(_) => {}
            // The pod is gone, or somebody else gave it a node: its next event tells.
            Err(error) if error.is_not_found() || error.is_conflict() => return Ok(()),
            Err(error) => return Err(error),
        }
        let uid = pod.metadata.uid.clone().unwrap_or_default();
        self.assumed.lock().insert(uid, node.to_owned());
        let note = format!("Successfully assigned {namespace}/{name} to {node}");
        ctx.event(pod, EventType::Normal, "Scheduled", &note).await;
        Ok(())
    }
}

/// The highest priority first, then the oldest.
fn turn(pod: &Pod) -> impl Ord + use<> {
    let priority = pod.spec.as_ref().and_then(|spec| spec.priority).unwrap_or_default();
    (Reverse(priority), pod.metadata.creation_timestamp.clone(), Key::of(pod))
}

/// Writes down why the pod has no node, and tells people, unless both was done before.
async fn refuse(ctx: &Context, pod: &Pod, reason: &str) -> Result<(), Error> {
    let Some(patch) = refusal(pod, reason, &Time(ctx.world().clock.now())) else { return Ok(()) };
    match ctx.patch_status::<Pod>(&Key::of(pod), patch).await {
        Err(error) if error.is_not_found() => return Ok(()),
        written => written?,
    };
    ctx.event(pod, EventType::Warning, "FailedScheduling", reason).await;
    Ok(())
}

/// The status patch that says `reason`; `None` when the status says it already.
fn refusal(pod: &Pod, reason: &str, now: &Time) -> Option<Value> {
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_deref()).unwrap_or_default();
    let standing = conditions.iter().find(|condition| condition.type_ == "PodScheduled");
    let refused = standing.filter(|condition| condition.status == "False");
    if refused.is_some_and(|condition| {
        condition.reason.as_deref() == Some("Unschedulable") && condition.message.as_deref() == Some(reason)
    }) {
        return None;
    }
    let since = refused.and_then(|condition| condition.last_transition_time.clone()).unwrap_or(now.clone());
    let mut all: Vec<Value> =
        conditions.iter().filter(|condition| condition.type_ != "PodScheduled").map(condition_json).collect();
    all.push(json!({"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": reason,
        "lastProbeTime": null, "lastTransitionTime": since}));
    Some(json!({
        "metadata": {"uid": pod.metadata.uid, "resourceVersion": pod.metadata.resource_version},
        "status": {"conditions": all},
    }))
}

#[cfg(test)]
mod tests {
    use kubewright_world::SIMULATION_START;

    use super::*;

    fn pod(spec: Value) -> Pod {
        let mut spec = spec;
        spec["containers"] = json!([]);
        serde_json::from_value(
            json!({"metadata": {"name": "p", "namespace": "shop", "uid": "u"}, "spec": spec}),
        )
        .expect("a pod")
    }

    #[test]
    fn pods_of_others_gated_or_bound_ones_do_not_wait() {
        assert!(is_waiting(&pod(json!({}))));
        assert!(is_waiting(&pod(json!({"schedulerName": "default-scheduler"}))));
        assert!(!is_waiting(&pod(json!({"schedulerName": "nobody"}))));
        assert!(!is_waiting(&pod(json!({"schedulingGates": [{"name": "wait"}]}))));
        assert!(!is_waiting(&pod(json!({"nodeName": "n"}))));
    }

    #[test]
    fn a_pod_that_ends_or_goes_is_a_reason_to_try_the_waiting_ones_again() {
        let bound = pod(json!({"nodeName": "n"}));
        let mut ended = bound.clone();
        ended.status = serde_json::from_value(json!({"phase": "Succeeded"})).ok();
        assert!(is_reason_for_a_round(&Event::Update { old: &bound, new: &ended }));
        assert!(is_reason_for_a_round(&Event::Delete(&bound)));
        assert!(!is_reason_for_a_round(&Event::Update { old: &bound, new: &bound.clone() }));
    }

    #[test]
    fn heartbeats_of_a_node_start_no_round() {
        let node = |ready: &str| -> Node {
            let conditions = json!([{"type": "Ready", "status": ready}]);
            serde_json::from_value(json!({"metadata": {"name": "n"}, "status": {"conditions": conditions}}))
                .expect("a node")
        };
        assert!(!changes_a_place(&Event::Update { old: &node("True"), new: &node("False") }));
        let mut cordoned = node("True");
        cordoned.spec = serde_json::from_value(json!({"unschedulable": true})).ok();
        assert!(changes_a_place(&Event::Update { old: &node("True"), new: &cordoned }));
    }

    #[test]
    fn higher_priorities_have_their_turn_first() {
        let mut pods = [pod(json!({})), pod(json!({"priority": 7}))];
        pods.sort_by_key(turn);
        assert_eq!(pods[0].spec.as_ref().and_then(|spec| spec.priority), Some(7));
    }

    #[test]
    fn a_refusal_is_written_once_for_each_reason() {
        let now = Time(SIMULATION_START);
        let mut pod = pod(json!({}));
        let patch = refusal(&pod, "no nodes available to schedule pods", &now).expect("a patch");
        pod.status = serde_json::from_value(patch["status"].clone()).ok();
        assert_eq!(refusal(&pod, "no nodes available to schedule pods", &now), None);
        assert!(refusal(&pod, "0/1 nodes are available: 1 Insufficient cpu.", &now).is_some());
    }

    #[test]
    fn a_pod_that_was_just_bound_keeps_its_place_until_the_cache_shows_it() {
        let scheduler = Scheduler::default();
        scheduler.assumed.lock().insert("u".into(), "n".into());
        let unseen = [Arc::new(pod(json!({})))];
        assert!(scheduler.observe(&unseen, &mut Places::new([])).is_empty());
        assert!(!scheduler.assumed.lock().is_empty());
        let seen = [Arc::new(pod(json!({"nodeName": "n"})))];
        assert!(scheduler.observe(&seen, &mut Places::new([])).is_empty());
        assert!(scheduler.assumed.lock().is_empty());
    }
}
