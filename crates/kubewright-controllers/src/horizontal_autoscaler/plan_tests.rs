use serde_json::{Value, json};

use super::*;
use crate::horizontal_autoscaler::samples::Reading;

const NOW: Timestamp = Timestamp::constant(1_800_000_000, 0);

fn external(target: &str) -> Value {
    json!({"type": "External", "external": {"metric": {"name": "q"}, "target": {"type": "AverageValue", "averageValue": target}}})
}

fn values(value: i64) -> Measured {
    Ok(Reading::Values(vec![value * 1000]))
}

struct Decided {
    decision: Decision,
    status: HorizontalPodAutoscalerStatus,
}

impl Decided {
    /// The condition's status and reason.
    fn condition(&self, kind: &str) -> (&str, &str) {
        let mut all = self.status.conditions.iter().flatten();
        let found = all.find(|condition| condition.type_ == kind).expect("the condition");
        (&found.status, found.reason.as_deref().unwrap_or_default())
    }

    fn rescale(&self) -> Option<(i32, &str)> {
        let rescale = self.decision.result.as_ref().expect("it is known").as_ref();
        rescale.map(|rescale| (rescale.to, rescale.reason.as_str()))
    }
}

fn decide_with(metrics: &Value, measured: &[Measured], replicas: i32, behavior: &Value) -> Decided {
    let spec = json!({"scaleTargetRef": {"kind": "Deployment", "name": "web"}, "maxReplicas": 10,
        "metrics": metrics, "behavior": behavior});
    let spec = kubewright_objects::from_value(spec).expect("a spec");
    let observed = Observed {
        kubernetes: Version::DEFAULT,
        namespace: "shop",
        spec: &spec,
        pods: &[],
        replicas: (replicas, replicas),
        measured,
        now: NOW,
    };
    let mut status = HorizontalPodAutoscalerStatus::default();
    let decision = decide(&observed, &mut status, &mut History::default());
    Decided { decision, status }
}

fn decide_for(metrics: &Value, measured: &[Measured], replicas: i32) -> Decided {
    decide_with(metrics, measured, replicas, &Value::Null)
}

#[test]
fn bounds_come_before_metrics() {
    let decision = |current| decide_scale(Bounds { min: 2, max: 5, current }, false);
    assert_eq!(decision(0), ScaleDecision::Disabled);
    assert_eq!(decision(3), ScaleDecision::Measure);
    let above = Rescale { to: 5, reason: "Current number of replicas above Spec.MaxReplicas".into() };
    assert_eq!(decision(6), ScaleDecision::Rescale(above));
    let below = Rescale { to: 2, reason: "Current number of replicas below Spec.MinReplicas".into() };
    assert_eq!(decision(1), ScaleDecision::Rescale(below));
}

#[test]
fn the_highest_of_several_proposals_wins() {
    let metrics = json!([external("10"), external("5"), external("20")]);
    let decided = decide_for(&metrics, &[values(30), values(30), values(30)], 3);
    assert_eq!(decided.rescale(), Some((6, "external metric q(nil) above target")));
    assert_eq!(decided.condition("ScalingActive"), ("True", "ValidMetricFound"));
    assert_eq!(decided.condition("AbleToScale"), ("True", "ReadyForNewScale"));
    assert_eq!(decided.condition("ScalingLimited"), ("False", "DesiredWithinRange"));
    assert_eq!(decided.decision.metrics.len(), 3);
}

#[test]
fn with_a_metric_that_failed_it_goes_up_but_not_down() {
    let metrics = json!([external("10"), external("10")]);
    let failed: Measured = Err("no API".into());
    let up = decide_for(&metrics, &[failed.clone(), values(60)], 3);
    assert_eq!(up.rescale().map(|(to, _)| to), Some(6));
    assert_eq!(up.decision.warnings.len(), 1);
    assert_eq!(up.decision.metrics[0], MetricStatus::default());

    let down = decide_for(&metrics, &[values(10), failed.clone()], 3);
    assert_eq!(
        down.decision.result,
        Err("invalid metrics (1 invalid out of 2), first error is: failed to get q external metric value: failed to get q external metric: unable to get external metric shop/q/nil: no API".into())
    );
    assert_eq!(down.condition("ScalingActive"), ("False", "FailedGetExternalMetric"));
    let none = decide_for(&metrics, &[failed.clone(), failed], 3);
    assert!(
        none.decision.result.is_err_and(|error| error.starts_with("invalid metrics (2 invalid out of 2)"))
    );
}

#[test]
fn nothing_to_do_asks_for_the_least() {
    let metrics = json!([external("10")]);
    let down = json!({"scaleDown": {"stabilizationWindowSeconds": 0}});
    let decided = decide_with(&metrics, &[values(0)], 3, &down);
    assert_eq!(decided.rescale(), Some((1, "All metrics below target")));
    assert_eq!(decided.condition("ScalingLimited"), ("True", "TooFewReplicas"));
}

#[test]
fn a_tolerance_of_its_own_goes_before_the_common_one() {
    let metrics = json!([external("10")]);
    let to = |behavior: &Value| decide_with(&metrics, &[values(36)], 3, behavior).rescale().map(|(to, _)| to);
    assert_eq!(to(&Value::Null), Some(4));
    assert_eq!(to(&json!({"scaleUp": {"tolerance": "200m"}})), None);
    assert_eq!(to(&json!({"scaleDown": {"tolerance": "200m"}})), Some(4));
}
