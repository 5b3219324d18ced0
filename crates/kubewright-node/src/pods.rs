//! The life of a pod on a simulated node: what a kubelet reports when every container starts at once and nothing goes
//! wrong, in the manner of kwok's `pod-fast` stages (`kustomize/stage/pod/fast`).
//!
//! A bound pod runs and is ready; the pod of a Job then ends well; a deleted pod is gone at once, whatever its grace
//! period, as soon as it has no finalizers. Whatever else its status says was said by somebody else and stays.

mod report;

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{ContainerStatus, Node, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::{DeleteParams, Preconditions};
use kubewright_runtime::{Context, Controller, Error, Event, Key, Outcome, Predicate, Reconciler, owner};
use parking_lot::Mutex;
use serde_json::json;

use self::report::{conditions_with, finished, started};
use crate::addresses::Pool;
use crate::facts::{conditions, node_name, phase};

/// How many pods are worked on at a time.
const WORKERS: usize = 4;

/// The controller.
pub(crate) fn controller() -> Controller {
    let waiting = Waiting::default();
    let woken = waiting.clone();
    Controller::new("simulated-pods", Kubelet { waiting, addresses: Mutex::new(Pool::of_pods()) })
        .for_kind::<Pod>()
        .predicate(Predicate::of(|event: &Event<'_, Pod>| !node_name(event.object()).is_empty()))
        .watches(move |node: &Node| woken.wake(node.metadata.name.as_deref().unwrap_or_default()))
        .predicate(Predicate::of(|event: &Event<'_, Node>| !matches!(event, Event::Update { .. })))
        .concurrency(WORKERS)
}

/// Pods on nodes that do not exist (yet), by node.
#[derive(Clone, Default)]
struct Waiting(Arc<Mutex<BTreeMap<String, BTreeSet<Key>>>>);

impl Waiting {
    fn add(&self, node: &str, pod: &Key) {
        self.0.lock().entry(node.to_owned()).or_default().insert(pod.clone());
    }

    fn wake(&self, node: &str) -> Vec<Key> {
        self.0.lock().remove(node).unwrap_or_default().into_iter().collect()
    }
}

struct Kubelet {
    waiting: Waiting,
    addresses: Mutex<Pool>,
}

impl Reconciler for Kubelet {
    async fn reconcile(&self, ctx: &Context, key: &Key) -> Result<Outcome, Error> {
        let Some(pod) = ctx.get::<Pod>(key).filter(|pod| !node_name(pod).is_empty()) else {
            return Ok(Outcome::Done);
        };
        let Some(node) = ctx.get::<Node>(&Key::cluster(node_name(&pod))) else {
            self.waiting.add(node_name(&pod), key);
            return Ok(Outcome::Done);
        };
        let now = Time(ctx.world().clock.now());
        let status = match step(&pod) {
            Step::Rest => return Ok(Outcome::Done),
            Step::Remove => return remove(ctx, &pod, key).await,
            Step::Start => {
                let host = crate::nodes::address(&node);
                let own = self.addresses.lock().take(|| addresses_in_use(ctx));
                started(&pod, host, own, &now)
            }
            Step::Finish => finished(&pod, &now),
            Step::Readiness(ready) => json!({"conditions": conditions_with(&pod, &[ready], &now)}),
        };
        let metadata = json!({"uid": pod.metadata.uid, "resourceVersion": pod.metadata.resource_version});
        match ctx.patch_status::<Pod>(key, json!({"metadata": metadata, "status": status})).await {
            Err(error) if error.is_not_found() => Ok(Outcome::Done),
            written => written.map(|_| Outcome::Done),
        }
    }
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
#[derive(Debug, PartialEq)]
enum Step {
    /// Nothing.
    Rest,
    /// It starts, all containers at once.
    Start,
    /// It ends well.
    Finish,
    /// Its `Ready` condition follows its readiness gates.
    Readiness(Condition),
    /// It is deleted for good.
    Remove,
}

/// Type, status and reason.
type Condition = (&'static str, &'static str, Option<&'static str>);

fn step(pod: &Pod) -> Step {
    if pod.metadata.deletion_timestamp.is_some() {
        let held = pod.metadata.finalizers.as_ref().is_some_and(|finalizers| !finalizers.is_empty());
        return if held { Step::Rest } else { Step::Remove };
    }
    match phase(pod) {
        "" | "Pending" => Step::Start,
        "Running" if is_of_a_job(pod) && is_running(pod) => Step::Finish,
        "Running" => gated(pod).map_or(Step::Rest, Step::Readiness),
        _ => Step::Rest,
    }
}

fn is_of_a_job(pod: &Pod) -> bool {
    owner::controller_of(&pod.metadata).is_some_and(|owner| owner.kind == "Job")
}

/// Whether every container runs, as [`started`] reports.
fn is_running(pod: &Pod) -> bool {
    let statuses =
        pod.status.as_ref().and_then(|status| status.container_statuses.as_deref()).unwrap_or_default();
    let running =
        |status: &&ContainerStatus| status.state.as_ref().is_some_and(|state| state.running.is_some());
    !statuses.is_empty() && statuses.iter().filter(running).count() == statuses.len()
}

/// The `Ready` condition of a pod with readiness gates, if it should be another: then it is ready when its containers
/// are and every gate's condition, which others set, is true.
fn gated(pod: &Pod) -> Option<Condition> {
    gates(pod).next()?;
    let is_true = |kind: &str| conditions(pod).iter().any(|has| has.type_ == kind && has.status == "True");
    let wanted = if is_true("ContainersReady") { readiness(pod) } else { return None };
    (is_true("Ready") != (wanted.1 == "True")).then_some(wanted)
}

fn gates(pod: &Pod) -> impl Iterator<Item = &str> {
    let gates = pod.spec.as_ref().and_then(|spec| spec.readiness_gates.as_deref()).unwrap_or_default();
    gates.iter().map(|gate| gate.condition_type.as_str())
}

/// `Ready`, when all containers are.
fn readiness(pod: &Pod) -> Condition {
    let open = |gate: &str| conditions(pod).iter().any(|has| has.type_ == gate && has.status == "True");
    if gates(pod).all(open) {
        ("Ready", "True", None)
    } else {
        ("Ready", "False", Some("ReadinessGatesNotReady"))
    }
}

#[cfg(test)]
mod tests {
    use kubewright_world::SIMULATION_START;
    use serde_json::Value;

    use super::*;

    const HOST: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
    const OWN: Ipv4Addr = Ipv4Addr::new(10, 128, 0, 1);

    fn now() -> Time {
        Time(SIMULATION_START)
    }

    fn pod(phase: &str) -> Pod {
        serde_json::from_value(json!({
            "metadata": {"name": "p", "namespace": "shop", "uid": "u"},
            "spec": {"nodeName": "n", "containers": [{"name": "c", "image": "web:1"}]},
            "status": {"phase": phase},
        }))
        .expect("a pod")
    }

    fn with_status(mut pod: Pod, status: Value) -> Pod {
        pod.status = serde_json::from_value(status).expect("a status");
        pod
    }

    fn of_a_job(mut pod: Pod) -> Pod {
        let owner =
            json!({"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "j", "controller": true});
        pod.metadata.owner_references = serde_json::from_value(json!([owner])).ok();
        pod
    }

    fn said(pod: &Pod) -> Vec<(&str, &str)> {
        conditions(pod).iter().map(|has| (has.type_.as_str(), has.status.as_str())).collect()
    }

    #[test]
    fn a_bound_pod_starts_and_is_ready_at_once() {
        assert_eq!(step(&pod("Pending")), Step::Start);
        let status = started(&pod("Pending"), Some(HOST), OWN, &now());
        assert_eq!(status["phase"], "Running");
        assert_eq!((&status["podIP"], &status["hostIP"]), (&json!("10.128.0.1"), &json!("10.0.0.1")));
        assert_eq!(status["containerStatuses"][0]["ready"], true);
        assert_eq!(status["containerStatuses"][0]["imageID"], "simulated://web:1");
        let running = with_status(pod("Running"), status);
        assert!(said(&running).iter().all(|(_, status)| *status == "True"), "{:?}", said(&running));
        assert_eq!(said(&running).len(), 5);
        assert_eq!(step(&running), Step::Rest);
    }

    #[test]
    fn what_the_scheduler_said_stays() {
        let scheduled =
            json!({"type": "PodScheduled", "status": "True", "lastTransitionTime": "2025-01-01T00:00:00Z"});
        let pod = with_status(pod("Pending"), json!({"phase": "Pending", "conditions": [scheduled]}));
        let conditions = conditions_with(&pod, &[("PodScheduled", "True", None)], &now());
        let kept = json!({"type": "PodScheduled", "status": "True", "lastProbeTime": null,
            "lastTransitionTime": "2025-01-01T00:00:00Z"});
        assert_eq!(conditions, [kept]);
    }

    #[test]
    fn a_pod_on_the_hosts_network_has_its_address() {
        let mut pod = pod("Pending");
        pod.spec.as_mut().expect("a spec").host_network = Some(true);
        assert_eq!(started(&pod, Some(HOST), OWN, &now())["podIP"], "10.0.0.1");
    }

    #[test]
    fn the_pod_of_a_job_ends_well() {
        let pending = of_a_job(pod("Pending"));
        let running = with_status(pending.clone(), started(&pending, Some(HOST), OWN, &now()));
        assert_eq!(step(&running), Step::Finish);
        let status = finished(&running, &now());
        assert_eq!(status["phase"], "Succeeded");
        let state = &status["containerStatuses"][0]["state"]["terminated"];
        assert_eq!((&state["exitCode"], &state["reason"]), (&json!(0), &json!("Completed")));
        let mut done = running.status.clone().expect("a status");
        done.phase = Some("Succeeded".into());
        assert_eq!(step(&Pod { status: Some(done), ..running }), Step::Rest);
    }

    #[test]
    fn a_status_set_by_hand_is_left_alone() {
        assert_eq!(step(&of_a_job(pod("Failed"))), Step::Rest);
        let unready = json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "False"}]});
        assert_eq!(step(&with_status(pod("Running"), unready)), Step::Rest);
        assert_eq!(step(&of_a_job(pod("Running"))), Step::Rest, "no container was started here");
    }

    #[test]
    fn a_deleted_pod_goes_at_once_unless_a_finalizer_holds_it() {
        let mut going = pod("Running");
        going.metadata.deletion_timestamp = Some(now());
        assert_eq!(step(&going), Step::Remove);
        going.metadata.finalizers = Some(vec!["example.com/hold".into()]);
        assert_eq!(step(&going), Step::Rest);
    }

    #[test]
    fn readiness_follows_the_gates() {
        let mut pending = pod("Pending");
        pending.spec.as_mut().expect("a spec").readiness_gates =
            serde_json::from_value(json!([{"conditionType": "example.com/open"}])).ok();
        let shut = with_status(pending.clone(), started(&pending, Some(HOST), OWN, &now()));
        assert!(said(&shut).contains(&("Ready", "False")));
        assert_eq!(step(&shut), Step::Rest);

        let mut open = shut.clone();
        let opened = json!({"type": "example.com/open", "status": "True"});
        let conditions =
            open.status.as_mut().and_then(|status| status.conditions.as_mut()).expect("conditions");
        conditions.push(serde_json::from_value(opened).expect("a condition"));
        assert_eq!(step(&open), Step::Readiness(("Ready", "True", None)));
    }

    #[test]
    fn init_containers_have_ended_and_sidecars_run() {
        let mut pod = pod("Pending");
        let init = json!([{"name": "setup", "image": "i"}, {"name": "proxy", "image": "p", "restartPolicy": "Always"}]);
        pod.spec.as_mut().expect("a spec").init_containers = serde_json::from_value(init).ok();
        let status = started(&pod, Some(HOST), OWN, &now());
        assert_eq!(status["initContainerStatuses"][0]["state"]["terminated"]["exitCode"], 0);
        assert!(status["initContainerStatuses"][1]["state"]["running"].is_object());
    }
}
