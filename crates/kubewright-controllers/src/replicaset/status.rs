//! The status of a ReplicaSet or ReplicationController (`pkg/controller/replicaset/replica_set_utils.go`).

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{ReplicaSetCondition, ReplicaSetStatus};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kubewright_objects::{field, optional};

use super::replicated::Replicated;
use crate::pod::{self, Availability};

/// Why a pass could not bring the number of pods to the wanted one.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ReplicaFailure {
    /// `FailedCreate` or `FailedDelete`.
    pub(super) reason: &'static str,
    /// What the API server said.
    pub(super) message: String,
}

/// The status that `set` should have, and when to look again because a pod becomes available then.
///
/// `pods` are the set's pods, the ones that ended or go included. A failure that stands already keeps its first words.
pub(super) fn status<R: Replicated>(
    set: &R,
    pods: &[Arc<Pod>],
    failure: Option<&ReplicaFailure>,
    now: Timestamp,
) -> (ReplicaSetStatus, Option<Duration>) {
    let min_ready = pod::seconds(set.min_ready_seconds());
    let template = set.template().and_then(|template| template.metadata.as_ref());
    let template_labels = template.and_then(|metadata| metadata.labels.as_ref());
    let fully_labelled = |pod: &Pod| {
        let labels = pod.metadata.labels.as_ref();
        template_labels
            .into_iter()
            .flatten()
            .all(|(key, value)| labels.and_then(|l| l.get(key)) == Some(value))
    };

    let (mut replicas, mut labelled, mut ready, mut available) = (0, 0, 0, 0);
    let mut next: Option<Duration> = None;
    for pod in pods.iter().filter(|pod| pod::is_active(pod)) {
        replicas += 1;
        labelled += i32::from(fully_labelled(pod));
        ready += i32::from(pod::is_ready(pod));
        match pod::availability(pod, min_ready, now) {
            Availability::Available => available += 1,
            Availability::In(wait) => next = Some(next.map_or(wait, |next| next.min(wait))),
            Availability::Unknown => {}
        }
    }
    let terminating = pods.iter().filter(|pod| pod::is_terminating(pod)).count();
    let status = ReplicaSetStatus {
        replicas,
        fully_labeled_replicas: positive(labelled),
        ready_replicas: positive(ready),
        available_replicas: positive(available),
        terminating_replicas: R::TELLS_TERMINATING.then_some(i32::try_from(terminating).unwrap_or(i32::MAX)),
        observed_generation: set.meta().generation,
        conditions: conditions(set, failure, now),
    };
    (status, next)
}

fn conditions<R: Replicated>(
    set: &R,
    failure: Option<&ReplicaFailure>,
    now: Timestamp,
) -> Option<Vec<ReplicaSetCondition>> {
    let mut conditions = set.report().and_then(|status| status.conditions).unwrap_or_default();
    let standing = conditions.iter().position(|condition| {
        optional::<String>(&condition.type_).is_some_and(|kind| kind == "ReplicaFailure")
    });
    match (standing, failure) {
        (Some(index), None) => {
            conditions.remove(index);
        }
        (None, Some(failure)) => conditions.push(ReplicaSetCondition {
            type_: field("ReplicaFailure".to_owned()),
            status: field("True".to_owned()),
            last_transition_time: Some(Time(now)),
            reason: Some(failure.reason.into()),
            message: Some(failure.message.clone()),
        }),
        (Some(_), Some(_)) | (None, None) => {}
    }
    (!conditions.is_empty()).then_some(conditions)
}

/// Kubernetes leaves a count of 0 out.
fn positive(count: i32) -> Option<i32> {
    (count > 0).then_some(count)
}

#[cfg(test)]
mod tests {
    use kubewright_world::SIMULATION_START as NOW;
    use serde_json::json;

    use super::super::tests::replica_set;
    use super::*;
    use crate::pod::tests::pod;

    fn shared(pods: &[Pod]) -> Vec<Arc<Pod>> {
        pods.iter().cloned().map(Arc::new).collect()
    }

    #[test]
    fn an_empty_set_says_zero_replicas_and_none_terminating() {
        let (status, next) = status(&replica_set(0), &[], None, NOW);
        assert_eq!(
            kubewright_objects::to_value(&status).unwrap(),
            json!({"replicas": 0, "terminatingReplicas": 0, "observedGeneration": 1})
        );
        assert_eq!(next, None);
    }

    #[test]
    fn pods_are_counted_by_what_they_are() {
        let mut unlabelled = pod("unlabelled", "Running", Some(NOW));
        unlabelled.metadata.labels = None;
        let mut going = pod("going", "Running", Some(NOW));
        going.metadata.deletion_timestamp = Some(Time(NOW));
        let all =
            shared(&[pod("pending", "Pending", None), unlabelled, going, pod("failed", "Failed", None)]);
        let (status, _) = status(&replica_set(2), &all, None, NOW);
        assert_eq!(
            kubewright_objects::to_value(&status).unwrap(),
            json!({"replicas": 2, "fullyLabeledReplicas": 1, "readyReplicas": 1, "availableReplicas": 1,
                "terminatingReplicas": 1, "observedGeneration": 1})
        );
    }

    #[test]
    fn a_pod_counts_as_available_after_min_ready_seconds_and_the_time_is_known() {
        let mut set = replica_set(2);
        set.spec.as_mut().unwrap().min_ready_seconds = Some(10);
        let ago = |seconds| Some(NOW - Duration::from_secs(seconds));
        let pods =
            shared(&[pod("a", "Running", ago(11)), pod("b", "Running", ago(7)), pod("c", "Running", ago(1))]);
        let (status, next) = status(&set, &pods, None, NOW);
        assert_eq!((status.ready_replicas, status.available_replicas), (Some(3), Some(1)));
        assert_eq!(next, Some(Duration::from_secs(3)));
    }

    #[test]
    fn a_failure_is_a_condition_that_keeps_its_first_words_and_goes_with_the_failure() {
        let failure = |message: &str| ReplicaFailure { reason: "FailedCreate", message: message.into() };
        let mut set = replica_set(2);
        let (first, _) = status(&set, &[], Some(&failure("no room")), NOW);
        set.status = Some(first.clone());
        let (second, _) = status(&set, &[], Some(&failure("still none")), NOW + Duration::from_secs(9));
        assert_eq!(second, first);
        assert_eq!(second.conditions.as_ref().unwrap()[0].message.as_deref(), Some("no room"));
        let (third, _) = status(&set, &[], None, NOW);
        assert_eq!(third.conditions, None);
    }
}
