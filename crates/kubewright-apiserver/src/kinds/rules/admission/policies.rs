//! Admission policies and their bindings.

use std::collections::BTreeSet;

use serde_json::Value;

use super::super::at::At;
use super::super::errors::Errors;
use super::super::{Generation, Rules, fill, text};
use super::matching;
use crate::FieldError;

const REASONS: [&str; 4] = ["Forbidden", "Invalid", "RequestEntityTooLarge", "Unauthorized"];

/// The rules of validating policies.
pub(crate) fn rules() -> Rules {
    Rules {
        default: |policy| {
            fill::object(policy, "status");
            default(policy);
        },
        prepare_create: |policy| fill::set(policy, "status", serde_json::json!({})),
        generation: Generation::Content,
        validate: check_validating,
        validate_update: |new, _| check_validating(new),
        ..Rules::none()
    }
}

/// The rules of mutating policies.
pub(crate) fn mutating_rules() -> Rules {
    Rules {
        default,
        generation: Generation::Content,
        validate: check_mutating,
        validate_update: |new, _| check_mutating(new),
        ..Rules::none()
    }
}

fn default(policy: &mut Value) {
    let Some(spec) = fill::object(policy, "spec") else { return };
    fill::absent(spec, "failurePolicy", "Fail");
    if let Some(constraints) = fill::present(spec, "matchConstraints") {
        default_constraints(constraints);
    }
}

fn default_constraints(constraints: &mut Value) {
    matching::default(constraints);
    matching::default_rules(constraints, "resourceRules");
    matching::default_rules(constraints, "excludeResourceRules");
}

fn check_common(spec: &At<'_>, errors: &mut Errors) {
    errors.need_one_of(&spec.get("failurePolicy"), &["Fail", "Ignore"]);
    let kind = spec.get("paramKind");
    if kind.is_set() {
        errors.need(&kind.get("apiVersion"));
        errors.need(&kind.get("kind"));
    }
    let constraints = spec.get("matchConstraints");
    if constraints.is_set() {
        check_constraints(&constraints, errors);
        errors.need(&constraints.get("resourceRules"));
    } else {
        errors.required(&constraints, "");
    }
    matching::check_conditions(&spec.get("matchConditions"), errors);
    for variable in spec.get("variables").items() {
        let name = variable.get("name");
        if errors.need(&name) && !is_identifier(name.text()) {
            errors.invalid(&name, "must be a valid CEL identifier");
        }
        errors.need(&variable.get("expression"));
    }
}

fn is_identifier(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

fn check_constraints(constraints: &At<'_>, errors: &mut Errors) {
    errors.need_one_of(&constraints.get("matchPolicy"), &matching::POLICIES);
    for field in ["namespaceSelector", "objectSelector"] {
        if !constraints.get(field).is_set() {
            errors.required(&constraints.get(field), "");
        }
    }
    matching::check_selectors(constraints, errors);
    for rule in
        ["resourceRules", "excludeResourceRules"].iter().flat_map(|list| constraints.get(list).items())
    {
        let mut names = BTreeSet::new();
        for name in rule.get("resourceNames").items() {
            errors.text(&name, text::path_segment);
            if !names.insert(name.text()) {
                errors.duplicate(&name);
            }
        }
        matching::check_rule(&rule, errors);
    }
}

fn check_validating(policy: &Value) -> Vec<FieldError> {
    Errors::of(|errors| {
        let spec = At::root(policy).get("spec");
        check_common(&spec, errors);
        let (validations, audits) = (spec.get("validations"), spec.get("auditAnnotations"));
        if validations.is_empty() && audits.is_empty() {
            for list in [&validations, &audits] {
                errors.required(list, "validations or auditAnnotations must contain at least one item");
            }
        }
        for validation in validations.items() {
            let reason = validation.get("reason");
            if validation.get("expression").text().trim().is_empty() {
                errors.required(&validation.get("expression"), "expression is not specified");
            }
            if reason.is_set() && !REASONS.contains(&reason.text()) {
                errors.not_supported(&reason, &REASONS[..3]);
            }
        }
        if audits.len() > 20 {
            errors.invalid(&audits, "must not have more than 20 auditAnnotations");
        }
        for audit in audits.items() {
            errors.need_text(&audit.get("key"), text::label_key);
            errors.need(&audit.get("valueExpression"));
        }
        errors.unique(&audits, "key");
    })
}

fn check_mutating(policy: &Value) -> Vec<FieldError> {
    Errors::of(|errors| {
        let spec = At::root(policy).get("spec");
        check_common(&spec, errors);
        let mutations = spec.get("mutations");
        if mutations.is_empty() {
            errors.required(&mutations, "mutations must contain at least one item");
        }
        for mutation in mutations.items() {
            errors.need_one_of(&mutation.get("patchType"), &["ApplyConfiguration", "JSONPatch"]);
        }
        errors.need_one_of(&spec.get("reinvocationPolicy"), &["IfNeeded", "Never"]);
    })
}

/// The rules of bindings: a validating one says what to do with what it finds.
pub(crate) fn binding_rules(validating: bool) -> Rules {
    Rules {
        default: |binding| {
            let Some(spec) = fill::object(binding, "spec") else { return };
            if let Some(resources) = fill::present(spec, "matchResources") {
                default_constraints(resources);
            }
        },
        generation: Generation::Content,
        validate: if validating { check_validating_binding } else { check_binding },
        validate_update: if validating {
            |new, _| check_validating_binding(new)
        } else {
            |new, _| check_binding(new)
        },
        ..Rules::none()
    }
}

fn check_binding(binding: &Value) -> Vec<FieldError> {
    Errors::of(|errors| check_binding_spec(&At::root(binding).get("spec"), errors))
}

fn check_binding_spec(spec: &At<'_>, errors: &mut Errors) {
    errors.need_text(&spec.get("policyName"), text::path_segment);
    let parameters = spec.get("paramRef");
    if parameters.is_set() {
        let (name, selector) = (parameters.get("name"), parameters.get("selector"));
        match (name.is_empty(), selector.is_set()) {
            (true, false) => errors.required(&parameters, "one of name or selector must be specified"),
            (false, true) => errors.forbidden(&name, "name and selector are mutually exclusive"),
            _ => errors.maybe_text(&name, text::path_segment),
        }
        errors.need_one_of(&parameters.get("parameterNotFoundAction"), &["Allow", "Deny"]);
    }
    let resources = spec.get("matchResources");
    if resources.is_set() {
        check_constraints(&resources, errors);
    }
}

fn check_validating_binding(binding: &Value) -> Vec<FieldError> {
    Errors::of(|errors| {
        let spec = At::root(binding).get("spec");
        check_binding_spec(&spec, errors);
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
