//! What a simulated kubelet reports about a pod (`pkg/kubelet/kubelet_pods.go`, `pkg/kubelet/status/generate.go`).

use std::net::Ipv4Addr;

use k8s_openapi::api::core::v1::{Container, ContainerStatus, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::{Value, json};

use super::containers::{Containers, ended, has_ended_well, is_running, role_of_init};
use super::script::Role;
use crate::facts::{condition_json, conditions};

/// A condition: type, status, reason, message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Said {
    pub(super) kind: &'static str,
    pub(super) is_true: bool,
    pub(super) reason: Option<&'static str>,
    pub(super) message: Option<String>,
}

impl Said {
    fn yes(kind: &'static str) -> Self {
        Self { kind, is_true: true, reason: None, message: None }
    }

    fn no(kind: &'static str, reason: &'static str, message: Option<String>) -> Self {
        Self { kind, is_true: false, reason: Some(reason), message }
    }
}

/// The phase of a pod with these containers (`getPhase`).
pub(super) fn phase(pod: &Pod, containers: &Containers) -> &'static str {
    let policy = pod.spec.as_ref().and_then(|spec| spec.restart_policy.as_deref()).unwrap_or("Always");
    let inits =
        of_init(pod).zip(&containers.init).filter(|(container, _)| role_of_init(container) == Role::Init);
    let mut has_begun = true;
    for (_, status) in inits {
        if ended(status).is_some_and(|ended| ended.exit_code != 0) && policy == "Never" {
            return "Failed";
        }
        has_begun &= has_ended_well(status);
    }
    let is_waiting = |status: &ContainerStatus| {
        let was = status.last_state.as_ref().is_some_and(|last| last.terminated.is_some());
        !is_running(status) && ended(status).is_none() && !was
    };
    let main = &containers.main;
    if !has_begun || main.iter().any(is_waiting) {
        "Pending"
    } else if main.iter().any(is_running) || policy == "Always" || main.is_empty() {
        "Running"
    } else if main.iter().all(has_ended_well) {
        "Succeeded"
    } else if policy == "Never" && main.iter().all(|status| ended(status).is_some()) {
        "Failed"
    } else {
        "Running"
    }
}

/// The pod's status with these containers; `addresses` are the node's and the pod's own.
pub(super) fn status(
    pod: &Pod,
    containers: &Containers,
    addresses: Option<(Option<Ipv4Addr>, Ipv4Addr)>,
    now: &Time,
) -> Value {
    let phase = phase(pod, containers);
    let is_over = matches!(phase, "Succeeded" | "Failed");
    let stopped;
    let containers = if is_over {
        stopped = containers.stopped(false, now.0);
        &stopped
    } else {
        containers
    };
    let mut status = json!({
        "phase": phase,
        "conditions": conditions_with(pod, &said(pod, containers, phase), now),
        "containerStatuses": containers.main.iter().map(status_json).collect::<Vec<_>>(),
    });
    if !containers.init.is_empty() {
        status["initContainerStatuses"] = containers.init.iter().map(status_json).collect();
    }
    if !containers.ephemeral.is_empty() {
        status["ephemeralContainerStatuses"] = containers.ephemeral.iter().map(status_json).collect();
    }
    if let Some(generation) = pod.metadata.generation {
        status["observedGeneration"] = json!(generation);
    }
    let started = pod.status.as_ref().and_then(|status| status.start_time.as_ref());
    if started.is_none() {
        status["startTime"] = json!(now);
    }
    if let Some((host, own)) = addresses {
        let host_network = pod.spec.as_ref().and_then(|spec| spec.host_network) == Some(true);
        let address = host.filter(|_| host_network).unwrap_or(own).to_string();
        status["podIP"] = json!(address);
        status["podIPs"] = json!([{"ip": address}]);
        if let Some(host) = host {
            status["hostIP"] = json!(host.to_string());
            status["hostIPs"] = json!([{"ip": host.to_string()}]);
        }
    }
    status
}

/// The conditions of a pod with these containers.
fn said(pod: &Pod, containers: &Containers, phase: &str) -> Vec<Said> {
    let over = match phase {
        "Succeeded" => Some("PodCompleted"),
        "Failed" => Some("PodFailed"),
        _ => None,
    };
    let initialized = initialized(pod, containers);
    let (ready, containers_ready) = match over {
        Some(reason) => (Said::no("Ready", reason, None), Said::no("ContainersReady", reason, None)),
        None => match containers_ready(pod, containers) {
            Ok(()) => (readiness(pod), Said::yes("ContainersReady")),
            Err(message) => {
                let no = |kind| Said::no(kind, "ContainersNotReady", Some(message.clone()));
                (no("Ready"), no("ContainersReady"))
            }
        },
    };
    let sandbox = match over {
        Some(_) => Said { kind: "PodReadyToStartContainers", is_true: false, reason: None, message: None },
        None => Said::yes("PodReadyToStartContainers"),
    };
    let initialized = match (initialized, phase) {
        (Ok(()), "Succeeded") => Said { reason: Some("PodCompleted"), ..Said::yes("Initialized") },
        (Ok(()), _) => Said::yes("Initialized"),
        (Err(_), "Failed") => Said::no("Initialized", "PodFailed", None),
        (Err(message), _) => Said::no("Initialized", "ContainersNotInitialized", Some(message)),
    };
    vec![sandbox, initialized, ready, containers_ready, Said::yes("PodScheduled")]
}

