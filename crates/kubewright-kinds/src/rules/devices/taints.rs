//! Taints of devices, tolerations of them, and the rules that taint (`DeviceTaintRule`, from v1.37 on).

use serde_json::Value;

use super::super::at::At;
use super::super::errors::Errors;
use super::super::pods::volumes::check_driver_name;
use super::super::{Generation, Rules, conditions, fill, text};
use super::names;

const EFFECTS: [&str; 3] = ["NoExecute", "NoSchedule", "None"];
/// How many conditions the status of a rule may have.
const CONDITIONS: usize = 8;

pub(crate) const fn rules() -> Rules {
    Rules {
        prepare_create: |rule| fill::set(rule, "status", serde_json::json!({})),
        stamp,
        generation: Generation::Content,
        validate: |rule| Errors::of(|errors| check_rule(&At::root(rule).get("spec"), None, errors)),
        validate_update: |new, old| {
            Errors::of(|errors| {
                check_rule(&At::root(new).get("spec"), Some(&At::root(old).get("spec")), errors);
            })
        },
        validate_status: |new, _| {
            Errors::of(|errors| {
                let list = At::root(new).dig(&["status", "conditions"]);
                conditions::check(&list, errors);
                if list.len() > CONDITIONS {
                    errors.too_many(&list, list.len(), CONDITIONS);
                }
            })
        },
        ..Rules::none()
    }
}

/// A taint says since when it is there; that of a rule since when it has its effect.
fn stamp(rule: &mut Value, old: Option<&Value>, now: &str) {
    let Some(taint) = fill::reach(rule, &["spec", "taint"]) else { return };
    fill::absent(taint, "timeAdded", now);
    let Some(before) = old.and_then(|old| old.pointer("/spec/taint")) else { return };
    if taint["effect"] != before["effect"] && taint["timeAdded"] == before["timeAdded"] {
        fill::set(taint, "timeAdded", now);
    }
}

fn check_rule(spec: &At<'_>, old: Option<&At<'_>>, errors: &mut Errors) {
    let selector = spec.get("deviceSelector");
    if selector.get("driver").is_set() {
        check_driver_name(&selector.get("driver"), errors);
    }
    if selector.get("pool").is_set() {
        names::check_pool(&selector.get("pool"), errors);
    }
    if selector.get("device").is_set() {
        names::check_label(&selector.get("device"), errors);
    }
    check_taint(&spec.get("taint"), old.map(|old| old.get("taint")).as_ref(), errors);
}

pub(super) fn check_taint(taint: &At<'_>, old: Option<&At<'_>>, errors: &mut Errors) {
    errors.text(&taint.get("key"), text::label_key);
    if !taint.get("value").is_empty() {
        names::check_label_value(&taint.get("value"), errors);
    }
    let effect = taint.get("effect");
    if old.is_none_or(|old| old.get("effect").text() != effect.text()) {
        errors.need_one_of(&effect, &EFFECTS);
    }
}

pub(super) fn check_toleration(toleration: &At<'_>, errors: &mut Errors) {
    errors.maybe_text(&toleration.get("key"), text::label_key);
    let (operator, value) = (toleration.get("operator"), toleration.get("value"));
    match operator.text() {
        "Exists" if !value.is_empty() => errors.invalid(&value, "must be empty for operator `Exists`"),
        "Exists" => {}
        "Equal" => names::check_label_value(&value, errors),
        _ => errors.need_one_of(&operator, &["Equal", "Exists"]),
    }
    let effect = toleration.get("effect");
    if !effect.is_empty() {
        errors.one_of(&effect, &EFFECTS);
    }
}
