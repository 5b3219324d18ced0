//! The status of a DaemonSet (`updateDaemonSetStatus` in `pkg/controller/daemon/daemon_controller.go`).

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::apps::v1::DaemonSetStatus;
use k8s_openapi::api::core::v1::Pod;

use super::daemon::{self, Updated};
use super::eligibility::Fit;
use super::plan::{Fits, Observed, min_ready};
use crate::pod::{self, Availability};

/// The status that the set should have, and when to look again because a pod becomes available then: any of its pods, as a surge ends when the
/// new one of a node does.
pub(super) fn status(observed: &Observed<'_>) -> (DaemonSetStatus, Option<Duration>) {
    let set = observed.set;
    let updated = Updated::of(set, observed.hash);
    let (mut current, mut misscheduled, mut ready, mut available, mut up_to_date) = (0, 0, 0, 0, 0);
    let fits = Fits::of(set, observed.nodes);
    for (node, fit) in fits.iter() {
        let Some(pods) = observed.pods.get(node) else { continue };
        if fit != Fit::Runs {
            misscheduled += 1;
            continue;
        }
        current += 1;
        let mut pods = pods.clone();
        daemon::by_age(&mut pods);
        let Some(pod) = pods.first() else { continue };
        up_to_date += i32::from(updated.is(pod));
        ready += i32::from(pod::is_ready(pod));
        available += i32::from(observed.is_available(pod));
    }
    let waits = |pod: &Arc<Pod>| match pod::availability(pod, min_ready(set), observed.now) {
        Availability::In(wait) => Some(wait),
        Availability::Available | Availability::Unknown => None,
    };
    let next = observed.pods.values().flatten().filter_map(waits).min();
    let positive = |count: i32| (count > 0).then_some(count);
    let wanted = fits.wanted();
    let status = DaemonSetStatus {
        observed_generation: set.metadata.generation,
        desired_number_scheduled: wanted,
        current_number_scheduled: current,
        number_misscheduled: misscheduled,
        number_ready: ready,
        updated_number_scheduled: positive(up_to_date),
        number_available: positive(available),
        number_unavailable: positive(wanted - available),
        ..set.status.clone().unwrap_or_default()
    };
    (status, next)
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::apps::v1::DaemonSet;
    use k8s_openapi::api::core::v1::Node;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
    use kubewright_world::SIMULATION_START as NOW;
    use serde_json::json;

    use super::super::backoff::Backoff;
    use super::super::tests::{daemon_set, node, pod_on, tainted};
    use super::*;

    fn counted(set: &DaemonSet, nodes: &[Node], pods: &[Pod]) -> (serde_json::Value, Option<Duration>) {
        let nodes: Vec<_> = nodes.iter().cloned().map(Arc::new).collect();
        let pods: Vec<_> = pods.iter().cloned().map(Arc::new).collect();
        let observed = Observed {
            set,
            nodes: &nodes,
            pods: &daemon::by_node(&pods),
            hash: "new",
            failures: &Backoff::default(),
            now: NOW,
        };
        let (status, next) = status(&observed);
        (kubewright_objects::to_value(&status).expect("JSON"), next)
    }

    #[test]
    fn a_set_without_nodes_counts_zeros() {
        assert_eq!(
            counted(&daemon_set(), &[], &[]).0,
            json!({"observedGeneration": 1, "desiredNumberScheduled": 0, "currentNumberScheduled": 0,
                "numberMisscheduled": 0, "numberReady": 0})
        );
    }

    #[test]
    fn nodes_are_counted_by_what_runs_there_and_should() {
        let nodes = [node("a"), node("b"), node("c"), tainted("d", "NoSchedule")];
        let pods = [pod_on("a", "new", Some(NOW)), pod_on("b", "old", None), pod_on("d", "old", Some(NOW))];
        assert_eq!(
            counted(&daemon_set(), &nodes, &pods).0,
            json!({"observedGeneration": 1, "desiredNumberScheduled": 3, "currentNumberScheduled": 2,
                "numberMisscheduled": 1, "numberReady": 1, "numberAvailable": 1, "numberUnavailable": 2,
                "updatedNumberScheduled": 1})
        );
    }

    #[test]
    fn what_others_wrote_into_the_status_stays() {
        let mut set = daemon_set();
        set.status =
            kubewright_objects::from_value(json!({"currentNumberScheduled": 9, "numberMisscheduled": 9,
            "desiredNumberScheduled": 9, "numberReady": 9, "collisionCount": 2}))
            .ok();
        let (status, _) = counted(&set, &[], &[]);
        assert_eq!((&status["collisionCount"], &status["numberReady"]), (&json!(2), &json!(0)));
    }

    #[test]
    fn a_pod_is_available_after_min_ready_seconds_and_the_time_is_known() {
        let mut set = daemon_set();
        set.spec.as_mut().expect("a spec").min_ready_seconds = Some(10);
        let since = NOW - Duration::from_secs(4);
        let (status, next) = counted(&set, &[node("a")], &[pod_on("a", "new", Some(since))]);
        assert_eq!((&status["numberReady"], status.get("numberAvailable")), (&json!(1), None));
        assert_eq!(next, Some(Duration::from_secs(6)));
    }

    #[test]
    fn a_pod_beside_an_older_one_is_looked_at_again_when_it_becomes_available() {
        let mut set = daemon_set();
        set.spec.as_mut().expect("a spec").min_ready_seconds = Some(10);
        let (long_ago, lately) = (NOW - Duration::from_secs(60), NOW - Duration::from_secs(4));
        let mut pods = [pod_on("a", "old", Some(long_ago)), pod_on("a", "new", Some(lately))];
        for (pod, since) in pods.iter_mut().zip([long_ago, lately]) {
            pod.metadata.creation_timestamp = Some(Time(since));
        }
        let (status, next) = counted(&set, &[node("a")], &pods);
        assert_eq!(status["numberAvailable"], 1);
        assert_eq!(next, Some(Duration::from_secs(6)));
    }
}
