//! Whether the kubelet of a simulated node admits a pod: ports of the node are given once (`pkg/kubelet/lifecycle/predicate.go`).
//! Whatever else it would look at, the scheduler has.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::{Value, json};

use super::has_statuses;
use crate::facts::{is_finished, phase};
use crate::scheduler::want_the_same_port;

/// Whether nothing has been reported of the pod.
pub(super) fn is_new(pod: &Pod) -> bool {
    !has_statuses(pod) && matches!(phase(pod), "" | "Pending")
}

/// The status of a pod that wants a port of the node which one of the `others` there has: one that runs, or one that was
/// there before it.
pub(super) fn refusal(pod: &Pod, others: impl Iterator<Item = Arc<Pod>>, now: &Time) -> Option<Value> {
    let is_there = |other: &Pod| !is_finished(other) && (has_statuses(other) || is_older(other, pod));
    let mut others = others;
    others.find(|other| is_there(other) && want_the_same_port(pod, other))?;
    let mut status = json!({
        "phase": "Failed",
        "reason": "NodePorts",
        "message": "Pod was rejected: Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports",
        "startTime": now,
    });
    if let Some(generation) = pod.metadata.generation {
        status["observedGeneration"] = json!(generation);
    }
    Some(status)
}

fn is_older(other: &Pod, pod: &Pod) -> bool {
    let age = |pod: &Pod| {
        let (metadata, uid) = (&pod.metadata, pod.metadata.uid.clone());
        (metadata.creation_timestamp.as_ref().map(|created| created.0), uid)
    };
    age(other) < age(pod)
}

#[cfg(test)]
mod tests {
    use kubewright_world::SIMULATION_START as NOW;

    use super::*;

    fn pod(uid: &str, port: u16, status: &Value) -> Pod {
        kubewright_objects::from_value(json!({
            "metadata": {"name": uid, "uid": uid, "creationTimestamp": "2025-01-01T00:00:00Z"},
            "spec": {"containers": [{"name": "c", "ports": [{"containerPort": 80, "hostPort": port}]}]},
            "status": status,
        }))
        .expect("a pod")
    }

    fn reason(pod: &Pod, other: Pod) -> Option<Value> {
        refusal(pod, std::iter::once(Arc::new(other)), &Time(NOW)).map(|status| status["reason"].clone())
    }

    #[test]
    fn a_port_of_the_node_is_given_once() {
        let second = pod("b", 8080, &json!({}));
        assert_eq!(reason(&second, pod("a", 8080, &json!({}))), Some(json!("NodePorts")));
        assert_eq!(reason(&second, pod("a", 8081, &json!({}))), None);
        assert_eq!(reason(&second, pod("c", 8080, &json!({}))), None, "that one is later");
        let running = json!({"phase": "Running", "containerStatuses": [{"name": "c"}]});
        assert_eq!(reason(&second, pod("c", 8080, &running)), Some(json!("NodePorts")));
        assert_eq!(reason(&second, pod("a", 8080, &json!({"phase": "Failed"}))), None);
    }
}
