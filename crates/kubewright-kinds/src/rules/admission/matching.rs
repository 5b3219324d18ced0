//! Which requests a webhook or policy sees: rules, selectors, conditions.

use std::collections::BTreeSet;

use serde_json::Value;

use super::super::at::At;
use super::super::errors::Errors;
use super::super::{fill, selector, text};
use super::expressions::Expressions;

const OPERATIONS: [&str; 5] = ["*", "CONNECT", "CREATE", "DELETE", "UPDATE"];
/// The operations that can be mutated.
const MUTABLE: [&str; 4] = ["*", "CONNECT", "CREATE", "UPDATE"];
/// The words of `matchPolicy`.
pub(super) const POLICIES: [&str; 2] = ["Equivalent", "Exact"];

/// The defaults of selectors and match policy, where there is one of each.
pub(super) fn default(parent: &mut Value) {
    fill::absent(parent, "matchPolicy", "Equivalent");
    fill::object(parent, "namespaceSelector");
    fill::object(parent, "objectSelector");
}

/// The defaults of the rules at `key`.
pub(super) fn default_rules(parent: &mut Value, key: &str) {
    fill::each(parent, key, |rule| fill::absent(rule, "scope", "*"));
}

/// The defaults of `matchConstraints` and `matchResources`.
pub(super) fn default_constraints(constraints: &mut Value) {
    default(constraints);
    default_rules(constraints, "resourceRules");
    default_rules(constraints, "excludeResourceRules");
}

/// `matchConstraints` and `matchResources` (`validateMatchResources`).
pub(super) fn check_constraints(constraints: &At<'_>, errors: &mut Errors) {
    errors.one_of(&constraints.get("matchPolicy"), &POLICIES);
    for field in ["namespaceSelector", "objectSelector"] {
        let given = constraints.get(field);
        if given.is_set() {
            selector::check(&given, errors);
        } else {
            errors.required(&given, "");
        }
    }
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
        check_rule(&rule, errors);
    }
}

/// What is deleted cannot be mutated.
pub(super) fn check_mutable(constraints: &At<'_>, errors: &mut Errors) {
    let place = constraints.get("resourceRules").get("operations").path;
    for rule in constraints.get("resourceRules").items() {
        for operation in rule.get("operations").items() {
            if !MUTABLE.contains(&operation.text()) {
                errors.not_supported(&At::named(place.clone(), operation.value), &MUTABLE);
            }
        }
    }
}

/// Both selectors.
pub(super) fn check_selectors(parent: &At<'_>, errors: &mut Errors) {
    for field in ["namespaceSelector", "objectSelector"] {
        selector::check(&parent.get(field), errors);
    }
}

/// One rule: operations, groups, versions, resources and scope (`validateRuleWithOperations`).
pub(super) fn check_rule(rule: &At<'_>, errors: &mut Errors) {
    let operations = rule.get("operations");
    check_wildcard(&operations, "operations", errors);
    for operation in operations.items() {
        errors.one_of(&operation, &OPERATIONS);
    }
    check_wildcard(&rule.get("apiGroups"), "API groups", errors);
    let versions = rule.get("apiVersions");
    check_wildcard(&versions, "API versions", errors);
    for version in versions.items() {
        errors.need(&version);
    }
    check_resources(&rule.get("resources"), errors);
    errors.maybe_one_of(&rule.get("scope"), &["*", "Cluster", "Namespaced"]);
}

fn check_wildcard(list: &At<'_>, what: &str, errors: &mut Errors) {
    errors.need(list);
    if list.len() > 1 && list.items().any(|item| item.text() == "*") {
        errors.invalid(list, format!("if '*' is present, must not specify other {what}"));
    }
}

fn check_resources(list: &At<'_>, errors: &mut Errors) {
    errors.need(list);
    let (mut all_below, mut below_all) = (BTreeSet::new(), BTreeSet::new());
    let mut plain = false;
    for item in list.items() {
        let name = item.text();
        if !errors.need(&item) {
            continue;
        }
        let Some((resource, sub)) = name.split_once('/') else {
            plain = name != "*";
            continue;
        };
        if all_below.contains(resource) {
            errors.invalid(&item, format!("if '{resource}/*' is present, must not specify {name}"));
        }
        if below_all.contains(sub) {
            errors.invalid(&item, format!("if '*/{sub}' is present, must not specify {name}"));
        }
        if sub == "*" {
            all_below.insert(resource);
        }
        if resource == "*" {
            below_all.insert(sub);
        }
    }
    let has = |wanted: &str| list.items().any(|item| item.text() == wanted);
    if list.len() > 1 && has("*/*") {
        errors.invalid(list, "if '*/*' is present, must not specify other resources");
    }
    if has("*") && plain {
        errors.invalid(list, "if '*' is present, must not specify other resources without subresources");
    }
}

/// `matchConditions`: good expressions, named, each name once, at most 64.
pub(super) fn check_conditions(list: &At<'_>, has_params: bool, errors: &mut Errors) {
    if list.len() > 64 {
        errors.too_many(list, list.len(), 64);
    }
    let mut names = BTreeSet::new();
    for condition in list.items() {
        let name = condition.get("name");
        Expressions::condition(has_params, &condition.get("expression"), errors);
        if errors.need(&name) {
            errors.text(&name, text::label_key);
            if !names.insert(name.text()) {
                errors.duplicate(&name);
            }
        }
    }
}
