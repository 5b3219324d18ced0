//! Daemon sets.

use kubewright_meta::FieldError;
use serde_json::{Value, json};

use super::super::at::{At, same};
use super::super::errors::Errors;
use super::super::pods::{default_template, template};
use super::super::{Generation, Rules, fill, percent, selector, structs};
use super::check_collisions;

/// Counts the templates; a field of its own in old versions of the API.
pub(crate) const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";
const COUNTS: [&str; 9] = [
    "currentNumberScheduled",
    "numberMisscheduled",
    "desiredNumberScheduled",
    "numberReady",
    "observedGeneration",
    "updatedNumberScheduled",
    "numberAvailable",
    "numberUnavailable",
    "collisionCount",
];

pub(crate) const fn rules() -> Rules {
    Rules {
        default,
        pod_spec: &["spec", "template", "spec"],
        prepare_create: |object| {
            fill::set(object, "status", json!({}));
            default_status(object);
            count_template(object, 1);
        },
        prepare_update,
        // The count is a part of the spec, which the status does not write.
        prepare_status: |new, old| count_template(new, template_count(old).unwrap_or_default()),
        unwritten: |object| count_template(object, 0),
        generation: Generation::Content,
        validate: |object| Errors::of(|errors| check(&At::root(object).get("spec"), errors)),
        validate_update: |new, old| {
            Errors::of(|errors| {
                let (new, old) = (At::root(new).get("spec"), At::root(old).get("spec"));
                selector::immutable(&new.get("selector"), &old.get("selector"), errors);
                check(&new, errors);
            })
        },
        validate_status: |new, old| {
            Errors::of(|errors| {
                for field in COUNTS {
                    errors.non_negative(&At::root(new).get("status").get(field));
                }
                check_collisions(new, old, errors);
            })
        },
        ..Rules::none()
    }
}

fn default(object: &mut Value) {
    default_status(object);
    // Old versions of the API are written through today's, with a count of zero.
    if object["metadata"]["annotations"].get(TEMPLATE_GENERATION).is_none() {
        count_template(object, 0);
    }
    let Some(spec) = fill::object(object, "spec") else { return };
    default_template(spec, "template");
    if let Some(strategy) = fill::object(spec, "updateStrategy") {
        fill::blank(strategy, "type", "RollingUpdate");
        if strategy["type"] == "RollingUpdate"
            && let Some(rolling) = fill::object(strategy, "rollingUpdate")
        {
            fill::absent(rolling, "maxUnavailable", 1);
            fill::absent(rolling, "maxSurge", 0);
        }
        // Both are numbers without a pointer where Kubernetes works with them, whatever the type is.
        if let Some(rolling) = fill::present(strategy, "rollingUpdate") {
            fill::absent(rolling, "maxUnavailable", 0);
            fill::absent(rolling, "maxSurge", 0);
        }
    }
    fill::absent(spec, "revisionHistoryLimit", 10);
}

fn default_status(object: &mut Value) {
    if let Some(status) = fill::object(object, "status") {
        for field in &COUNTS[..4] {
            fill::absent(status, field, 0);
        }
    }
}

/// How often the template has changed, as an object says.
fn template_count(object: &Value) -> Option<i64> {
    object["metadata"]["annotations"][TEMPLATE_GENERATION].as_str().and_then(|text| text.parse().ok())
}

fn prepare_update(new: &mut Value, old: &Value) {
    let before = template_count(old).unwrap_or(1);
    let changed = !same(&new["spec"]["template"], &old["spec"]["template"]);
    count_template(new, before.saturating_add(i64::from(changed)));
}

fn count_template(object: &mut Value, count: i64) {
    if let Some(annotations) =
        fill::object(object, "metadata").and_then(|metadata| fill::map(metadata, "annotations"))
    {
        annotations.insert(TEMPLATE_GENERATION.to_owned(), count.to_string().into());
    }
}

fn check(spec: &At<'_>, errors: &mut Errors) {
    let (wanted, pods) = (spec.get("selector"), spec.get("template"));
    selector::check(&wanted, errors);
    template::check_selected(&pods, &wanted, errors);
    if wanted.is_set() && selector::is_everything(&wanted) {
        selector::invalid(&wanted, "empty selector is invalid for daemonset", errors);
    }
    template::check(&pods, errors);
    template::check_lasting(&pods, "DaemonSet", errors);
    errors.non_negative(&spec.get("minReadySeconds"));
    check_strategy(&spec.get("updateStrategy"), errors);
    errors.non_negative(&spec.get("revisionHistoryLimit"));
}

fn check_strategy(strategy: &At<'_>, errors: &mut Errors) {
    let rolling = strategy.get("rollingUpdate");
    match strategy.get("type").text() {
        "OnDelete" => {}
        "RollingUpdate" if rolling.is_set() => check_rolling(&rolling, errors),
        "RollingUpdate" => errors.required(&rolling, ""),
        kind => {
            let error = FieldError::not_supported(&strategy.path, kind, ["RollingUpdate", "OnDelete"]);
            errors.push(error.printed(structs::of_type("apps.DaemonSetUpdateStrategy", strategy.value)));
        }
    }
}

fn check_rolling(rolling: &At<'_>, errors: &mut Errors) {
    let (unavailable, surge) = (rolling.get("maxUnavailable"), rolling.get("maxSurge"));
    for check in [percent::check, percent::check_at_most_all] {
        check(&unavailable, errors);
        check(&surge, errors);
    }
    match (percent::amount(&unavailable) != 0, percent::amount(&surge) != 0) {
        (true, true) => errors.invalid(&surge, "may not be set when maxUnavailable is non-zero"),
        (false, false) => errors.required(&unavailable, "cannot be 0 when maxSurge is 0"),
        _ => {}
    }
}
