//! Admission policies.

use std::collections::BTreeSet;

use kubewright_meta::FieldError;
use serde_json::Value;

use super::super::at::At;
use super::super::errors::Errors;
use super::super::{Again, Finalizers, Generation, Rules, conditions, fill, structs, text};
use super::expressions::Expressions;
use super::{matching, reserved};
use crate::expressions::Returns;

const REASONS: [&str; 3] = ["Forbidden", "Invalid", "RequestEntityTooLarge"];
/// The most audit annotations of a policy.
const MAX_AUDITS: usize = 20;

/// The rules of validating policies.
pub(crate) const fn rules() -> Rules {
    Rules {
        default: |policy| {
            fill::object(policy, "status");
            default(policy);
        },
        prepare_create: |policy| fill::set(policy, "status", serde_json::json!({})),
        generation: Generation::Content,
        finalizers: Finalizers::Syntax,
        again: Again::Metadata,
        change_again: false,
        validate: |policy| reserved::with_name(policy, |policy| check_validating(policy, None)),
        warn: reserved::of_name,
        validate_update: |new, old| check_validating(new, Some(old)),
        validate_status: |new, _| Errors::of(|errors| check_status(&At::root(new).get("status"), errors)),
        ..Rules::none()
    }
}

/// The rules of mutating policies.
pub(crate) const fn mutating_rules() -> Rules {
    Rules {
        default,
        generation: Generation::Content,
        finalizers: Finalizers::Syntax,
        again: Again::Metadata,
        change_again: false,
        validate: |policy| reserved::with_name(policy, |policy| check_mutating(policy, None)),
        warn: reserved::of_name,
        validate_update: |new, old| check_mutating(new, Some(old)),
        ..Rules::none()
    }
}

/// What a status may not say (`validateValidatingAdmissionPolicyStatus`). That the place of a warning is a path is not looked at.
fn check_status(status: &At<'_>, errors: &mut Errors) {
    for warning in status.dig(&["typeChecking", "expressionWarnings"]).items() {
        errors.need(&warning.get("warning"));
        let place = warning.get("fieldRef");
        if place.text().trim().is_empty() {
            errors.required(&place, "");
        }
    }
    conditions::check(&status.get("conditions"), errors);
}

fn default(policy: &mut Value) {
    let Some(spec) = fill::object(policy, "spec") else { return };
    fill::absent(spec, "failurePolicy", "Fail");
    if let Some(constraints) = fill::present(spec, "matchConstraints") {
        matching::default_constraints(constraints);
    }
}

/// What both kinds of policies check, up to their variables. Conditions that do not change are not checked again.
fn check_common(spec: &At<'_>, old: Option<&Value>, mutating: bool, errors: &mut Errors) -> Expressions {
    errors.one_of(&spec.get("failurePolicy"), &["Fail", "Ignore"]);
    let kind = spec.get("paramKind");
    if kind.is_set() {
        check_param_kind(&kind, errors);
    }
    let constraints = spec.get("matchConstraints");
    if constraints.is_set() {
        matching::check_constraints(&constraints, errors);
        errors.need(&constraints.get("resourceRules"));
        if mutating {
            matching::check_mutable(&constraints, errors);
        }
    } else {
        errors.required(&constraints, "");
    }
    let conditions = spec.get("matchConditions");
    let unchanged = old.is_some_and(|old| At::root(old).dig(&["spec", "matchConditions"]).same(&conditions));
    if !unchanged {
        matching::check_conditions(&conditions, kind.is_set(), errors);
    }
    let variables = spec.get("variables");
    let mut expressions = Expressions::new(kind.is_set(), mutating || !variables.is_empty());
    for variable in variables.items() {
        expressions.variable(&variable, errors);
    }
    expressions
}

fn check_param_kind(param: &At<'_>, errors: &mut Errors) {
    let (version, kind) = (param.get("apiVersion"), param.get("kind"));
    let joined = |wrong: Vec<String>| (!wrong.is_empty()).then(|| wrong.join(","));
    if errors.need(&version) {
        let parts: Vec<&str> = version.text().split('/').collect();
        match parts.as_slice() {
            [_, _, _, ..] => {
                errors.invalid(&version, format!("unexpected GroupVersion string: {}", version.text()));
            }
            parts => {
                let (group, number) = match parts {
                    [group, number] => (*group, *number),
                    [number] => ("", *number),
                    _ => ("", ""),
                };
                if let Some(wrong) = joined(text::subdomain(group)).filter(|_| !group.is_empty()) {
                    errors.invalid_as(&version, group, wrong);
                }
                if number.is_empty() {
                    errors.invalid(&version, "version must be specified");
                } else if let Some(wrong) = joined(text::label_1035(number)) {
                    errors.invalid_as(&version, number, wrong);
                }
            }
        }
    }
    if errors.need(&kind)
        && let Some(wrong) = joined(text::label_1035(&kind.text().to_lowercase()))
    {
        errors.invalid(&kind, format!("may have mixed case, but should otherwise match: {wrong}"));
    }
}

