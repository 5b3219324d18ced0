//! What is to be done about an autoscaler, from what its target's scale says and what was measured
//! (`reconcileAutoscaler` and `computeReplicasForMetrics` in `pkg/controller/podautoscaler/horizontal.go`). Pure, but for
//! the history that is handed in.

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::autoscaling::v2::{
    HorizontalPodAutoscalerSpec, HorizontalPodAutoscalerStatus, MetricStatus,
};
use k8s_openapi::api::core::v1::Pod;
use kubewright_spec::Version;

use super::calculator::{Scene, Tolerances};
use super::history::History;
use super::limits::{self, Bounds};
use super::proposal::{self, Measured, MetricFailure, Proposal};
use super::quantity::approximate;
use super::status;

/// Why there have to be more.
const BELOW: &str = "Current number of replicas below Spec.MinReplicas";
/// By which share usage may differ from its target where nothing else is said.
const TOLERANCE: f64 = 0.1;

/// What is clear before anything is measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ScaleDecision {
    /// Somebody wants no replicas: hands off.
    Disabled,
    /// The bounds are not kept.
    Rescale(Rescale),
    /// The metrics decide.
    Measure,
}

/// A change of the replicas, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Rescale {
    pub(super) to: i32,
    pub(super) reason: String,
}

/// What is to be done with so many replicas. With none: whether the autoscaler itself took the last one away, and may bring it back.
pub(super) fn decide_scale(bounds: Bounds, may_leave_zero: bool) -> ScaleDecision {
    let rescale = |to, reason: &str| ScaleDecision::Rescale(Rescale { to, reason: reason.into() });
    if bounds.current == 0 {
        if may_leave_zero { ScaleDecision::Measure } else { ScaleDecision::Disabled }
    } else if bounds.current > bounds.max {
        rescale(bounds.max, "Current number of replicas above Spec.MaxReplicas")
    } else if bounds.current < bounds.min {
        rescale(bounds.min, BELOW)
    } else {
        ScaleDecision::Measure
    }
}

/// What was seen of an autoscaler and its target.
#[derive(Debug)]
pub(super) struct Observed<'a> {
    pub(super) kubernetes: Version,
    pub(super) namespace: &'a str,
    pub(super) spec: &'a HorizontalPodAutoscalerSpec,
    /// The pods that the scale's selector matches.
    pub(super) pods: &'a [Arc<Pod>],
    /// `spec.replicas` and `status.replicas` of the scale.
    pub(super) replicas: (i32, i32),
    /// What was measured for each of the spec's metrics.
    pub(super) measured: &'a [Measured],
    pub(super) now: Timestamp,
}

/// What the metrics say.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Decision {
    /// One for each metric; of those that failed an empty one.
    pub(super) metrics: Vec<MetricStatus>,
    /// Reason and text of what went wrong.
    pub(super) warnings: Vec<(&'static str, String)>,
    /// What is to be done; or why nothing can be said.
    pub(super) result: Result<Option<Rescale>, String>,
}

/// Decides by the metrics, and says so in the conditions of `status`.
pub(super) fn decide(
    observed: &Observed<'_>,
    status: &mut HorizontalPodAutoscalerStatus,
    history: &mut History,
) -> Decision {
    let proposals = propose(observed);
    let failures: Vec<&MetricFailure> = proposals.iter().filter_map(|one| one.as_ref().err()).collect();
    let warnings = failures.iter().map(|failure| (failure.reason, failure.why.clone())).collect();
    let total = proposals.len();
    let good: Vec<&Proposal> = proposals.iter().filter_map(|one| one.as_ref().ok()).collect();
    let highest = highest(&good);
    let proposed = highest.map_or(0, |highest| highest.replicas);
    let metrics = proposals
        .iter()
        .map(|one| one.as_ref().map_or_else(|_| MetricStatus::default(), |one| one.status.clone()));
    let metrics = metrics.collect();
    if let Some(first) = failures.first()
        && (good.is_empty() || proposed < observed.replicas.0)
    {
        let message = format!("the HPA was unable to compute the replica count: {}", first.why);
        status::set(status, "ScalingActive", false, (first.reason, &message), observed.now);
        let error = format!(
            "invalid metrics ({} invalid out of {total}), first error is: {}",
            failures.len(),
            first.error
        );
        return Decision { metrics, warnings, result: Err(error) };
    }
    let name = highest.map(|highest| highest.name.as_str()).unwrap_or_default();
    let message = format!("the HPA was able to successfully calculate a replica count from {name}");
    status::set(status, "ScalingActive", true, ("ValidMetricFound", &message), observed.now);
    let rescale = rescale(observed, (proposed, name), status, history);
    Decision { metrics, warnings, result: Ok(rescale) }
}

