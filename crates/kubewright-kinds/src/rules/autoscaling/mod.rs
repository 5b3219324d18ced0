//! Horizontal pod autoscalers in both of their versions (`pkg/apis/autoscaling/validation`). They are stored as `v2`,
//! and checked in that form.

mod metrics;

use kubewright_meta::FieldError;
use kubewright_spec::Version;
use serde_json::{Value, json};

use super::at::At;
use super::errors::Errors;
use super::{Rules, convert, drop_annotation, fill, resources, text, version};

/// The start of the annotations in which `v1` tells what only `v2` has fields for.
const NOTES: &str = "autoscaling.alpha.kubernetes.io/";
const STATUS: fn(&mut Value) =
    |object| fill::set(object, "status", json!({"currentReplicas": 0, "desiredReplicas": 0}));

/// The rules of `autoscaling/v2`.
pub(crate) const fn rules() -> Rules {
    Rules {
        default: |object| {
            // What an older version tells in annotations has fields here (`DropRoundTripHorizontalPodAutoscalerAnnotations`).
            for told in convert::autoscalers::ANNOTATIONS {
                drop_annotation(object, told);
            }
            default_status(object);
            default_v2(object);
        },
        prepare_create: |object| {
            fill::set(object, "status", json!({"desiredReplicas": 0, "currentMetrics": null}));
        },
        validate: |object| check_v2(object, None),
        validate_update: |new, old| check_v2(new, Some(old)),
        validate_status: |new, _| check_status(new),
        ..Rules::none()
    }
}

/// The rules of `autoscaling/v1`.
pub(crate) const fn rules_v1() -> Rules {
    Rules {
        default: |object| {
            default_status(object);
            if let Some(spec) = fill::object(object, "spec") {
                fill::absent(spec, "minReplicas", 1);
            }
            default_target(object);
        },
        prepare_create: |object| {
            STATUS(object);
            // They tell of the status, which a new object does not have.
            if let Some(notes) = fill::reach(object, &["metadata", "annotations"]) {
                for told in ["conditions", "current-metrics"] {
                    fill::remove(notes, &format!("{NOTES}{told}"));
                }
                if notes.as_object().is_some_and(serde_json::Map::is_empty)
                    && let Some(metadata) = fill::present(object, "metadata")
                {
                    fill::remove(metadata, "annotations");
                }
            }
        },
        validate: |object| check_v1(object, None),
        validate_update: |new, old| check_v1(new, Some(old)),
        validate_status: |new, _| check_status(new),
        ..Rules::none()
    }
}

/// Without any metric the processor is looked at, as `v2` says.
fn default_target(object: &mut Value) {
    let notes = At::root(object).dig(&["metadata", "annotations"]);
    if !notes.get(&format!("{NOTES}metrics")).is_set()
        && let Some(spec) = fill::present(object, "spec")
    {
        fill::absent(spec, "targetCPUUtilizationPercentage", 80);
    }
}

fn default_status(object: &mut Value) {
    if let Some(status) = fill::object(object, "status") {
        fill::absent(status, "desiredReplicas", 0);
    }
}

fn check_v2(object: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let old = old.map(|old| At::root(old).get("spec"));
    Errors::of(|errors| check(&At::root(object).get("spec"), old.as_ref(), errors))
}

fn check_v1(object: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut stored = object.clone();
    convert::autoscalers::to_v2(&mut stored);
    // Both versions have the same fields for the target and the least replicas, which is all that counts of the old object.
    check_v2(&stored, old)
}

fn check_status(object: &Value) -> Vec<FieldError> {
    Errors::of(|errors| {
        for field in ["currentReplicas", "desiredReplicas"] {
            errors.non_negative(&At::root(object).get("status").get(field));
        }
    })
}

fn default_v2(object: &mut Value) {
    let Some(spec) = fill::object(object, "spec") else { return };
    fill::absent(spec, "minReplicas", 1);
    if At::root(spec).get("metrics").is_empty() {
        let target = json!({"type": "Utilization", "averageUtilization": 80});
        fill::set(
            spec,
            "metrics",
            json!([{"type": "Resource", "resource": {"name": "cpu", "target": target}}]),
        );
    }
    let Some(behavior) = fill::present(spec, "behavior") else { return };
    let policy = |kind: &str, value: i32| json!({"type": kind, "value": value, "periodSeconds": 15});
    if let Some(up) = fill::object(behavior, "scaleUp") {
        fill::absent(up, "stabilizationWindowSeconds", 0);
        default_rules(up, json!([policy("Pods", 4), policy("Percent", 100)]));
    }
    if let Some(down) = fill::object(behavior, "scaleDown") {
        default_rules(down, json!([policy("Percent", 100)]));
    }
}

