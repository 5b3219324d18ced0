//! The life of a pod on a simulated node: what a kubelet reports when its containers start, run and end without any
//! process, in the manner of kwok's `pod-fast` stages (`kustomize/stage/pod/fast`).
//!
//! A bound pod runs and is ready; its annotations, or the programs of its containers where these are known, say otherwise
//! ([`script`]). The pod of a Job then ends well; a deleted pod is gone when its known programs would have ended
//! ([`deletion`]), others at once, whatever their grace period, as soon as it has no finalizers. Whatever else its status
//! says was said by somebody else and stays.

mod admission;
mod containers;
mod deletion;
mod output;
mod report;
mod script;
mod table;

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::time::Duration;

use futures::Stream;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::Api;
use kube::api::{DeleteParams, Preconditions};
use kubewright_runtime::{Context, Controller, Error, Event, Key, Outcome, Predicate, Reconciler};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::mpsc::UnboundedReceiver;

use self::containers::Containers;
pub use self::output::{Log, NoLog, command_output, container_log};
use self::report::{Said, conditions_with, readiness, status};
use self::table::PodTable;
use crate::addresses::Pool;
use crate::facts::{conditions, is_node_ready, node_name, phase};
use crate::managed::Managed;
use crate::nodes::{self, Waits};
use crate::stages::{Addresses, Cue, Play, Stages};

/// How many pods are worked on at a time.
const WORKERS: usize = 4;

