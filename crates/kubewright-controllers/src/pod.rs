//! What controllers ask about a pod (`pkg/api/v1/pod/util.go`, `pkg/controller/controller_utils.go`).

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ContainerStatus, Pod, PodCondition};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
pub(crate) use kubewright_node::facts::{
    condition_json, conditions, is_finished, node_name, phase, tolerations,
};
use serde_json::{Value, json};

/// The pod's condition of this type.
pub(crate) fn condition<'a>(pod: &'a Pod, kind: &str) -> Option<&'a PodCondition> {
    conditions(pod).iter().find(|condition| condition.type_ == kind)
}

/// The value of the label; `None` when the pod does not have it.
pub(crate) fn label<'a>(pod: &'a Pod, name: &str) -> Option<&'a str> {
    pod.metadata.labels.as_ref()?.get(name).map(String::as_str)
}

/// Whether the `Ready` condition is true.
pub(crate) fn is_ready(pod: &Pod) -> bool {
    condition(pod, "Ready").is_some_and(|ready| ready.status == "True")
}

/// Since when the `Ready` condition has its value.
pub(crate) fn ready_since(pod: &Pod) -> Option<Timestamp> {
    condition(pod, "Ready")?.last_transition_time.as_ref().map(|time| time.0)
}

/// Whether the pod counts as a replica: neither ended nor being deleted.
pub(crate) fn is_active(pod: &Pod) -> bool {
    !is_finished(pod) && pod.metadata.deletion_timestamp.is_none()
}

/// Whether the pod is being deleted and has not ended yet.
pub(crate) fn is_terminating(pod: &Pod) -> bool {
    !is_finished(pod) && pod.metadata.deletion_timestamp.is_some()
}

/// The pod's conditions with one that says why it was disrupted (`DisruptionTarget`), in place of one that says so
/// already.
pub(crate) fn with_disruption(pod: &Pod, reason: &str, message: &str, now: &Time) -> Vec<Value> {
    let others = conditions(pod).iter().filter(|condition| condition.type_ != "DisruptionTarget");
    let mut all: Vec<Value> = others.map(condition_json).collect();
    all.push(json!({"type": "DisruptionTarget", "status": "True", "reason": reason, "message": message,
        "lastProbeTime": null, "lastTransitionTime": now, "observedGeneration": pod.metadata.generation}));
    all
}

/// Whether a pod is available: ready for at least `minReadySeconds`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Availability {
    /// It has been ready for long enough.
    Available,
    /// It will be in this time, if it stays ready.
    In(Duration),
    /// It is not ready, or nobody says since when.
    Unknown,
}

/// A `minReadySeconds` as a duration; less than none is none.
pub(crate) fn seconds(seconds: i32) -> Duration {
    Duration::from_secs(u64::try_from(seconds).unwrap_or_default())
}

/// Whether `pod` is available at `now` when it must have been ready for `min_ready`.
pub(crate) fn availability(pod: &Pod, min_ready: Duration, now: Timestamp) -> Availability {
    if !is_ready(pod) {
        return Availability::Unknown;
    }
    if min_ready.is_zero() {
        return Availability::Available;
    }
    let Some(since) = ready_since(pod) else { return Availability::Unknown };
    let ready_for = Duration::try_from(now.duration_since(since)).unwrap_or_default();
    match min_ready.checked_sub(ready_for) {
        None | Some(Duration::ZERO) => Availability::Available,
        Some(left) => Availability::In(left),
    }
}

/// The most restarts of a container, and of an init container (sidecars among them).
pub(crate) fn restarts(pod: &Pod) -> (i32, i32) {
    let Some(status) = &pod.status else { return (0, 0) };
    let most = |statuses: &Option<Vec<ContainerStatus>>| {
        statuses.iter().flatten().map(|status| status.restart_count).max().unwrap_or_default()
    };
    (most(&status.container_statuses), most(&status.init_container_statuses))
}

#[cfg(test)]
pub(crate) mod tests {
    use kubewright_world::SIMULATION_START;

    use super::*;

    /// A pod `name` in `phase`, ready since `ready` when given.
    pub(crate) fn pod(name: &str, phase: &str, ready: Option<Timestamp>) -> Pod {
        let conditions: Vec<_> = ready
            .map(|since| json!({"type": "Ready", "status": "True", "lastTransitionTime": Time(since)}))
            .into_iter()
            .collect();
        kubewright_objects::from_value(json!({
            "metadata": {"name": name, "namespace": "default", "uid": format!("uid-{name}"),
                "resourceVersion": "1", "labels": {"app": "web"}},
            "spec": {"containers": [], "nodeName": "node-0"},
            "status": {"phase": phase, "conditions": conditions},
        }))
        .expect("a pod")
    }

    #[test]
    fn a_pod_becomes_available_when_it_has_been_ready_for_long_enough() {
        let now = SIMULATION_START;
        let min_ready = Duration::from_secs(10);
        let since = |seconds| pod("p", "Running", Some(now - Duration::from_secs(seconds)));
        assert_eq!(availability(&since(9), min_ready, now), Availability::In(Duration::from_secs(1)));
        assert_eq!(availability(&since(10), min_ready, now), Availability::Available);
        assert_eq!(availability(&pod("p", "Running", None), Duration::ZERO, now), Availability::Unknown);
        assert_eq!(availability(&since(0), Duration::ZERO, now), Availability::Available);
    }

    #[test]
    fn a_finished_pod_is_neither_active_nor_terminating() {
        let mut pod = pod("p", "Failed", None);
        assert!(!is_active(&pod));
        pod.metadata.deletion_timestamp = Some(Time(SIMULATION_START));
        assert!(!is_terminating(&pod));
    }
}
