//! Which pods go first when there are too many (`ActivePodsWithRanks` in `pkg/controller/controller_utils.go`).

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;

use crate::pod;

/// The annotation by which a user says that a pod is dearer (higher) or cheaper (lower) to lose.
const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";

/// The `count` pods whose loss hurts least: bound to no node, then not running, not ready, cheap by annotation, on a
/// node with many `siblings` (pods of the same owner's owner), ready for a short time, often restarted, young.
/// Ages are compared by their order of magnitude, and the uid decides in the end, so that not always the youngest go.
///
/// Kubernetes asks the uid as soon as two ready times have the same magnitude, unless they are equal: no order at all,
/// for it goes round in circles. Here the other criteria come first; which pod goes is as much a matter of luck.
pub(super) fn least_needed(
    pods: &[Arc<Pod>],
    siblings: &[Arc<Pod>],
    count: usize,
    now: Timestamp,
) -> Vec<Arc<Pod>> {
    let mut on_node: BTreeMap<&str, usize> = BTreeMap::new();
    for sibling in siblings.iter().filter(|sibling| pod::is_active(sibling)) {
        *on_node.entry(pod::node_name(sibling)).or_default() += 1;
    }
    let mut ranked: Vec<_> = pods.iter().map(|pod| (Rank::of(pod, &on_node, now), pod)).collect();
    ranked.sort_by(|(a, _), (b, _)| a.cmp(b));
    ranked.into_iter().take(count).map(|(_, pod)| Arc::clone(pod)).collect()
}

/// A pod's place in the order; the smallest goes first. The derived order is Kubernetes' order of criteria.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Rank<'a> {
    bound: bool,
    phase: u8,
    ready: bool,
    cost: i32,
    crowd: Reverse<usize>,
    ready_age: Age,
    restarts: Reverse<(i32, i32)>,
    age: Age,
    uid: &'a str,
}

impl<'a> Rank<'a> {
    fn of(pod: &'a Pod, on_node: &BTreeMap<&str, usize>, now: Timestamp) -> Self {
        let node = pod::node_name(pod);
        let ready = pod::is_ready(pod);
        let created = pod.metadata.creation_timestamp.as_ref().map(|time| time.0);
        Self {
            bound: !node.is_empty(),
            phase: match pod::phase(pod) {
                "Running" => 2,
                "Unknown" => 1,
                _ => 0,
            },
            ready,
            cost: deletion_cost(pod),
            crowd: Reverse(on_node.get(node).copied().unwrap_or_default()),
            ready_age: Age::new(ready.then(|| pod::ready_since(pod)).flatten(), now),
            restarts: Reverse(restarts(pod)),
            age: Age::new(created, now),
            uid: pod.metadata.uid.as_deref().unwrap_or_default(),
        }
    }
}

/// The order of magnitude of an age; unknown ones come first, then those of the future, then the young.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Age(Option<i32>);

impl Age {
    fn new(since: Option<Timestamp>, now: Timestamp) -> Self {
        Self(since.map(|since| {
            let nanoseconds = now.duration_since(since).as_nanos();
            if nanoseconds > 0 { i32::try_from(nanoseconds.ilog2()).unwrap_or(i32::MAX) } else { -1 }
        }))
    }
}

fn deletion_cost(pod: &Pod) -> i32 {
    let annotation = pod.metadata.annotations.as_ref().and_then(|annotations| annotations.get(DELETION_COST));
    annotation.and_then(|cost| cost.parse().ok()).unwrap_or_default()
}

