//! Bindings of admission policies.

use std::collections::BTreeSet;

use kubewright_meta::FieldError;
use serde_json::Value;

use super::super::at::At;
use super::super::errors::Errors;
use super::super::{Again, Finalizers, Generation, Rules, fill, selector, text};
use super::{matching, reserved};

/// The rules of bindings: a validating one says what to do with what it finds.
pub(crate) const fn rules(validating: bool) -> Rules {
    Rules {
        default: |binding| {
            let Some(spec) = fill::object(binding, "spec") else { return };
            if let Some(resources) = fill::present(spec, "matchResources") {
                matching::default_constraints(resources);
            }
        },
        generation: Generation::Content,
        finalizers: Finalizers::Syntax,
        again: Again::Metadata,
        change_again: false,
        validate: if validating {
            |new| reserved::with_name(new, check_validating)
        } else {
            |new| reserved::with_name(new, check_mutating)
        },
        warn: reserved::of_name,
        validate_update: if validating {
            |new, _| check_validating(new)
        } else {
            |new, _| check_mutating(new)
        },
        ..Rules::none()
    }
}

fn check_mutating(binding: &Value) -> Vec<FieldError> {
    Errors::of(|errors| {
        let spec = At::root(binding).get("spec");
        check(&spec, errors);
        let resources = spec.get("matchResources");
        if resources.is_set() {
            matching::check_mutable(&resources, errors);
        }
    })
}

fn check(spec: &At<'_>, errors: &mut Errors) {
    errors.need_text(&spec.get("policyName"), text::subdomain);
    let reference = spec.get("paramRef");
    if reference.is_set() {
        check_reference(&reference, errors);
    }
    let resources = spec.get("matchResources");
    if resources.is_set() {
        matching::check_constraints(&resources, errors);
    }
}

fn check_reference(reference: &At<'_>, errors: &mut Errors) {
    const EITHER: &str = "name and selector are mutually exclusive";
    let (name, selected) = (reference.get("name"), reference.get("selector"));
    let both = !name.is_empty() && selected.is_set();
    errors.maybe_text(&name, text::path_segment);
    if both {
        errors.forbidden(&name, EITHER);
    }
    selector::check(&selected, errors);
    if both {
        errors.forbidden(&selected, EITHER);
    }
    if name.is_empty() && !selected.is_set() {
        errors.required(reference, "one of name or selector must be specified");
    }
    let action = reference.get("parameterNotFoundAction");
    if errors.need(&action) && !["Allow", "Deny"].contains(&action.text()) {
        errors.not_supported(&action, &["Deny", "Allow"]);
    }
}

fn check_validating(binding: &Value) -> Vec<FieldError> {
    Errors::of(|errors| {
        let spec = At::root(binding).get("spec");
        check(&spec, errors);
        let actions = spec.get("validationActions");
        let mut seen = BTreeSet::new();
        for action in actions.items() {
            errors.one_of(&action, &["Audit", "Deny", "Warn"]);
            if !seen.insert(action.text()) {
                errors.duplicate(&action);
            }
        }
        if seen.contains("Deny") && seen.contains("Warn") {
            errors.invalid(&actions, "must not contain both Deny and Warn (repeating the same validation failure information in the API response and headers serves no purpose)");
        }
        if seen.is_empty() {
            errors.required(&actions, "at least one validation action is required");
        }
    })
}
