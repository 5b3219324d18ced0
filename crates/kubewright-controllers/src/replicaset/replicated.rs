//! What ReplicaSets and ReplicationControllers have in common: they keep a number of pods of one template.
//!
//! Kubernetes makes the one look like the other (`pkg/controller/replication/conversion.go`); here both are [`Replicated`].

use k8s_openapi::api::apps::v1::{ReplicaSet, ReplicaSetCondition, ReplicaSetSpec, ReplicaSetStatus};
use k8s_openapi::api::core::v1::{
    PodTemplateSpec, ReplicationController, ReplicationControllerCondition, ReplicationControllerStatus,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kubewright_objects::{field, optional};
use kubewright_runtime::Object;

/// A kind whose objects keep `spec.replicas` pods of one template. Its status is spoken of as a ReplicaSet's.
pub(super) trait Replicated: Object {
    /// The name of its controller, which is the source of its events.
    const CONTROLLER: &'static str;
    /// Whether its status tells how many pods are on their way out.
    const TELLS_TERMINATING: bool;

    /// `spec.selector`; `None` without a spec.
    fn selector(&self) -> Option<LabelSelector>;
    /// `spec.template`.
    fn template(&self) -> Option<&PodTemplateSpec>;
    /// `spec.replicas`, 1 when nobody says.
    fn replicas(&self) -> i32;
    /// `spec.minReadySeconds`.
    fn min_ready_seconds(&self) -> i32;
    /// What it says of its pods.
    fn report(&self) -> Option<ReplicaSetStatus>;
    /// The object as it is, with another status.
    fn reporting(&self, status: ReplicaSetStatus) -> Self;
}

impl Replicated for ReplicaSet {
    const CONTROLLER: &'static str = "replicaset-controller";
    const TELLS_TERMINATING: bool = true;

    fn selector(&self) -> Option<LabelSelector> {
        optional::<ReplicaSetSpec>(&self.spec).map(|spec| spec.selector.clone())
    }

    fn template(&self) -> Option<&PodTemplateSpec> {
        optional::<ReplicaSetSpec>(&self.spec)?.template.as_ref()
    }

    fn replicas(&self) -> i32 {
        optional::<ReplicaSetSpec>(&self.spec).and_then(|spec| spec.replicas).unwrap_or(1)
    }

    fn min_ready_seconds(&self) -> i32 {
        optional::<ReplicaSetSpec>(&self.spec).and_then(|spec| spec.min_ready_seconds).unwrap_or_default()
    }

    fn report(&self) -> Option<ReplicaSetStatus> {
        self.status.clone()
    }

    fn reporting(&self, status: ReplicaSetStatus) -> Self {
        Self { status: Some(status), ..self.clone() }
    }
}

impl Replicated for ReplicationController {
    const CONTROLLER: &'static str = "replication-controller";
    const TELLS_TERMINATING: bool = false;

    fn selector(&self) -> Option<LabelSelector> {
        let labels = self.spec.as_ref()?.selector.clone();
        Some(LabelSelector { match_labels: labels, ..LabelSelector::default() })
    }

    fn template(&self) -> Option<&PodTemplateSpec> {
        self.spec.as_ref()?.template.as_ref()
    }

    fn replicas(&self) -> i32 {
        self.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1)
    }

    fn min_ready_seconds(&self) -> i32 {
        self.spec.as_ref().and_then(|spec| spec.min_ready_seconds).unwrap_or_default()
    }

    fn report(&self) -> Option<ReplicaSetStatus> {
        let status = self.status.clone()?;
        let condition = |condition: ReplicationControllerCondition| ReplicaSetCondition {
            type_: field(condition.type_),
            status: field(condition.status),
            last_transition_time: condition.last_transition_time,
            reason: condition.reason,
            message: condition.message,
        };
        Some(ReplicaSetStatus {
            replicas: status.replicas,
            fully_labeled_replicas: status.fully_labeled_replicas,
            ready_replicas: status.ready_replicas,
            available_replicas: status.available_replicas,
            terminating_replicas: None,
            observed_generation: status.observed_generation,
            conditions: status.conditions.map(|all| all.into_iter().map(condition).collect()),
        })
    }

    fn reporting(&self, status: ReplicaSetStatus) -> Self {
        let condition = |condition: ReplicaSetCondition| ReplicationControllerCondition {
            type_: optional::<String>(&condition.type_).cloned().unwrap_or_default(),
            status: optional::<String>(&condition.status).cloned().unwrap_or_default(),
            last_transition_time: condition.last_transition_time,
            reason: condition.reason,
            message: condition.message,
        };
        let status = ReplicationControllerStatus {
            replicas: status.replicas,
            fully_labeled_replicas: status.fully_labeled_replicas,
            ready_replicas: status.ready_replicas,
            available_replicas: status.available_replicas,
            observed_generation: status.observed_generation,
            conditions: status.conditions.map(|all| all.into_iter().map(condition).collect()),
        };
        Self { status: Some(status), ..self.clone() }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_replication_controller_says_what_a_set_would_but_for_terminating_pods() {
        let status = json!({"replicas": 3, "fullyLabeledReplicas": 2, "readyReplicas": 1, "observedGeneration": 4,
            "conditions": [{"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": "no"}]});
        let mut counted = status.clone();
        counted["terminatingReplicas"] = json!(1);
        let controller: ReplicationController = kubewright_objects::from_value(json!({
            "metadata": {"name": "web", "namespace": "default"},
            "spec": {"replicas": 3, "selector": {"app": "web"}},
        }))
        .expect("a ReplicationController");
        let reported = controller.reporting(kubewright_objects::from_value(counted).expect("a status"));
        assert_eq!(kubewright_objects::to_value(&reported.status).expect("JSON"), status);
        assert_eq!(kubewright_objects::to_value(&reported.report()).expect("JSON"), status);
        let selector = controller.selector().expect("a selector");
        assert_eq!(
            kubewright_objects::to_value(&selector).expect("JSON"),
            json!({"matchLabels": {"app": "web"}})
        );
    }
}
