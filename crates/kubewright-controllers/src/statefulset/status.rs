//! The status of a StatefulSet (`computeReplicaStatus`, `completeRollingUpdate` in `pkg/controller/statefulset`).

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{StatefulSet, StatefulSetStatus};
use k8s_openapi::api::core::v1::Pod;

use super::revisions::Revisions;
use super::{member, ordinals, plan};
use crate::pod::{self, Availability};

/// The status that `set` with these pods should have, and when to look again because a pod becomes available then.
pub(super) fn status(
    set: &StatefulSet,
    revisions: &Revisions,
    pods: &[Arc<Pod>],
    now: Timestamp,
) -> (StatefulSetStatus, Option<Duration>) {
    let min_ready = plan::min_ready(set);
    let (mut replicas, mut ready, mut available, mut current, mut updated) = (0, 0, 0, 0, 0);
    let mut next: Option<Duration> = None;
    for pod in pods.iter().filter(|pod| ordinals::of(pod.metadata.name.as_deref()).is_some()) {
        let created = !pod::phase(pod).is_empty();
        replicas += i32::from(created);
        if plan::is_running_and_ready(pod) {
            ready += 1;
            match pod::availability(pod, min_ready, now) {
                Availability::Available => available += 1,
                Availability::In(wait) => next = Some(next.map_or(wait, |next| next.min(wait))),
                Availability::Unknown => {}
            }
        }
        if created && pod.metadata.deletion_timestamp.is_none() {
            current += i32::from(member::revision(pod) == revisions.current.name);
            updated += i32::from(member::revision(pod) == revisions.update.name);
        }
    }
    let mut current_revision = &revisions.current.name;
    let wanted = ordinals::replicas(set);
    if plan::is_rolling(set) && [updated, ready, replicas] == [wanted; 3] {
        current = updated;
        current_revision = &revisions.update.name;
    }
    let positive = |count: i32| (count > 0).then_some(count);
    let status = StatefulSetStatus {
        observed_generation: set.metadata.generation,
        replicas,
        ready_replicas: positive(ready),
        available_replicas: Some(available),
        current_replicas: positive(current),
        updated_replicas: positive(updated),
        current_revision: Some(current_revision.clone()),
        update_revision: Some(revisions.update.name.clone()),
        collision_count: Some(revisions.collisions),
        conditions: None,
    };
    (status, next)
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
    use kubewright_world::SIMULATION_START as NOW;
    use serde_json::json;

    use super::super::tests::{member_pod, revision_of, stateful_set};
    use super::*;

    fn revisions() -> Revisions {
        Revisions {
            current: revision_of("web-1", "web:1"),
            update: revision_of("web-2", "web:2"),
            collisions: 0,
        }
    }

    fn shown(set: &StatefulSet, pods: &[Pod]) -> serde_json::Value {
        let pods: Vec<_> = pods.iter().cloned().map(Arc::new).collect();
        kubewright_objects::to_value(&status(set, &revisions(), &pods, NOW).0).expect("JSON")
    }

    #[test]
    fn an_empty_set_says_zero_replicas_and_zero_available_ones() {
        assert_eq!(
            shown(&stateful_set(1), &[]),
            json!({"observedGeneration": 1, "replicas": 0, "availableReplicas": 0, "collisionCount": 0,
                "currentRevision": "web-1", "updateRevision": "web-2"})
        );
    }

    #[test]
    fn pods_are_counted_by_revision_unless_they_are_going() {
        let mut going = member_pod(2, "web-1", Some(NOW));
        going.metadata.deletion_timestamp = Some(Time(NOW));
        let pods = [member_pod(0, "web-1", Some(NOW)), member_pod(1, "web-2", None), going];
        assert_eq!(
            shown(&stateful_set(3), &pods),
            json!({"observedGeneration": 1, "replicas": 3, "readyReplicas": 2, "availableReplicas": 2,
                "currentReplicas": 1, "updatedReplicas": 1, "collisionCount": 0,
                "currentRevision": "web-1", "updateRevision": "web-2"})
        );
    }

    #[test]
    fn an_update_is_over_when_all_are_updated_and_ready_but_never_with_on_delete() {
        let pods = [member_pod(0, "web-2", Some(NOW)), member_pod(1, "web-2", Some(NOW))];
        let mut set = stateful_set(2);
        let done = shown(&set, &pods);
        assert_eq!((&done["currentRevision"], &done["currentReplicas"]), (&json!("web-2"), &json!(2)));
        set.spec.as_mut().expect("a spec").update_strategy =
            kubewright_objects::from_value(json!({"type": "OnDelete"})).ok();
        let never = shown(&set, &pods);
        assert_eq!((&never["currentRevision"], never.get("currentReplicas")), (&json!("web-1"), None));
    }

    #[test]
    fn a_pod_is_available_after_min_ready_seconds_and_the_time_is_known() {
        let mut set = stateful_set(2);
        set.spec.as_mut().expect("a spec").min_ready_seconds = Some(10);
        let pods: Vec<_> = [12, 4]
            .iter()
            .zip(0..)
            .map(|(ago, n)| Arc::new(member_pod(n, "web-1", Some(NOW - Duration::from_secs(*ago)))))
            .collect();
        let (status, next) = status(&set, &revisions(), &pods, NOW);
        assert_eq!((status.ready_replicas, status.available_replicas), (Some(2), Some(1)));
        assert_eq!(next, Some(Duration::from_secs(6)));
    }
}
