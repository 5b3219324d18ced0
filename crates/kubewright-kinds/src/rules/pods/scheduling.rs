//! Where a pod may run: affinity, tolerations, spreading.

use std::collections::{BTreeMap, BTreeSet};

use kubewright_meta::FieldError;

use super::super::at::At;
use super::super::errors::Errors;
use super::super::{selector, text};

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

/// `affinity` (`validateAffinity`).
pub(super) fn check_affinity(affinity: &At<'_>, errors: &mut Errors) {
    let node = affinity.get("nodeAffinity");
    let required = node.get(REQUIRED);
    if required.is_set() {
        check_node_selector(&required, errors);
    }
    for term in node.get(PREFERRED).items() {
        check_weight(&term, errors);
        check_node_term(&term.get("preference"), false, errors);
    }
    for kind in ["podAffinity", "podAntiAffinity"] {
        let pods = affinity.get(kind);
        for term in pods.get(REQUIRED).items() {
            check_pod_term(&term, errors);
        }
        for term in pods.get(PREFERRED).items() {
            check_weight(&term, errors);
            check_pod_term(&term.get("podAffinityTerm"), errors);
        }
    }
}

fn check_weight(term: &At<'_>, errors: &mut Errors) {
    let weight = term.get("weight");
    let number = weight.number().unwrap_or_default();
    if !(1..=100).contains(&number) {
        errors.invalid_as(&weight, number, "must be in the range 1-100");
    }
}

/// A selector of nodes (`ValidateNodeSelector`).
pub(crate) fn check_node_selector(selector: &At<'_>, errors: &mut Errors) {
    let terms = selector.get("nodeSelectorTerms");
    if terms.is_empty() {
        errors.required(&terms, "must have at least one node selector term");
    }
    for term in terms.items() {
        check_node_term(&term, true, errors);
    }
}

fn check_node_term(term: &At<'_>, check_values: bool, errors: &mut Errors) {
    for requirement in term.get("matchExpressions").items() {
        let values = requirement.get("values");
        match requirement.get("operator").text() {
            "In" | "NotIn" if values.is_empty() => {
                errors.required(&values, "must be specified when `operator` is 'In' or 'NotIn'");
            }
            "Exists" | "DoesNotExist" if !values.is_empty() => {
                errors
                    .forbidden(&values, "may not be specified when `operator` is 'Exists' or 'DoesNotExist'");
            }
            "Gt" | "Lt" if values.len() != 1 => {
                errors.required(&values, "must be specified single value when `operator` is 'Lt' or 'Gt'");
            }
            "In" | "NotIn" | "Exists" | "DoesNotExist" | "Gt" | "Lt" => {}
            _ => errors.invalid_text(&requirement.get("operator"), "not a valid selector operator"),
        }
        errors.text(&requirement.get("key"), text::label_key);
        for value in values.items().filter(|_| check_values) {
            errors.text(&value, text::label_value);
        }
    }
    for requirement in term.get("matchFields").items() {
        check_field_requirement(&requirement, errors);
    }
}

fn check_field_requirement(requirement: &At<'_>, errors: &mut Errors) {
    let (key, values) = (requirement.get("key"), requirement.get("values"));
    match requirement.get("operator").text() {
        "In" | "NotIn" if values.len() != 1 => {
            errors.required(
                &values,
                "must be only one value when `operator` is 'In' or 'NotIn' for node field selector",
            );
        }
        "In" | "NotIn" => {}
        _ => errors.invalid_text(&requirement.get("operator"), "not a valid selector operator"),
    }
    if key.text() == "metadata.name" {
        for value in values.items() {
            errors.text(&value, text::subdomain);
        }
    } else {
        errors.invalid_text(&key, "not a valid field selector key");
    }
}

fn check_pod_term(term: &At<'_>, errors: &mut Errors) {
    selector::check(&term.get("labelSelector"), errors);
    selector::check(&term.get("namespaceSelector"), errors);
    for name in term.get("namespaces").items() {
        errors.text(&At { path: format!("{}.namespace", term.path), ..name }, text::label);
    }
    check_label_keys(term, errors);
    let key = term.get("topologyKey");
    if key.is_empty() {
        errors.required(&key, "can not be empty");
    }
    errors.text(&key, text::label_key);
}

