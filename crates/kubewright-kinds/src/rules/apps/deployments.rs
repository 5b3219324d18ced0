//! Deployments.

use kubewright_meta::FieldError;
use serde_json::Value;

use super::super::at::At;
use super::super::errors::Errors;
use super::super::pods::{default_template, template};
use super::super::{Generation, Rules, fill, percent, selector, structs};
use super::{check_collisions, check_counts, check_selector};

pub(crate) const fn rules() -> Rules {
    Rules {
        default,
        pod_spec: &["spec", "template", "spec"],
        prepare_create: |object| fill::set(object, "status", serde_json::json!({})),
        unwritten: super::unwritten_replicas,
        generation: Generation::ContentAndAnnotations,
        validate: |object| Errors::of(|errors| check(&At::root(object).get("spec"), errors)),
        validate_update: |new, old| {
            Errors::of(|errors| {
                let (new, old) = (At::root(new).get("spec"), At::root(old).get("spec"));
                check(&new, errors);
                selector::immutable(&new.get("selector"), &old.get("selector"), errors);
            })
        },
        validate_status,
        ..Rules::none()
    }
}

fn default(object: &mut Value) {
    fill::object(object, "status");
    let Some(spec) = fill::object(object, "spec") else { return };
    default_template(spec, "template");
    fill::absent(spec, "replicas", 1);
    if let Some(strategy) = fill::object(spec, "strategy") {
        fill::blank(strategy, "type", "RollingUpdate");
        if strategy["type"] == "RollingUpdate"
            && let Some(rolling) = fill::object(strategy, "rollingUpdate")
        {
            fill::absent(rolling, "maxUnavailable", "25%");
            fill::absent(rolling, "maxSurge", "25%");
        }
    }
    fill::absent(spec, "revisionHistoryLimit", 10);
    fill::absent(spec, "progressDeadlineSeconds", 600);
}

fn check(spec: &At<'_>, errors: &mut Errors) {
    errors.non_negative(&spec.get("replicas"));
    let wanted = spec.get("selector");
    let pods = spec.get("template");
    if check_selector(&wanted, "deployment", errors) {
        if !wanted.is_set() || !selector::is_everything(&wanted) {
            template::check_selected(&pods, &wanted, errors);
        }
        template::check(&pods, errors);
        template::check_lasting(&pods, "ReplicaSet", errors);
    } else {
        selector::invalid(&wanted, "invalid label selector", errors);
    }
    check_strategy(&spec.get("strategy"), errors);
    errors.non_negative(&spec.get("minReadySeconds"));
    errors.non_negative(&spec.get("revisionHistoryLimit"));
    let deadline = spec.get("progressDeadlineSeconds");
    errors.non_negative(&deadline);
    let ready = spec.get("minReadySeconds").number().unwrap_or_default();
    if deadline.number().is_some_and(|deadline| deadline <= ready) {
        errors.invalid(&deadline, "must be greater than minReadySeconds");
    }
}

fn check_strategy(strategy: &At<'_>, errors: &mut Errors) {
    let rolling = strategy.get("rollingUpdate");
    match strategy.get("type").text() {
        "Recreate" if rolling.is_set() => {
            errors.forbidden(&rolling, "may not be specified when strategy `type` is 'Recreate'");
        }
        "Recreate" => {}
        "RollingUpdate" if rolling.is_set() => check_rolling(&rolling, errors),
        "RollingUpdate" => errors.required(&rolling, "this should be defaulted and never be nil"),
        kind => {
            let error = FieldError::not_supported(&strategy.path, kind, ["Recreate", "RollingUpdate"]);
            errors.push(error.printed(structs::of_type("apps.DeploymentStrategy", strategy.value)));
        }
    }
}

fn check_rolling(rolling: &At<'_>, errors: &mut Errors) {
    let (unavailable, surge) = (rolling.get("maxUnavailable"), rolling.get("maxSurge"));
    percent::check(&unavailable, errors);
    percent::check(&surge, errors);
    if percent::amount(&unavailable) == 0 && percent::amount(&surge) == 0 {
        errors.invalid(&unavailable, "may not be 0 when `maxSurge` is 0");
    }
    percent::check_at_most_all(&unavailable, errors);
}

fn validate_status(new: &Value, old: &Value) -> Vec<FieldError> {
    Errors::of(|errors| {
        let fields = [
            "observedGeneration",
            "replicas",
            "updatedReplicas",
            "readyReplicas",
            "availableReplicas",
            "unavailableReplicas",
            "terminatingReplicas",
            "collisionCount",
        ];
        let parts = ["updatedReplicas", "readyReplicas", "availableReplicas"];
        check_counts(&At::root(new).get("status"), &fields, &parts, "readyReplicas", errors);
        check_collisions(new, old, errors);
    })
}
