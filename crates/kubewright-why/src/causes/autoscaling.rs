//! PodDisruptionBudgets and HorizontalPodAutoscalers.

use kubewright_meta::selector::LabelSelector;

use crate::cause::Cause;
use crate::causes::Around;
use crate::object::{Object, group_of};
use crate::picture::Picture;
use crate::report::Finding;
use crate::text::{event_line, one_line};

pub(super) fn budget(around: &Around<'_>) -> Vec<Finding> {
    let Around { picture, object: budget, .. } = *around;
    if super::workloads::is_behind(budget) {
        return Vec::new();
    }
    let expected = budget.number("/status/expectedPods");
    let selector = budget.at("/spec/selector");
    let matches = LabelSelector::from_object(selector).is_ok_and(|selector| {
        picture.within("", "Pod", budget.namespace()).any(|pod| selector.matches(&pod.labels()))
    });
    if !matches && picture.is_whole("", "Pod", budget.namespace()) {
        let message = format!("its selector matches no pods: {selector}");
        return vec![Finding::new(
            Cause::BudgetSelectsNothing,
            message,
            "correct spec.selector: it guards nothing now",
        )];
    }
    if expected == 0 || budget.number("/status/disruptionsAllowed") > 0 {
        return Vec::new();
    }
    let (healthy, desired) =
        (budget.number("/status/currentHealthy"), budget.number("/status/desiredHealthy"));
    let message =
        format!("no eviction is allowed: {healthy} of {expected} pods are healthy and {desired} have to be");
    let next = if healthy < desired {
        "mend the pods that are not ready; spec.unhealthyPodEvictionPolicy: AlwaysAllow lets those be evicted"
    } else {
        "run more replicas, or lower minAvailable (raise maxUnavailable): drains wait for this"
    };
    let condition = budget.condition("DisruptionAllowed").map(|one| one.line());
    vec![Finding::new(Cause::DisruptionBudget, message, next).all(condition)]
}

pub(super) fn autoscaler(around: &Around<'_>) -> Vec<Finding> {
    let Around { picture, object, .. } = *around;
    let event = |reasons: &[&str]| picture.event(object, reasons).map(event_line);
    if let Some(able) = object.condition_is("AbleToScale", "False") {
        let message = format!("it cannot scale its target: {}", one_line(able.message));
        let next =
            "correct spec.scaleTargetRef: it names a kind with a scale subresource, in the same namespace";
        let finding = Finding::new(Cause::AutoscalerTarget, message, next).evidence(able.line());
        return vec![finding.all(event(&["FailedGetScale", "FailedUpdateScale"]))];
    }
    let Some(active) = object.condition_is("ScalingActive", "False") else { return Vec::new() };
    if active.reason == "ScalingDisabled" {
        return Vec::new();
    }
    let message = format!("it has no metrics to decide by: {}", one_line(active.message));
    let next = "is metrics-server running (kubectl get apiservices v1beta1.metrics.k8s.io), and do the containers have requests?";
    let finding = Finding::new(Cause::AutoscalerMetrics, message, next).evidence(active.line());
    vec![finding.all(event(&["FailedGetResourceMetric", "FailedComputeMetricsReplicas", "InvalidSelector"]))]
}

/// What an autoscaler scales.
pub(super) fn target<'a>(picture: &'a Picture, object: &'a Object) -> Vec<&'a Object> {
    let group = group_of(object.text("/spec/scaleTargetRef/apiVersion"));
    let [kind, name] = ["kind", "name"].map(|key| object.text(&format!("/spec/scaleTargetRef/{key}")));
    picture.get(group, kind, object.namespace(), name).into_iter().collect()
}
