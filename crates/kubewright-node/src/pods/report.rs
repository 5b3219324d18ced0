//! What a simulated kubelet reports about a pod.

use std::net::Ipv4Addr;

use k8s_openapi::api::core::v1::{Container, Pod, PodSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::{Value, json};

use super::{Condition, readiness};
use crate::facts::{condition_json, conditions};

/// The status of a pod that has just started on a node with the address `host`.
pub(super) fn started(pod: &Pod, host: Option<Ipv4Addr>, own: Ipv4Addr, now: &Time) -> Value {
    let Some(spec) = &pod.spec else { return json!({}) };
    let host_network = spec.host_network == Some(true);
    let address = host.filter(|_| host_network).unwrap_or(own);
    let mut status = json!({
        "phase": "Running",
        "conditions": conditions_with(pod, &[
            ("PodReadyToStartContainers", "True", None),
            ("Initialized", "True", None),
            readiness(pod),
            ("ContainersReady", "True", None),
            ("PodScheduled", "True", None),
        ], now),
        "startTime": now,
        "podIP": address.to_string(),
        "podIPs": [{"ip": address.to_string()}],
        "containerStatuses": statuses(pod, &spec.containers, |_| json!({"running": {"startedAt": now}})),
    });
    if let Some(host) = host {
        status["hostIP"] = json!(host.to_string());
        status["hostIPs"] = json!([{"ip": host.to_string()}]);
    }
    if let Some(init) = &spec.init_containers {
        let state = |container: &Container| match container.restart_policy.as_deref() {
            Some("Always") => json!({"running": {"startedAt": now}}),
            _ => completed(now, now),
        };
        status["initContainerStatuses"] = statuses(pod, init, state);
    }
    status
}

/// The status of a pod whose containers have all ended well.
pub(super) fn finished(pod: &Pod, now: &Time) -> Value {
    let Some(spec) = &pod.spec else { return json!({}) };
    let done = Some("PodCompleted");
    let since = pod.status.as_ref().and_then(|status| status.start_time.as_ref()).unwrap_or(now);
    let changed =
        [("Initialized", "True", done), ("Ready", "False", done), ("ContainersReady", "False", done)];
    json!({
        "phase": "Succeeded",
        "conditions": conditions_with(pod, &changed, now),
        "containerStatuses": statuses(pod, &spec.containers, |_| completed(since, now)),
    })
}

fn completed(since: &Time, now: &Time) -> Value {
    json!({"terminated": {"exitCode": 0, "reason": "Completed", "startedAt": since, "finishedAt": now}})
}

/// A status for each container: ready and started while it runs; an init container that has ended stays ready.
fn statuses(pod: &Pod, containers: &[Container], state: impl Fn(&Container) -> Value) -> Value {
    let uid = pod.metadata.uid.as_deref().unwrap_or_default();
    let is_init = |name: &str| {
        let init = pod.spec.as_ref().and_then(|spec: &PodSpec| spec.init_containers.as_deref());
        init.unwrap_or_default().iter().any(|container| container.name == name)
    };
    let status = |container: &Container| {
        let (name, image) = (&container.name, container.image.as_deref().unwrap_or_default());
        let state = state(container);
        let runs = state.get("running").is_some();
        json!({
            "name": name,
            "image": image,
            "imageID": format!("simulated://{image}"),
            "containerID": format!("simulated://{uid}/{name}"),
            "ready": runs || is_init(name),
            "started": runs,
            "restartCount": 0,
            "state": state,
            "lastState": {},
        })
    };
    containers.iter().map(status).collect()
}

/// The pod's conditions with those that are `said` in place of their like; one that keeps its status keeps its time.
pub(super) fn conditions_with(pod: &Pod, said: &[Condition], now: &Time) -> Vec<Value> {
    let mut all: Vec<Value> = conditions(pod)
        .iter()
        .filter(|condition| !said.iter().any(|(kind, ..)| *kind == condition.type_))
        .map(condition_json)
        .collect();
    for (kind, status, reason) in said {
        let before = conditions(pod).iter().find(|condition| condition.type_ == *kind);
        let before = before.filter(|condition| condition.status == *status);
        if let Some(before) = before.filter(|before| before.reason.as_deref() == *reason) {
            all.push(condition_json(before));
            continue;
        }
        let since = before.and_then(|before| before.last_transition_time.as_ref()).unwrap_or(now);
        let mut condition =
            json!({"type": kind, "status": status, "lastProbeTime": null, "lastTransitionTime": since});
        if let Some(reason) = reason {
            condition["reason"] = json!(reason);
        }
        all.push(condition);
    }
    all
}
