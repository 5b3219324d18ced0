//! The status of a budget.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::policy::v1::{PodDisruptionBudget, PodDisruptionBudgetStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kubewright_objects::{field, optional};

use crate::pod;

const ALLOWED: &str = "DisruptionAllowed";
/// How long an eviction that was allowed may take to delete its pod.
const DELETION: Duration = Duration::from_secs(120);

/// What was found of a budget.
pub(super) struct Observed<'a> {
    pub(super) pods: &'a [Arc<Pod>],
    pub(super) expected: i32,
    pub(super) desired: i32,
}

/// The budget with the status that it should have, when it has another; and when to look again, because a pod that
/// was to be deleted should be gone by then.
pub(super) fn status(
    budget: &PodDisruptionBudget,
    observed: &Observed<'_>,
    now: Timestamp,
) -> (Option<PodDisruptionBudget>, Option<Duration>) {
    let before = budget.status.clone().unwrap_or_default();
    let disrupted = disrupted(&before, observed.pods, now);
    let again = disrupted.values().map(|since| (since.0 + DELETION).duration_since(now)).min();
    let healthy = observed.pods.iter().filter(|pod| is_healthy(pod, &disrupted)).count();
    let healthy = i32::try_from(healthy).unwrap_or(i32::MAX);
    let spare = healthy.saturating_sub(observed.desired).max(0);
    let allowed = if observed.expected <= 0 { 0 } else { spare };
    let generation = budget.metadata.generation;
    let reason = if allowed > 0 { "SufficientPods" } else { "InsufficientPods" };
    let mut after = PodDisruptionBudgetStatus {
        conditions: before.conditions.clone(),
        current_healthy: field(healthy),
        desired_healthy: field(observed.desired),
        disrupted_pods: (!disrupted.is_empty()).then_some(disrupted),
        disruptions_allowed: field(allowed),
        expected_pods: field(observed.expected),
        observed_generation: generation,
    };
    if !is_up_to_date(&before, &after, reason) {
        set_condition(&mut after, allowed > 0, reason, "", now);
    }
    let again = again.and_then(|again| Duration::try_from(again).ok());
    (changed(budget, &before, after), again)
}

/// The budget when nothing can be said of it: nothing is allowed, and why.
pub(super) fn failed(budget: &PodDisruptionBudget, why: &str, now: Timestamp) -> Option<PodDisruptionBudget> {
    let before = budget.status.clone().unwrap_or_default();
    let mut after = PodDisruptionBudgetStatus { disruptions_allowed: field(0), ..before.clone() };
    set_condition(&mut after, false, "SyncFailed", why, now);
    changed(budget, &before, after)
}

fn changed(
    budget: &PodDisruptionBudget,
    before: &PodDisruptionBudgetStatus,
    after: PodDisruptionBudgetStatus,
) -> Option<PodDisruptionBudget> {
    (*before != after).then(|| PodDisruptionBudget { status: Some(after), ..budget.clone() })
}

/// Whether the condition says what the counts say, of this generation, and not why they could not be told before.
fn is_up_to_date(
    before: &PodDisruptionBudgetStatus,
    after: &PodDisruptionBudgetStatus,
    reason: &str,
) -> bool {
    let wanted = if optional::<i32>(&after.disruptions_allowed) > Some(&0) { "True" } else { "False" };
    let mut unconditional = before.clone();
    unconditional.conditions.clone_from(&after.conditions);
    let mut conditions = before.conditions.iter().flatten();
    unconditional == *after
        && conditions.any(|one| one.type_ == ALLOWED && one.status == wanted && one.reason == reason)
}

/// The pods that evictions were allowed for and that are still to go.
fn disrupted(
    before: &PodDisruptionBudgetStatus,
    pods: &[Arc<Pod>],
    now: Timestamp,
) -> BTreeMap<String, Time> {
    let known = before.disrupted_pods.as_ref();
    let alive = pods.iter().filter(|pod| pod.metadata.deletion_timestamp.is_none());
    let names = alive.filter_map(|pod| pod.metadata.name.as_ref());
    names
        .filter_map(|name| Some((name.clone(), known?.get(name)?.clone())))
        .filter(|(_, since)| since.0 + DELETION >= now)
        .collect()
}

fn is_healthy(pod: &Pod, disrupted: &BTreeMap<String, Time>) -> bool {
    let goes = pod.metadata.name.as_ref().is_some_and(|name| disrupted.contains_key(name));
    pod.metadata.deletion_timestamp.is_none() && !goes && pod::is_ready(pod)
}