fn default_rules(rules: &mut Value, policies: Value) {
    fill::absent(rules, "selectPolicy", "Max");
    fill::absent(rules, "policies", policies);
    fill::canonical(rules, "tolerance");
}

fn check(spec: &At<'_>, old: Option<&At<'_>>, errors: &mut Errors) {
    let (least, most) = (spec.get("minReplicas"), spec.get("maxReplicas"));
    // A scaler that was made to scale to zero where that was on may stay so (`validationOptionsForHorizontalPodAutoscaler`).
    let lowest = i64::from(
        !(old.is_some_and(|old| old.get("minReplicas").number() == Some(0))
            || version::has_feature("HPAScaleToZero")),
    );
    if least.number().is_some_and(|least| least < lowest) {
        errors.invalid(&least, format!("must be greater than or equal to {lowest}"));
    }
    let number = most.number().unwrap_or_default();
    if number <= 0 && !version::since(Version::V1_36) {
        errors.invalid_as(&most, number, "must be greater than 0");
    } else if number == 0 {
        errors.required(&most, "must be set and greater than 0");
    } else if number < 0 {
        errors.invalid(&most, "must be greater than or equal to 1");
    }
    if least.number().is_some_and(|least| number < least) {
        errors.invalid_as(&most, number, "must be greater than or equal to `minReplicas`");
    }
    check_target(&spec.get("scaleTargetRef"), old.map(|old| old.get("scaleTargetRef")).as_ref(), errors);
    let listed = spec.get("metrics");
    for metric in listed.items() {
        metrics::check(&metric, errors);
    }
    let from_outside = |metric: At<'_>| matches!(metric.get("type").text(), "Object" | "External");
    if least.number() == Some(0) && !listed.items().any(from_outside) {
        let detail =
            "must specify at least one Object or External metric to support scaling to zero replicas";
        errors.forbidden(&listed, detail);
    }
    for direction in ["scaleUp", "scaleDown"] {
        let rules = spec.dig(&["behavior", direction]);
        if rules.is_set() {
            check_rules(&rules, errors);
        }
    }
}

/// What is scaled has a group, unless it is the one scalable kind that has none; a version and kind that are there already
/// are not looked at again (`validationOptionsForHorizontalPodAutoscaler` in its strategy).
fn check_target(target: &At<'_>, old: Option<&At<'_>>, errors: &mut Errors) {
    check_names(target, errors);
    let is_same = |old: &At<'_>| {
        let same = |field: &str| old.get(field).text() == target.get(field).text();
        same("apiVersion") && same("kind")
    };
    if old.is_some_and(is_same) {
        return;
    }
    let version = target.get("apiVersion");
    let has_group = version.text().split_once('/').is_some_and(|(group, _)| !group.is_empty());
    if check_version(target, errors) && !has_group && target.get("kind").text() != "ReplicationController" {
        errors.invalid_text(&version, "apiVersion must specify API group");
    }
}

/// A reference to an object of some version.
fn check_reference(reference: &At<'_>, errors: &mut Errors) {
    check_names(reference, errors);
    check_version(reference, errors);
}

fn check_names(reference: &At<'_>, errors: &mut Errors) {
    errors.need_text(&reference.get("kind"), text::path_segment);
    errors.need_text(&reference.get("name"), text::path_segment);
}

/// Whether the version of a reference can be read.
fn check_version(reference: &At<'_>, errors: &mut Errors) -> bool {
    let version = reference.get("apiVersion");
    let readable = version.text().matches('/').count() <= 1;
    if !readable {
        errors.invalid(&version, format!("unexpected GroupVersion string: {}", version.text()));
    }
    readable
}

fn check_rules(rules: &At<'_>, errors: &mut Errors) {
    let window = rules.get("stabilizationWindowSeconds");
    match window.number() {
        Some(seconds) if seconds < 0 => errors.invalid(&window, "must be greater than or equal to zero"),
        Some(seconds) if seconds > 3600 => errors.invalid(&window, "must be less than or equal to 3600"),
        _ => {}
    }
    errors.maybe_one_of(&rules.get("selectPolicy"), &["Disabled", "Max", "Min"]);
    let policies = rules.get("policies");
    if policies.is_empty() {
        errors.required(&policies, "must specify at least one Policy");
    }
    for policy in policies.items() {
        errors.one_of(&policy.get("type"), &["Percent", "Pods"]);
        for field in ["value", "periodSeconds"] {
            let at = policy.get(field);
            let number = at.number().unwrap_or_default();
            if number <= 0 {
                errors.invalid_as(&at, number, "must be greater than zero");
            }
            if field == "periodSeconds" && number > 1800 {
                errors.invalid(&at, "must be less than or equal to 1800");
            }
        }
    }
    resources::non_negative(&rules.get("tolerance"), errors);
}
