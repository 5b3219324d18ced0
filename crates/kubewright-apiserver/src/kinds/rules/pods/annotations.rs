//! Annotations that mean something to pods (`ValidatePodSpecificAnnotations`).

use super::super::at::At;
use super::super::errors::Errors;

const MIRROR: &str = "kubernetes.io/config.mirror";
const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";

/// Checks the annotations of a pod or template.
pub(super) fn check(annotations: &At<'_>, spec: &At<'_>, errors: &mut Errors) {
    let mirror = annotations.entry(MIRROR);
    if mirror.is_set() && spec.get("nodeName").is_empty() {
        errors.invalid(&mirror, "must set spec.nodeName if mirror pod annotation is set");
    }
    let cost = annotations.entry(DELETION_COST);
    if cost.is_set() && !is_cost(cost.text()) {
        errors.invalid(&cost, "must be a 32bit integer");
    }
}

/// A whole number without a plus sign or leading zeros.
fn is_cost(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let padded = digits.starts_with('0') && text != "0";
    !text.starts_with('+') && !padded && text.parse::<i32>().is_ok()
}

/// Checks a change of a pod's annotations (`ValidatePodSpecificAnnotationUpdates`).
pub(super) fn check_update(new: &At<'_>, old: &At<'_>, errors: &mut Errors) {
    let (now, before) = (new.entry(MIRROR), old.entry(MIRROR));
    if now.value == before.value {
        return;
    }
    let may_not = if before.is_set() {
        "may not remove or update mirror pod annotation"
    } else {
        "may not add mirror pod annotation"
    };
    errors.forbidden(&now, may_not);
}
