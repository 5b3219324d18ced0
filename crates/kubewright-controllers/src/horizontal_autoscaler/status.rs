//! The status of an autoscaler (`setStatus`, `setConditionInList` in `pkg/controller/podautoscaler/horizontal.go`).

use jiff::Timestamp;
use k8s_openapi::api::autoscaling::v2::{
    HorizontalPodAutoscalerCondition, HorizontalPodAutoscalerStatus, MetricStatus,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

/// Sets a condition; the time when it changed is that of its last change of status.
pub(super) fn set(
    status: &mut HorizontalPodAutoscalerStatus,
    kind: &str,
    holds: bool,
    (reason, message): (&str, &str),
    now: Timestamp,
) {
    let conditions = status.conditions.get_or_insert_default();
    let at = conditions.iter().position(|condition| condition.type_ == kind).unwrap_or_else(|| {
        conditions.push(HorizontalPodAutoscalerCondition { type_: kind.into(), ..Default::default() });
        conditions.len() - 1
    });
    let condition = &mut conditions[at];
    let value = if holds { "True" } else { "False" };
    if condition.status != value {
        condition.status = value.into();
        condition.last_transition_time = Some(Time(now));
    }
    condition.reason = Some(reason.into());
    condition.message = Some(message.into());
}

/// Makes the status anew from the replicas that there are and that are desired, and from the metrics. What it said
/// besides is gone, but for the conditions and the time of the last change. `observed` is the generation that was seen; up to v1.36 that is
/// never told.
pub(super) fn set_status(
    status: &mut HorizontalPodAutoscalerStatus,
    (current, desired): (i32, i32),
    metrics: Vec<MetricStatus>,
    scaled: Option<Timestamp>,
    observed: Option<i64>,
) {
    let last = scaled.map(Time).or_else(|| status.last_scale_time.take());
    *status = HorizontalPodAutoscalerStatus {
        conditions: status.conditions.take(),
        current_metrics: (!metrics.is_empty()).then_some(metrics),
        current_replicas: (current != 0).then_some(current),
        desired_replicas: desired,
        last_scale_time: last,
        observed_generation: observed,
    };
}

/// Whether nothing is to be written: an empty list is as good as none.
pub(super) fn is_same(one: &HorizontalPodAutoscalerStatus, other: &HorizontalPodAutoscalerStatus) -> bool {
    let normal = |status: &HorizontalPodAutoscalerStatus| HorizontalPodAutoscalerStatus {
        conditions: status.conditions.clone().filter(|all| !all.is_empty()),
        current_metrics: status.current_metrics.clone().filter(|all| !all.is_empty()),
        current_replicas: status.current_replicas.filter(|replicas| *replicas != 0),
        ..status.clone()
    };
    normal(one) == normal(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).expect("a time")
    }

    #[test]
    fn a_condition_keeps_its_time_until_its_status_changes() {
        let mut status = HorizontalPodAutoscalerStatus::default();
        set(&mut status, "AbleToScale", true, ("A", "a"), at(1));
        set(&mut status, "AbleToScale", true, ("B", "b"), at(2));
        let condition = status.conditions.as_ref().expect("conditions")[0].clone();
        assert_eq!((condition.last_transition_time, condition.reason), (Some(Time(at(1))), Some("B".into())));
        set(&mut status, "AbleToScale", false, ("C", "c"), at(3));
        let conditions = status.conditions.expect("conditions");
        assert_eq!((conditions.len(), conditions[0].last_transition_time.clone()), (1, Some(Time(at(3)))));
    }

    #[test]
    fn the_time_of_the_last_change_stays_until_the_next() {
        let mut status = HorizontalPodAutoscalerStatus::default();
        set_status(&mut status, (1, 2), Vec::new(), Some(at(1)), None);
        set_status(&mut status, (2, 2), Vec::new(), None, Some(1));
        assert_eq!((status.last_scale_time, status.current_replicas), (Some(Time(at(1))), Some(2)));
    }
}