/// The controller of the pods on nodes that are `managed`; `stages`, if there are any, say what happens to them.
pub(crate) fn controller(
    managed: Managed,
    stages: Stages,
    woken_by_stages: UnboundedReceiver<Key>,
) -> Controller {
    let table = PodTable::default();
    let woken = table.clone();
    let kubelet = Kubelet { managed, stages, table, addresses: Mutex::new(Pool::of_pods()) };
    Controller::new("simulated-pods", kubelet)
        .source(keys(woken_by_stages))
        .for_kind::<Pod>()
        .predicate(Predicate::of(|event: &Event<'_, Pod>| !node_name(event.object()).is_empty()))
        .watches(move |node: &Node| woken.wake(node.metadata.name.as_deref().unwrap_or_default()))
        .predicate(Predicate::of(|event: &Event<'_, Node>| match event {
            Event::Update { old, new } => {
                nodes::is_stopped(old) != nodes::is_stopped(new)
                    || is_node_ready(old) != is_node_ready(new)
                    || old.metadata.annotations != new.metadata.annotations
            }
            Event::Create(_) | Event::Delete(_) | Event::Generic(_) => true,
        }))
        .concurrency(WORKERS)
}

struct Kubelet {
    managed: Managed,
    stages: Stages,
    table: PodTable,
    addresses: Mutex<Pool>,
}

impl Reconciler for Kubelet {
    async fn reconcile(&self, ctx: &Context, key: &Key) -> Result<Outcome, Error> {
        let Some(pod) = ctx.get::<Pod>(key).filter(|pod| !node_name(pod).is_empty()) else {
            self.table.forget(key);
            self.stages.forget("Pod", key);
            return Ok(Outcome::Done);
        };
        let is_new_to_it = self.table.insert(node_name(&pod), key);
        let node = ctx.get::<Node>(&Key::cluster_scoped(node_name(&pod)));
        let Some(node) = node.filter(|node| self.managed.includes(node) && !nodes::is_stopped(node)) else {
            return Ok(Outcome::Done);
        };
        let now = ctx.world().clock.now();
        match self.stages.cue("Pod", key, &*pod, ctx.world()) {
            Cue::Default => {}
            Cue::Wait(due) => return Ok(wait_until(due, now)),
            Cue::Play(play) => return self.play(ctx, &play, &pod, &node, key).await,
        }
        let step = match step(&pod, Waits::of(&node), now) {
            Step::Rest(wait) if is_new_to_it && is_node_ready(&node) => {
                returned(&pod).unwrap_or(Step::Rest(wait))
            }
            step => step,
        };
        if matches!(step, Step::Report(_)) && admission::is_new(&pod) {
            let others = self.table.on(node_name(&pod));
            let others =
                others.iter().filter(|other| *other != key).filter_map(|other| ctx.get::<Pod>(other));
            if let Some(refused) = admission::refusal(&pod, others, &Time(now)) {
                return write(ctx, key, &pod, &refused).await;
            }
        }
        let status = match step {
            Step::Rest(wait) => return Ok(wait.map_or(Outcome::Done, Outcome::RequeueAfter)),
            Step::Remove => return remove(ctx, &pod, key).await,
            Step::Report(containers) => {
                let has_address = pod.status.as_ref().is_some_and(|status| status.pod_ip.is_some());
                let addresses = (!has_address)
                    .then(|| (nodes::address(&node), self.addresses.lock().take(|| addresses_in_use(ctx))));
                status(&pod, &containers, addresses, &Time(now))
            }
            Step::Kill(containers, reason, message) => {
                let mut killed = status(&pod, &containers, None, &Time(now));
                killed["phase"] = json!("Failed");
                killed["reason"] = json!(reason);
                killed["message"] = json!(message);
                killed
            }
            Step::Readiness(ready) => {
                json!({"conditions": conditions_with(&pod, &[ready], &Time(now))})
            }
        };
        write(ctx, key, &pod, &status).await
    }
}

/// Writes a pod's status, if the pod is as it was.
async fn write(ctx: &Context, key: &Key, pod: &Pod, status: &Value) -> Result<Outcome, Error> {
    let metadata = json!({"uid": pod.metadata.uid, "resourceVersion": pod.metadata.resource_version});
    match ctx.patch_status::<Pod>(key, json!({"metadata": metadata, "status": status})).await {
        Err(error) if error.is_not_found() => Ok(Outcome::Done),
        Err(error) => Err(error),
        // It takes one step of a pod's life, and the next one follows from what it wrote.
        Ok(written) if written.metadata.resource_version != pod.metadata.resource_version => {
            Ok(Outcome::RequeueAfter(Duration::ZERO))
        }
        Ok(_) => Ok(Outcome::Done),
    }
}

impl Kubelet {
    async fn play(
        &self,
        ctx: &Context,
        play: &Play,
        pod: &Pod,
        node: &Node,
        key: &Key,
    ) -> Result<Outcome, Error> {
        let known = pod.status.as_ref().and_then(|status| status.pod_ip.as_ref()?.parse().ok());
        let own = known.unwrap_or_else(|| self.addresses.lock().take(|| addresses_in_use(ctx)));
        let addresses = Addresses { node: nodes::address(node), pod: Some(own) };
        let api = Api::namespaced(ctx.client().clone(), key.namespace.as_deref().unwrap_or_default());
        let played = play.perform(ctx, pod, &api, &addresses).await;
        if played.is_err() {
            self.stages.forget("Pod", key);
        }
        played.map(|()| Outcome::Done)
    }
}

/// Looks again when the time has come.
pub(crate) fn wait_until(due: Option<Timestamp>, now: Timestamp) -> Outcome {
    due.map_or(Outcome::Done, |due| Outcome::RequeueAfter(until(due, now)))
}

/// The keys that arrive at a channel.
pub(crate) fn keys(receiver: UnboundedReceiver<Key>) -> impl Stream<Item = Key> + Send + 'static {
    futures::stream::unfold(receiver, |mut receiver| async move {
        receiver.recv().await.map(|key| (key, receiver))
    })
}

async fn remove(ctx: &Context, pod: &Pod, key: &Key) -> Result<Outcome, Error> {
    let preconditions = Preconditions { uid: pod.metadata.uid.clone(), resource_version: None };
    let at_once = DeleteParams {
        grace_period_seconds: Some(0),
        preconditions: Some(preconditions),
        ..DeleteParams::default()
    };
    ctx.delete::<Pod>(key, at_once).await.map(|_| Outcome::Done)
}

fn addresses_in_use(ctx: &Context) -> BTreeSet<Ipv4Addr> {
    let address = |pod: &Pod| pod.status.as_ref()?.pod_ip.as_ref()?.parse().ok();
    ctx.list::<Pod>(None).iter().filter_map(|pod| address(pod)).collect()
}

