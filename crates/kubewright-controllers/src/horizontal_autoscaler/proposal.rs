//! What one metric of an autoscaler proposes, from what was measured for it (`computeReplicasForMetric` and the
//! `computeStatusFor…` of `pkg/controller/podautoscaler/horizontal.go`). Pure.

use k8s_openapi::api::autoscaling::v2::{
    ContainerResourceMetricStatus, ExternalMetricSource, ExternalMetricStatus, MetricSpec, MetricStatus,
    MetricTarget, MetricValueStatus, ObjectMetricSource, ObjectMetricStatus, PodsMetricSource,
    PodsMetricStatus, ResourceMetricStatus,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kubewright_spec::Version;

use super::calculator::Scene;
use super::quantity::{binary, decimal, milli_of};
use super::samples::{Reading, Samples};
use crate::go_text;

/// What was measured for a metric, or why nothing was, in the words of the client that asked.
pub(super) type Measured = Result<Reading, String>;

/// What a metric proposes.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Proposal {
    pub(super) replicas: i32,
    /// What it is called where a change is explained.
    pub(super) name: String,
    pub(super) status: MetricStatus,
}

/// Why a metric proposes nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MetricFailure {
    /// The reason of the event and of the condition.
    pub(super) reason: &'static str,
    /// The event's text, and the end of the condition's.
    pub(super) why: String,
    /// What is told of the whole.
    pub(super) error: String,
}

/// What `spec` proposes for `scene`.
///
/// # Errors
/// Why it proposes nothing.
pub(super) fn of_metric(
    spec: &MetricSpec,
    measured: &Measured,
    scene: &Scene<'_>,
    namespace: &str,
) -> Result<Proposal, MetricFailure> {
    if let Some(source) = &spec.resource {
        let resource = Resource { name: &source.name, container: None, target: &source.target };
        let (replicas, name, current) = resource.propose(measured, scene).map_err(|why| MetricFailure {
            reason: "FailedGetResourceMetric",
            error: format!("failed to get {} resource metric value: {why}", source.name),
            why,
        })?;
        let status = ResourceMetricStatus { name: source.name.clone(), current };
        let status =
            MetricStatus { type_: "Resource".into(), resource: Some(status), ..MetricStatus::default() };
        Ok(Proposal { replicas, name, status })
    } else if let Some(source) = &spec.container_resource {
        let container = Some(&*source.container);
        let resource = Resource { name: &source.name, container, target: &source.target };
        let (replicas, name, current) = resource.propose(measured, scene).map_err(|why| MetricFailure {
            reason: "FailedGetContainerResourceMetric",
            error: format!("failed to get {} container metric value: {why}", source.container),
            why,
        })?;
        let (container, name_of) = (source.container.clone(), source.name.clone());
        let status = ContainerResourceMetricStatus { container, name: name_of, current };
        let type_ = "ContainerResource".into();
        let status = MetricStatus { type_, container_resource: Some(status), ..MetricStatus::default() };
        Ok(Proposal { replicas, name, status })
    } else if let Some(source) = &spec.pods {
        of_pods(source, measured, scene)
    } else if let Some(source) = &spec.object {
        of_object(source, measured, scene, namespace)
    } else if let Some(source) = &spec.external {
        of_external(source, measured, scene, namespace)
    } else {
        let error = format!("unknown metric source type {:?}", spec.type_);
        Err(MetricFailure { reason: "InvalidMetricSourceType", why: error.clone(), error })
    }
}

/// A resource that pods use, or one container of each.
struct Resource<'a> {
    name: &'a str,
    container: Option<&'a str>,
    target: &'a MetricTarget,
}

impl Resource<'_> {
    /// The replicas, the name, and how it is now (`computeStatusForResourceMetricGeneric`).
    fn propose(
        &self,
        measured: &Measured,
        scene: &Scene<'_>,
    ) -> Result<(i32, String, MetricValueStatus), String> {
        let name = self.name;
        let samples = || {
            samples_of(measured).map_err(|why| format!("unable to get metrics for resource {name}: {why}"))
        };
        if let Some(average) = &self.target.average_value {
            let usage =
                samples().and_then(|samples| scene.for_average(samples, name == "cpu", milli_of(average)));
            let usage = usage.map_err(|why| format!("failed to get {name} usage: {why}"))?;
            let current = MetricValueStatus {
                average_value: Some(self.quantity(usage.usage)),
                ..MetricValueStatus::default()
            };
            return Ok((usage.replicas, format!("{name} resource"), current));
        }
        let Some(target) = self.target.average_utilization else {
            return Err("invalid resource metric source: neither an average utilization target nor an average value (usage) target was set".into());
        };
        let usage =
            samples().and_then(|samples| scene.for_utilization(samples, (name, self.container), target));
        let usage = usage.map_err(|why| format!("failed to get {name} utilization: {why}"))?;
        let current = MetricValueStatus {
            average_utilization: Some(usage.percent),
            average_value: Some(self.quantity(usage.usage)),
            ..MetricValueStatus::default()
        };
        let of = if self.container.is_some() { "container resource" } else { "resource" };
        Ok((usage.replicas, format!("{name} {of} utilization (percentage of request)"), current))
    }

    fn quantity(&self, milli: i64) -> Quantity {
        if self.name == "memory" { binary(milli) } else { decimal(milli) }
    }
}

