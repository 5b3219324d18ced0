//! The metrics of an autoscaler: one of five sources each.

use super::super::at::At;
use super::super::errors::Errors;
use super::super::quantity::Quantity;
use super::super::{resources, text};
use super::check_reference;

/// The types of metrics and the field of each, in the order in which Kubernetes looks at them.
const SOURCES: [(&str, &str); 5] = [
    ("Object", "object"),
    ("External", "external"),
    ("Pods", "pods"),
    ("Resource", "resource"),
    ("ContainerResource", "containerResource"),
];
const TYPES: [&str; 5] = ["ContainerResource", "External", "Object", "Pods", "Resource"];

/// Checks one metric (`validateMetricSpec`).
pub(super) fn check(metric: &At<'_>, errors: &mut Errors) {
    let kind = metric.get("type");
    if kind.is_empty() {
        errors.required(&kind, "must specify a metric source type");
    }
    let known = SOURCES.iter().find(|(name, _)| *name == kind.text());
    if known.is_none() {
        errors.not_supported(&kind, &TYPES);
    }
    let given: Vec<&str> =
        SOURCES.iter().map(|(_, field)| *field).filter(|field| metric.get(field).is_set()).collect();
    if let Some(first) = given.first() {
        check_source(first, &metric.get(first), errors);
    }
    match known {
        Some((_, field)) if !metric.get(field).is_set() => {
            errors.required(&metric.get(field), "must populate information for the given metric source");
        }
        Some(_) => {}
        None => errors.not_supported(&kind, &TYPES),
    }
    if given.len() != 1 {
        for other in given.iter().filter(|field| known.is_none_or(|(_, own)| own != *field)) {
            errors.forbidden(&metric.get(other), "must populate the given metric source only");
        }
    }
}

fn check_source(kind: &str, source: &At<'_>, errors: &mut Errors) {
    let target = source.get("target");
    match kind {
        "object" => {
            check_reference(&source.get("describedObject"), errors);
            check_identifier(&source.get("metric"), errors);
        }
        "external" | "pods" => check_identifier(&source.get("metric"), errors),
        _ => {
            let name = source.get("name");
            if name.is_empty() {
                errors.required(&name, "must specify a resource name");
            } else if kind == "containerResource" {
                resources::container_name(name.text(), &name, errors);
            }
        }
    }
    if kind == "containerResource" {
        let container = source.get("container");
        if container.is_empty() {
            errors.required(&container, "must specify a container");
        }
        errors.maybe_text(&container, text::label);
    }
    check_target(&target, errors);
    check_amounts(kind, &target, errors);
}

fn check_identifier(metric: &At<'_>, errors: &mut Errors) {
    let name = metric.get("name");
    if name.is_empty() {
        errors.required(&name, "must specify a metric name");
    }
    errors.maybe_text(&name, text::path_segment);
}

fn check_target(target: &At<'_>, errors: &mut Errors) {
    let kind = target.get("type");
    if kind.is_empty() {
        errors.required(&kind, "must specify a metric target type");
    }
    if !matches!(kind.text(), "Utilization" | "Value" | "AverageValue") {
        errors.invalid_text(&kind, "must be either Utilization, Value, or AverageValue");
    }
    for amount in ["value", "averageValue"].map(|field| target.get(field)) {
        if Quantity::of(amount.value).is_some_and(|amount| !amount.sign().is_gt()) {
            errors.invalid(&amount, "must be positive");
        }
    }
    let share = target.get("averageUtilization");
    if share.number().is_some_and(|share| share < 1) {
        errors.invalid(&share, "must be greater than 0");
    }
}

/// Which amounts a kind of metric needs, and which exclude each other.
fn check_amounts(kind: &str, target: &At<'_>, errors: &mut Errors) {
    let (value, average, share) =
        (target.get("value"), target.get("averageValue"), target.get("averageUtilization"));
    let (has_value, has_average, has_share) = (value.is_set(), average.is_set(), share.is_set());
    match kind {
        "object" if !has_value && !has_average => {
            errors.required(&average, "must set either a target value or averageValue");
        }
        "external" if !has_value && !has_average => {
            errors.required(&average, "must set either a target value for metric or a per-pod target");
        }
        "external" if has_value && has_average => {
            errors.forbidden(&value, "may not set both a target value for metric and a per-pod target");
        }
        "pods" if !has_average => errors.required(&average, "must specify a positive target averageValue"),
        "resource" | "containerResource" if !has_share && !has_average => {
            errors.required(&share, "must set either a target raw value or a target utilization");
        }
        "resource" | "containerResource" if has_share && has_average => {
            errors.forbidden(&average, "may not set both a target raw value and a target utilization");
        }
        _ => {}
    }
}