/// `matchLabelKeys` and `mismatchLabelKeys` (`ValidateMatchLabelKeysAndMismatchLabelKeys`).
fn check_label_keys(term: &At<'_>, errors: &mut Errors) {
    let (matching, mismatching) = (term.get("matchLabelKeys"), term.get("mismatchLabelKeys"));
    for keys in [&matching, &mismatching] {
        if !keys.is_empty() && !term.get("labelSelector").is_set() {
            errors.forbidden(keys, "must not be specified when labelSelector is not set");
            continue;
        }
        for key in keys.items() {
            errors.text(&key, text::label_key);
        }
    }
    let excluded: BTreeSet<&str> = mismatching.items().map(|key| key.text()).collect();
    for key in matching.items() {
        if excluded.contains(key.text()) {
            errors.invalid(&key, "exists in both matchLabelKeys and mismatchLabelKeys");
        }
    }
}

/// `tolerations` (`ValidateTolerations`).
pub(crate) fn check_tolerations(tolerations: &At<'_>, errors: &mut Errors) {
    for toleration in tolerations.items() {
        let field = |name: &str| toleration.get(name);
        let (key, operator, value, effect) =
            (field("key"), field("operator"), field("value"), field("effect"));
        errors.maybe_text(&key, text::label_key);
        if key.is_empty() && operator.text() != "Exists" {
            let detail =
                "operator must be Exists when `key` is empty, which means \"match all values and all keys\"";
            errors.invalid_text(&operator, detail);
        }
        if field("tolerationSeconds").is_set() && effect.text() != "NoExecute" {
            errors.invalid_text(&effect, "effect must be 'NoExecute' when `tolerationSeconds` is set");
        }
        match operator.text() {
            "" | "Equal" => {
                let wrong = text::label_value(value.text());
                if !wrong.is_empty() {
                    errors.invalid_as(&operator, value.text(), wrong.join(";"));
                }
            }
            "Exists" if value.is_empty() => {}
            "Exists" => {
                errors.invalid_as(&operator, value.text(), "value must be empty when `operator` is 'Exists'");
            }
            "Lt" | "Gt" => errors.not_supported(&operator, &["Equal", "Exists", "Lt", "Gt"]),
            _ => errors.not_supported(&operator, &["Equal", "Exists"]),
        }
        if !effect.is_empty() {
            errors.one_of(&effect, &EFFECTS);
        }
    }
}

/// The effects of taints.
pub(crate) const EFFECTS: [&str; 3] = ["NoSchedule", "PreferNoSchedule", "NoExecute"];

/// `topologySpreadConstraints` (`validateTopologySpreadConstraints`).
pub(super) fn check_spread(constraints: &At<'_>, errors: &mut Errors) {
    let pair = |constraint: &At<'_>| {
        (
            constraint.get("topologyKey").text().to_owned(),
            constraint.get("whenUnsatisfiable").text().to_owned(),
        )
    };
    let pairs: Vec<(String, String)> = constraints.items().map(|constraint| pair(&constraint)).collect();
    let last: BTreeMap<&(String, String), usize> =
        pairs.iter().enumerate().map(|(index, pair)| (pair, index)).collect();
    for (index, constraint) in constraints.items().enumerate() {
        let (skew, action) = (constraint.get("maxSkew"), constraint.get("whenUnsatisfiable"));
        let number = skew.number().unwrap_or_default();
        if number <= 0 {
            errors.invalid_as(&skew, number, "must be greater than zero");
        }
        let key = constraint.get("topologyKey");
        if key.is_empty() {
            errors.required(&key, "can not be empty");
        }
        errors.one_of(&action, &["DoNotSchedule", "ScheduleAnyway"]);
        if last.get(&pairs[index]).is_some_and(|last| *last > index) {
            let path = format!("{}.{{topologyKey, whenUnsatisfiable}}", constraint.path);
            errors.push(FieldError::duplicate(path, format!("{{{}, {}}}", pairs[index].0, pairs[index].1)));
        }
        let domains = constraint.get("minDomains");
        if domains.number().is_some_and(|domains| domains <= 0) {
            errors.invalid(&domains, "must be greater than zero");
        }
        if domains.is_set() && action.text() != "DoNotSchedule" {
            let detail =
                format!("can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {}", action.text());
            errors.invalid(&domains, detail);
        }
        for policy in ["nodeAffinityPolicy", "nodeTaintsPolicy"] {
            errors.maybe_one_of(&constraint.get(policy), &["Honor", "Ignore"]);
        }
        check_label_keys(&constraint, errors);
        selector::check(&constraint.get("labelSelector"), errors);
    }
}