fn of_pods(
    source: &PodsMetricSource,
    measured: &Measured,
    scene: &Scene<'_>,
) -> Result<Proposal, MetricFailure> {
    let target = source.target.average_value.as_ref().map(milli_of).unwrap_or_default();
    let samples =
        samples_of(measured).map_err(|why| format!("unable to get metric {}: {why}", source.metric.name));
    let usage = samples.and_then(|samples| scene.for_average(samples, false, target));
    let usage = usage.map_err(|why| MetricFailure {
        reason: "FailedGetPodsMetric",
        error: format!("failed to get pods metric value: {why}"),
        why,
    })?;
    let status = PodsMetricStatus { metric: source.metric.clone(), current: average_value(usage.usage) };
    Ok(Proposal {
        replicas: usage.replicas,
        name: format!("pods metric {}", source.metric.name),
        status: MetricStatus { type_: "Pods".into(), pods: Some(status), ..MetricStatus::default() },
    })
}

/// `computeStatusForObjectMetric`; one that is divided by the replicas is told as if it were external there, too.
fn of_object(
    source: &ObjectMetricSource,
    measured: &Measured,
    scene: &Scene<'_>,
    namespace: &str,
) -> Result<Proposal, MetricFailure> {
    let (metric, object) = (&source.metric, &source.described_object);
    let failure = |prefix: &str, why: String| MetricFailure {
        reason: "FailedGetObjectMetric",
        error: format!("failed to get object metric value: {prefix}{why}"),
        why,
    };
    let value = value_of(measured).map_err(|why| {
        let (metric, kind, name) = (&metric.name, &object.kind, &object.name);
        if scene.kubernetes >= Version::V1_37 {
            format!("unable to get metric {metric} on {kind} {namespace}/{name}: {why}")
        } else {
            // Its arguments were in this order in Kubernetes.
            format!("unable to get metric {metric}: {kind} on {namespace} {name}/{why}")
        }
    });
    let (replicas, name, current) = match (&source.target.value, &source.target.average_value) {
        (Some(target), _) if source.target.type_ == "Value" => {
            let usage = value.and_then(|value| scene.for_value(value, milli_of(target)));
            let usage = usage.map_err(|why| failure("", why))?;
            (usage.replicas, format!("{} metric {}", object.kind, metric.name), whole_value(usage.usage))
        }
        (_, Some(target)) if source.target.type_ == "AverageValue" => {
            let value = value
                .map_err(|why| failure(&format!("failed to get {} object metric: ", metric.name), why))?;
            let usage = scene.for_value_per_pod(value, milli_of(target));
            let selector = go_text::label_selector(metric.selector.as_ref());
            let name = format!("external metric {}({selector})", metric.name);
            (usage.replicas, name, average_value(usage.usage))
        }
        _ => {
            let why =
                "invalid object metric source: neither a value target nor an average value target was set";
            return Err(failure("", why.into()));
        }
    };
    let status = ObjectMetricStatus { current, described_object: object.clone(), metric: metric.clone() };
    let status = MetricStatus { type_: "Object".into(), object: Some(status), ..MetricStatus::default() };
    Ok(Proposal { replicas, name, status })
}

/// `computeStatusForExternalMetric`.
fn of_external(
    source: &ExternalMetricSource,
    measured: &Measured,
    scene: &Scene<'_>,
    namespace: &str,
) -> Result<Proposal, MetricFailure> {
    let name = &source.metric.name;
    let selector = go_text::label_selector(source.metric.selector.as_ref());
    let failure = |prefix: &str, why: String| MetricFailure {
        reason: "FailedGetExternalMetric",
        error: format!("failed to get {name} external metric value: {prefix}{why}"),
        why,
    };
    let value = value_of(measured)
        .map_err(|why| format!("unable to get external metric {namespace}/{name}/{selector}: {why}"));
    let (replicas, current) = match (&source.target.average_value, &source.target.value) {
        (Some(target), _) => {
            let value =
                value.map_err(|why| failure(&format!("failed to get {name} external metric: "), why))?;
            let usage = scene.for_value_per_pod(value, milli_of(target));
            (usage.replicas, average_value(usage.usage))
        }
        (None, Some(target)) => {
            let usage = value.and_then(|value| scene.for_value(value, milli_of(target)));
            let usage =
                usage.map_err(|why| failure(&format!("failed to get external metric {name}: "), why))?;
            (usage.replicas, whole_value(usage.usage))
        }
        (None, None) => {
            let why =
                "invalid external metric source: neither a value target nor an average value target was set";
            return Err(failure("", why.into()));
        }
    };
    let status = ExternalMetricStatus { current, metric: source.metric.clone() };
    let status = MetricStatus { type_: "External".into(), external: Some(status), ..MetricStatus::default() };
    Ok(Proposal { replicas, name: format!("external metric {name}({selector})"), status })
}

fn average_value(milli: i64) -> MetricValueStatus {
    MetricValueStatus { average_value: Some(decimal(milli)), ..MetricValueStatus::default() }
}

fn whole_value(milli: i64) -> MetricValueStatus {
    MetricValueStatus { value: Some(decimal(milli)), ..MetricValueStatus::default() }
}

fn samples_of(measured: &Measured) -> Result<Samples, String> {
    match measured {
        Ok(Reading::Pods(samples)) => Ok(samples.clone()),
        Ok(Reading::Values(_)) => Err("no metrics were returned for pods".into()),
        Err(why) => Err(why.clone()),
    }
}

/// The sum of all values, as large as a number can be at most.
fn value_of(measured: &Measured) -> Result<i64, String> {
    match measured {
        Ok(Reading::Values(values)) => {
            Ok(values.iter().fold(0, |sum: i64, value| sum.saturating_add(*value)))
        }
        Ok(Reading::Pods(_)) => Err("metrics were returned for pods only".into()),
        Err(why) => Err(why.clone()),
    }
}

#[cfg(test)]
#[path = "proposal_tests.rs"]
mod tests;