fn propose(observed: &Observed<'_>) -> Vec<Result<Proposal, MetricFailure>> {
    let scene = Scene {
        pods: observed.pods,
        spec_replicas: observed.replicas.0,
        status_replicas: observed.replicas.1,
        tolerances: tolerances(observed.spec),
        now: observed.now,
        kubernetes: observed.kubernetes,
    };
    let specs = observed.spec.metrics.iter().flatten().zip(observed.measured);
    specs.map(|(spec, measured)| proposal::of_metric(spec, measured, &scene, observed.namespace)).collect()
}

/// The first of those that propose most.
fn highest<'a>(proposals: &[&'a Proposal]) -> Option<&'a Proposal> {
    let mut all = proposals.iter().copied();
    let first = all.next()?;
    Some(all.fold(first, |best, one| {
        // A proposal of nothing gives way to any other.
        if best.replicas == 0 || one.replicas > best.replicas { one } else { best }
    }))
}

/// Normalizes what the metrics propose.
fn rescale(
    observed: &Observed<'_>,
    (proposed, name): (i32, &str),
    status: &mut HorizontalPodAutoscalerStatus,
    history: &mut History,
) -> Option<Rescale> {
    let bounds = Bounds::of(observed.spec, observed.replicas.0);
    let desired = proposed.max(0);
    let reason = match desired.cmp(&bounds.current) {
        std::cmp::Ordering::Greater => format!("{name} above target"),
        std::cmp::Ordering::Less => "All metrics below target".into(),
        std::cmp::Ordering::Equal => String::new(),
    };
    let normal = limits::normalize(observed.spec.behavior.as_ref(), bounds, desired, history, observed.now);
    status::set(status, "AbleToScale", true, normal.able, observed.now);
    let (limited, why) = normal.limited;
    status::set(status, "ScalingLimited", limited, why, observed.now);
    // There may have to be some by now.
    if bounds.current == 0 && normal.replicas < bounds.min {
        let reason = if reason.is_empty() { BELOW.to_owned() } else { reason };
        return Some(Rescale { to: bounds.min, reason });
    }
    (normal.replicas != bounds.current).then_some(Rescale { to: normal.replicas, reason })
}

/// The condition that tells whether the autoscaler took the last replica away (the feature HPAScaleToZero, from v1.37 on).
pub(super) const SCALED_TO_ZERO: &str = "ScaledToZero";

/// Whether an autoscaler of a target without replicas is to measure (`shouldComputeMetricsForZeroReplicas`).
pub(super) fn may_leave_zero(
    spec: &HorizontalPodAutoscalerSpec,
    status: &HorizontalPodAutoscalerStatus,
) -> bool {
    let conditions = status.conditions.iter().flatten();
    let did_it = conditions.into_iter().any(|one| one.type_ == SCALED_TO_ZERO && one.status == "True");
    did_it && (spec.min_replicas.unwrap_or(1) != 0 || measures_from_outside(spec))
}

/// Whether a metric is there that does not need pods.
pub(super) fn measures_from_outside(spec: &HorizontalPodAutoscalerSpec) -> bool {
    spec.metrics.iter().flatten().any(|metric| matches!(&*metric.type_, "Object" | "External"))
}

fn tolerances(spec: &HorizontalPodAutoscalerSpec) -> Tolerances {
    let behavior = spec.behavior.as_ref();
    let down = behavior.and_then(|behavior| behavior.scale_down.as_ref()?.tolerance.as_ref());
    let up = behavior.and_then(|behavior| behavior.scale_up.as_ref()?.tolerance.as_ref());
    Tolerances { down: down.map_or(TOLERANCE, approximate), up: up.map_or(TOLERANCE, approximate) }
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