fn set_condition(
    status: &mut PodDisruptionBudgetStatus,
    allowed: bool,
    reason: &str,
    message: &str,
    now: Timestamp,
) {
    let mut condition = Condition {
        last_transition_time: Time(now),
        message: message.to_owned(),
        observed_generation: status.observed_generation,
        reason: reason.to_owned(),
        status: if allowed { "True" } else { "False" }.to_owned(),
        type_: ALLOWED.to_owned(),
    };
    let conditions = status.conditions.get_or_insert_default();
    match conditions.iter_mut().find(|one| one.type_ == ALLOWED) {
        Some(one) => {
            if one.status == condition.status {
                condition.last_transition_time = one.last_transition_time.clone();
            }
            *one = condition;
        }
        None => conditions.push(condition),
    }
}

#[cfg(test)]
mod tests {
    use kubewright_world::SIMULATION_START as NOW;
    use serde_json::json;

    use super::*;
    use crate::pod::tests::pod;

    fn budget(status: &serde_json::Value) -> PodDisruptionBudget {
        kubewright_objects::from_value(json!({"metadata": {"name": "b", "generation": 2}, "status": status}))
            .expect("a budget")
    }

    fn pods(ready: usize, unready: usize) -> Vec<Arc<Pod>> {
        let of = |at: usize| pod(&format!("p{at}"), "Running", (at < ready).then_some(NOW));
        (0..ready + unready).map(|at| Arc::new(of(at))).collect()
    }

    fn observed(pods: &[Arc<Pod>], desired: i32) -> Observed<'_> {
        Observed { pods, expected: i32::try_from(pods.len()).unwrap_or(0), desired }
    }

    #[test]
    fn healthy_pods_beyond_those_wanted_may_go() {
        let pods = pods(3, 1);
        let (changed, _) = status(&budget(&json!({})), &observed(&pods, 2), NOW);
        let changed = changed.expect("a status");
        let after = json!(changed.status);
        assert_eq!(
            (&after["currentHealthy"], &after["disruptionsAllowed"], &after["observedGeneration"]),
            (&json!(3), &json!(1), &json!(2))
        );
        assert_eq!(after["conditions"][0]["reason"], "SufficientPods");
        assert_eq!(after["conditions"][0]["message"], "");
        assert_eq!(status(&changed, &observed(&pods, 2), NOW + Duration::from_secs(9)), (None, None));
    }

    #[test]
    fn without_pods_nothing_may_go() {
        let (changed, _) = status(&budget(&json!({})), &observed(&[], 0), NOW);
        let after = changed.expect("a status").status.expect("a status");
        assert_eq!((after.disruptions_allowed, after.expected_pods), (Some(0), Some(0)));
        assert_eq!(after.conditions.expect("conditions")[0].reason, "InsufficientPods");
    }

    #[test]
    fn a_pod_that_was_to_go_counts_as_gone_for_two_minutes() {
        let pods = pods(2, 0);
        let since = json!({"disruptedPods": {"p0": Time(NOW), "gone": Time(NOW)}});
        let (changed, again) = status(&budget(&since), &observed(&pods, 1), NOW + Duration::from_secs(20));
        let after = changed.expect("a status").status.expect("a status");
        assert_eq!((after.current_healthy, after.disruptions_allowed), (Some(1), Some(0)));
        assert_eq!(after.disrupted_pods.map(|pods| pods.len()), Some(1));
        assert_eq!(again, Some(Duration::from_secs(100)));
        let (changed, again) = status(&budget(&since), &observed(&pods, 1), NOW + Duration::from_secs(121));
        let after = changed.expect("a status").status.expect("a status");
        assert_eq!((after.disruptions_allowed, after.disrupted_pods, again), (Some(1), None, None));
    }

    #[test]
    fn a_failure_allows_nothing_and_says_why() {
        let before = json!({"disruptionsAllowed": 3, "observedGeneration": 1});
        let after = failed(&budget(&before), "no", NOW).expect("a status").status.expect("a status");
        assert_eq!(after.disruptions_allowed, Some(0));
        let condition = &after.conditions.expect("conditions")[0];
        assert_eq!((condition.reason.as_str(), condition.message.as_str()), ("SyncFailed", "no"));
    }

    #[test]
    fn counts_that_are_as_before_a_failure_are_told_again() {
        let before = budget(&json!({"observedGeneration": 1}));
        let counted = status(&before, &observed(&[], 0), NOW).0.expect("a status");
        let failed = failed(&counted, "no", NOW).expect("another");
        let again = status(&failed, &observed(&[], 0), NOW).0.expect("a third");
        assert_eq!(
            again.status.expect("a status").conditions.expect("conditions")[0].reason,
            "InsufficientPods"
        );
    }
}