fn of_init(pod: &Pod) -> impl Iterator<Item = &Container> {
    pod.spec.iter().flat_map(|spec| spec.init_containers.iter().flatten())
}

fn initialized(pod: &Pod, containers: &Containers) -> Result<(), String> {
    let is_done = |(container, status): &(&Container, &ContainerStatus)| match role_of_init(container) {
        Role::Init => has_ended_well(status),
        _ => is_running(status) || ended(status).is_some(),
    };
    let incomplete: Vec<_> = of_init(pod)
        .zip(&containers.init)
        .filter(|both| !is_done(both))
        .map(|(one, _)| one.name.as_str())
        .collect();
    if incomplete.is_empty() {
        return Ok(());
    }
    Err(format!("containers with incomplete status: [{}]", incomplete.join(" ")))
}

fn containers_ready(pod: &Pod, containers: &Containers) -> Result<(), String> {
    let sidecars = of_init(pod).zip(&containers.init).filter(|(one, _)| role_of_init(one) == Role::Sidecar);
    let statuses = sidecars.map(|(_, status)| status).chain(&containers.main);
    let unready: Vec<_> =
        statuses.filter(|status| !status.ready).map(|status| status.name.as_str()).collect();
    if unready.is_empty() {
        return Ok(());
    }
    Err(format!("containers with unready status: [{}]", unready.join(" ")))
}

/// `Ready`, when all containers are: then it hangs on the readiness gates, whose conditions others set
/// (`GeneratePodReadyCondition`).
pub(super) fn readiness(pod: &Pod) -> Said {
    let gates = pod.spec.as_ref().and_then(|spec| spec.readiness_gates.as_deref()).unwrap_or_default();
    let against = gates.iter().filter_map(|gate| {
        let gate = &gate.condition_type;
        match conditions(pod).iter().find(|condition| condition.type_ == *gate) {
            None => Some(format!("corresponding condition of pod readiness gate {gate:?} does not exist.")),
            Some(condition) if condition.status != "True" => {
                let status = &condition.status;
                Some(format!("the status of pod readiness gate {gate:?} is not \"True\", but {status}"))
            }
            Some(_) => None,
        }
    });
    let against: Vec<_> = against.collect();
    if against.is_empty() {
        return Said::yes("Ready");
    }
    Said::no("Ready", "ReadinessGatesNotReady", Some(against.join(", ")))
}

/// A container's status as Kubernetes writes it: with a `lastState`, though there may be none.
fn status_json(status: &ContainerStatus) -> Value {
    let mut value = json!(status);
    if value.get("lastState").is_none() {
        value["lastState"] = json!({});
    }
    value
}

/// The pod's conditions with those that are `said` in place of their like; one that keeps its status keeps its time.
pub(super) fn conditions_with(pod: &Pod, said: &[Said], now: &Time) -> Vec<Value> {
    let mut all: Vec<Value> = conditions(pod)
        .iter()
        .filter(|condition| !said.iter().any(|said| said.kind == condition.type_))
        .map(condition_json)
        .collect();
    for said in said {
        let status = if said.is_true { "True" } else { "False" };
        let before = conditions(pod).iter().find(|condition| condition.type_ == said.kind);
        let before = before.filter(|condition| condition.status == status);
        if let Some(before) =
            before.filter(|before| before.reason.as_deref() == said.reason && before.message == said.message)
        {
            let mut condition = condition_json(before);
            observe(&mut condition, pod);
            all.push(condition);
            continue;
        }
        let since = before.and_then(|before| before.last_transition_time.as_ref()).unwrap_or(now);
        let mut condition =
            json!({"type": said.kind, "status": status, "lastProbeTime": null, "lastTransitionTime": since});
        if let Some(reason) = said.reason {
            condition["reason"] = json!(reason);
        }
        if let Some(message) = &said.message {
            condition["message"] = json!(message);
        }
        observe(&mut condition, pod);
        all.push(condition);
    }
    all
}

/// A condition says which generation of the pod it is of, but for the one that binding the pod set.
fn observe(condition: &mut Value, pod: &Pod) {
    if let Some(generation) = pod.metadata.generation.filter(|_| condition["type"] != "PodScheduled") {
        condition["observedGeneration"] = json!(generation);
    }
}