fn check_validating(policy: &Value, old: Option<&Value>) -> Vec<FieldError> {
    Errors::of(|errors| {
        let spec = At::root(policy).get("spec");
        let expressions = check_common(&spec, old, false, errors);
        let (validations, audits) = (spec.get("validations"), spec.get("auditAnnotations"));
        if validations.is_empty() && audits.is_empty() {
            for list in [&validations, &audits] {
                errors.required(list, "validations or auditAnnotations must contain at least one item");
            }
        }
        for validation in validations.items() {
            check_validation(&validation, &expressions, errors);
        }
        check_audits(&audits, policy["metadata"]["name"].as_str().unwrap_or_default(), &expressions, errors);
    })
}

fn check_validation(validation: &At<'_>, expressions: &Expressions, errors: &mut Errors) {
    expressions.validation(&validation.get("expression"), errors);
    expressions.message(&validation.get("messageExpression"), errors);
    let message = validation.get("message");
    if !message.is_empty() && message.text().trim().is_empty() {
        errors.invalid(&message, "must be non-empty if specified");
    } else if message.text().trim().contains(['\n', '\r']) {
        errors.invalid(&message, "must not contain line breaks");
    }
    let reason = validation.get("reason");
    if reason.is_set() && !REASONS.contains(&reason.text()) {
        errors.not_supported(&reason, &REASONS);
    }
}

fn check_audits(audits: &At<'_>, policy: &str, expressions: &Expressions, errors: &mut Errors) {
    if audits.len() > MAX_AUDITS {
        let detail = format!("must not have more than {MAX_AUDITS} auditAnnotations");
        let error = FieldError::invalid(&audits.path, Value::Null, detail);
        errors.push(error.printed(structs::of_type("[]admissionregistration.AuditAnnotation", audits.value)));
    }
    let mut seen = BTreeSet::new();
    for audit in audits.items() {
        let key = audit.get("key");
        let qualified = format!("{policy}/{}", key.text());
        for wrong in text::label_key(&qualified) {
            errors.invalid_as(&key, qualified.clone(), wrong);
        }
        expressions.audit(&audit.get("valueExpression"), errors);
        if !seen.insert(key.text()) {
            errors.duplicate(&key);
        }
    }
}

fn check_mutating(policy: &Value, old: Option<&Value>) -> Vec<FieldError> {
    Errors::of(|errors| {
        let spec = At::root(policy).get("spec");
        let expressions = check_common(&spec, old, true, errors);
        let mutations = spec.get("mutations");
        if mutations.is_empty() {
            errors.required(&mutations, "mutations must contain at least one item");
        }
        for mutation in mutations.items() {
            check_mutation(&mutation, &expressions, errors);
        }
        errors.need_one_of(&spec.get("reinvocationPolicy"), &["IfNeeded", "Never"]);
    })
}

fn check_mutation(mutation: &At<'_>, expressions: &Expressions, errors: &mut Errors) {
    let form = mutation.get("patchType");
    let (field, other, returns) = match form.text() {
        "" => return errors.required(&form, ""),
        "JSONPatch" => ("jsonPatch", "applyConfiguration", Returns::json_patch()),
        "ApplyConfiguration" => ("applyConfiguration", "jsonPatch", Returns::apply_configuration()),
        _ => return errors.not_supported(&form, &["ApplyConfiguration", "JSONPatch"]),
    };
    let given = mutation.get(field);
    if given.is_set() {
        expressions.mutation(&given.get("expression"), &returns, errors);
    } else {
        errors.required(&given, &format!("must be specified when patchType is {}", form.text()));
    }
    let unwanted = mutation.get(other);
    if unwanted.is_set() {
        let why = format!("must not be specified when patchType is {}", form.text());
        errors.invalid_as(&unwanted, format!("{{{other}}}"), why);
    }
}