/// The most restarts of a container, and of a sidecar (an init container that is always restarted).
fn restarts(pod: &Pod) -> (i32, i32) {
    let Some(status) = &pod.status else { return (0, 0) };
    let sidecars = pod.spec.iter().flat_map(|spec| spec.init_containers.iter().flatten());
    let sidecars: Vec<_> = sidecars
        .filter(|container| container.restart_policy.as_deref() == Some("Always"))
        .map(|container| container.name.as_str())
        .collect();
    let containers = status.container_statuses.iter().flatten();
    let init_containers = status.init_container_statuses.iter().flatten();
    let of_sidecars = init_containers.filter(|status| sidecars.contains(&status.name.as_str()));
    (
        containers.map(|status| status.restart_count).max().unwrap_or_default(),
        of_sidecars.map(|status| status.restart_count).max().unwrap_or_default(),
    )
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use kubewright_world::SIMULATION_START as NOW;

    use super::*;
    use crate::pod::tests::pod;

    fn first(pods: &[Pod], siblings: &[Pod]) -> String {
        let shared = |pods: &[Pod]| pods.iter().cloned().map(Arc::new).collect::<Vec<_>>();
        let gone = least_needed(&shared(pods), &shared(siblings), 1, NOW);
        gone[0].metadata.name.clone().unwrap_or_default()
    }

    fn ready(name: &str, seconds: u64) -> Pod {
        pod(name, "Running", Some(NOW - Duration::from_secs(seconds)))
    }

    #[test]
    fn a_pod_without_a_node_goes_before_a_running_one() {
        let mut unbound = ready("unbound", 3600);
        unbound.spec.as_mut().expect("spec").node_name = None;
        assert_eq!(first(&[pod("pending", "Pending", None), unbound], &[]), "unbound");
    }

    #[test]
    fn what_is_not_ready_goes_before_what_is() {
        assert_eq!(first(&[ready("ready", 10), pod("running", "Running", None)], &[]), "running");
        assert_eq!(
            first(&[pod("running", "Running", None), pod("pending", "Pending", None)], &[]),
            "pending"
        );
    }

    #[test]
    fn the_deletion_cost_outweighs_age() {
        let mut dear = ready("dear", 10);
        dear.metadata.annotations = Some(BTreeMap::from([(DELETION_COST.into(), "100".into())]));
        assert_eq!(first(&[dear, ready("old", 1_000_000)], &[]), "old");
    }

    #[test]
    fn a_crowded_node_loses_a_pod_first() {
        let mut elsewhere = ready("elsewhere", 10);
        elsewhere.spec.as_mut().expect("spec").node_name = Some("node-1".into());
        let crowd = [ready("a", 1000), ready("b", 1000), elsewhere.clone()];
        assert_eq!(first(&[elsewhere, ready("a", 1000)], &crowd), "a");
    }

    #[test]
    fn the_most_recently_ready_goes_first_by_order_of_magnitude() {
        assert_eq!(first(&[ready("a-old", 100_000), ready("young", 10)], &[]), "young");
        assert_eq!(first(&[ready("z", 1001), ready("a", 1000)], &[]), "a", "the same magnitude: by uid");
    }

    #[test]
    fn the_one_that_restarts_most_goes_before_the_younger() {
        let mut restless = pod("restless", "Running", None);
        let status = restless.status.as_mut().expect("status");
        status.container_statuses = Some(vec![k8s_openapi::api::core::v1::ContainerStatus {
            restart_count: 3,
            ..Default::default()
        }]);
        assert_eq!(first(&[pod("calm", "Running", None), restless], &[]), "restless");
    }

    #[test]
    fn only_sidecars_count_among_init_containers() {
        let restarted = |policy: Option<&str>| -> Pod {
            let mut pod = pod("restless", "Running", None);
            let init = serde_json::json!([{"name": "init", "restartPolicy": policy}]);
            pod.spec.as_mut().expect("spec").init_containers = kubewright_objects::from_value(init).ok();
            let status = k8s_openapi::api::core::v1::ContainerStatus {
                name: "init".into(),
                restart_count: 3,
                ..Default::default()
            };
            pod.status.as_mut().expect("status").init_container_statuses = Some(vec![status]);
            pod
        };
        assert_eq!(restarts(&restarted(Some("Always"))), (0, 3));
        assert_eq!(restarts(&restarted(None)), (0, 0));
    }
}
