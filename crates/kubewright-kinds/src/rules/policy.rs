//! The group `policy`: disruption budgets (`pkg/apis/policy/validation`).

use kubewright_meta::FieldError;
use serde_json::{Value, json};

use super::at::At;
use super::errors::Errors;
use super::{Finalizers, Generation, NameRule, Rules, conditions, fill, percent, printed, selector};

const COUNTS: [&str; 4] = ["disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"];

/// The rules of disruption budgets.
pub(crate) const fn budgets() -> Rules {
    Rules {
        default: |budget| {
            fill::object(budget, "spec");
            default_status(budget);
        },
        prepare_create: |budget| {
            fill::set(budget, "status", json!({}));
            default_status(budget);
        },
        generation: Generation::Content,
        name: NameRule::PathSegment,
        finalizers: Finalizers::Syntax,
        judges_metadata: false,
        change_again: false,
        status_change_again: false,
        validate: |budget| Errors::of(|errors| check(&At::root(budget).get("spec"), errors)),
        validate_update: |new, _| Errors::of(|errors| check(&At::root(new).get("spec"), errors)),
        validate_status: |new, _| {
            Errors::of(|errors| {
                conditions::check(&At::root(new).dig(&["status", "conditions"]), errors);
                for field in COUNTS {
                    errors.non_negative(&At::root(new).get("status").get(field));
                }
            })
        },
        ..Rules::none()
    }
}

fn default_status(budget: &mut Value) {
    if let Some(status) = fill::object(budget, "status") {
        for field in COUNTS {
            fill::absent(status, field, 0);
        }
    }
}

fn check(spec: &At<'_>, errors: &mut Errors) {
    let (least, most) = (spec.get("minAvailable"), spec.get("maxUnavailable"));
    let unhealthy = spec.get("unhealthyPodEvictionPolicy");
    if least.is_set() && most.is_set() {
        let error = FieldError::invalid(
            &spec.path,
            Value::Null,
            "minAvailable and maxUnavailable cannot be both set",
        );
        errors.push(error.printed(format!(
            "{{\"MinAvailable\":{},\"Selector\":{},\"MaxUnavailable\":{},\"UnhealthyPodEvictionPolicy\":{}}}",
            least.value,
            printed::selector(spec.get("selector").value),
            most.value,
            unhealthy.value
        )));
    }
    for share in [least, most].iter().filter(|share| share.is_set()) {
        percent::check(share, errors);
        percent::check_at_most_all(share, errors);
    }
    selector::check(&spec.get("selector"), errors);
    errors.maybe_one_of(&unhealthy, &["AlwaysAllow", "IfHealthyBudget"]);
}