/// What happens next to a bound pod.
#[derive(Clone, Debug, PartialEq)]
enum Step {
    /// Nothing, before this time is over.
    Rest(Option<Duration>),
    /// Its containers are like this now.
    Report(Containers),
    /// It is ended, for this reason and with this explanation.
    Kill(Containers, &'static str, &'static str),
    /// Its `Ready` condition follows its readiness gates.
    Readiness(Said),
    /// It is deleted for good.
    Remove,
}

fn step(pod: &Pod, waits: Waits, now: Timestamp) -> Step {
    if pod.metadata.deletion_timestamp.is_some() {
        return deletion::step(pod, waits.for_ends, now);
    }
    if matches!(phase(pod), "Succeeded" | "Failed") {
        return Step::Rest(None);
    }
    let has_statuses = has_statuses(pod);
    if phase(pod) == "Running" && !has_statuses {
        // Somebody else says so.
        return gated(pod).map_or(Step::Rest(None), Step::Readiness);
    }
    let before = Containers::of(pod);
    let deadline = deadline(pod);
    if deadline.is_some_and(|deadline| deadline <= now) {
        let message = "Pod was active on the node longer than the specified deadline";
        return Step::Kill(before.stopped(true, now), "DeadlineExceeded", message);
    }
    let after = before.at(pod, waits.for_probes, now);
    if !has_statuses || before.statuses() != after.statuses() || !is_observed(pod) {
        return Step::Report(after);
    }
    if let Some(ready) = gated(pod) {
        return Step::Readiness(ready);
    }
    let next = after.due.into_iter().chain(deadline).min();
    Step::Rest(next.map(|next| until(next, now)))
}

fn until(time: Timestamp, now: Timestamp) -> Duration {
    Duration::try_from(time.duration_since(now)).unwrap_or_default()
}

/// When `spec.activeDeadlineSeconds` are over.
fn deadline(pod: &Pod) -> Option<Timestamp> {
    let seconds = u64::try_from(pod.spec.as_ref()?.active_deadline_seconds?).ok()?;
    let started = pod.status.as_ref()?.start_time.as_ref()?.0;
    started.checked_add(Duration::from_secs(seconds)).ok()
}

/// Whether the status is of the pod as its spec is now, ephemeral containers too.
fn is_observed(pod: &Pod) -> bool {
    let status = pod.status.as_ref();
    let observed = status.and_then(|status| status.observed_generation);
    pod.metadata.generation.is_none() || observed == pod.metadata.generation
}

/// Whether the status tells of every main container.
fn has_statuses(pod: &Pod) -> bool {
    let statuses = pod.status.as_ref().and_then(|status| status.container_statuses.as_deref());
    let statuses = statuses.unwrap_or_default();
    let containers = pod.spec.as_ref().map(|spec| spec.containers.as_slice()).unwrap_or_default();
    containers.iter().all(|container| statuses.iter().any(|status| status.name == container.name))
}

/// The `Ready` condition of a pod with readiness gates, if it should be another: then it is ready when its containers
/// are and every gate's condition, which others set, is true.
fn gated(pod: &Pod) -> Option<Said> {
    let gates = pod.spec.as_ref()?.readiness_gates.as_ref()?;
    if gates.is_empty() || !is_true(pod, "ContainersReady") {
        return None;
    }
    let wanted = readiness(pod);
    let ready = conditions(pod).iter().find(|condition| condition.type_ == "Ready");
    let is_said = ready.is_some_and(|ready| (ready.status == "True") == wanted.is_true);
    (!is_said).then_some(wanted)
}

/// What is to be said of a pod whose node was not ready and is again: nobody knew whether it is.
fn returned(pod: &Pod) -> Option<Step> {
    let wanted = readiness(pod);
    let containers = Containers::of(pod);
    let runs =
        phase(pod) == "Running" && has_statuses(pod) && containers.main.iter().all(|status| status.ready);
    (runs && wanted.is_true && is_true(pod, "ContainersReady") && !is_true(pod, "Ready"))
        .then_some(Step::Readiness(wanted))
}

fn is_true(pod: &Pod, kind: &str) -> bool {
    conditions(pod).iter().any(|has| has.type_ == kind && has.status == "True")
}

#[cfg(test)]
mod tests;
