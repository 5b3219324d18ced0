//! When a job gives up or has succeeded: `podFailurePolicy` and `successPolicy`.

use std::collections::BTreeSet;

use kubewright_meta::FieldError;
use serde_json::Value;

use super::super::at::At;
use super::super::errors::Errors;
use super::super::{fill, structs, text};

const ACTIONS: [&str; 4] = ["Count", "FailIndex", "FailJob", "Ignore"];
const STATUSES: [&str; 3] = ["False", "True", "Unknown"];
const OPERATORS: [&str; 2] = ["In", "NotIn"];
/// How many rules, exit codes and patterns there may be.
const RULES: usize = 20;
const CODES: usize = 255;
/// How long the text of indexes may be.
const INDEXES: usize = 64 * 1024;

/// Fills in what patterns leave out.
pub(super) fn default(spec: &mut Value) {
    if let Some(policy) = fill::present(spec, "podFailurePolicy") {
        fill::each(policy, "rules", |rule| {
            fill::each(rule, "onPodConditions", |pattern| fill::blank(pattern, "status", "True"));
        });
    }
}

/// Checks both policies.
pub(super) fn check(spec: &At<'_>, errors: &mut Errors) {
    let rules = spec.dig(&["podFailurePolicy", "rules"]);
    check_count(&rules, RULES, errors);
    for rule in rules.items() {
        check_rule(&rule, spec, errors);
    }
    let success = spec.get("successPolicy");
    if success.is_set() {
        if spec.get("completionMode").text() == "Indexed" {
            check_success(&success, spec, errors);
        } else {
            let error = FieldError::invalid(&success.path, Value::Null, "requires indexed completion mode");
            errors.push(error.printed(structs::of_type("batch.SuccessPolicy", success.value)));
        }
    }
}

fn check_count(list: &At<'_>, limit: usize, errors: &mut Errors) {
    if list.len() > limit {
        errors.too_many(list, list.len(), limit);
    }
}

fn needed(at: &At<'_>, allowed: &[&str], errors: &mut Errors) {
    if at.is_empty() {
        let listed: Vec<String> = allowed.iter().map(|value| format!("{value:?}")).collect();
        errors.required(at, &format!("valid values: [{}]", listed.join(" ")));
    } else {
        errors.one_of(at, allowed);
    }
}

fn check_rule(rule: &At<'_>, spec: &At<'_>, errors: &mut Errors) {
    let action = rule.get("action");
    needed(&action, &ACTIONS, errors);
    if action.text() == "FailIndex" && !spec.get("backoffLimitPerIndex").is_set() {
        errors.invalid(&action, "requires the backoffLimitPerIndex to be set");
    }
    let (codes, patterns) = (rule.get("onExitCodes"), rule.get("onPodConditions"));
    if codes.is_set() {
        check_codes(&codes, spec, errors);
    }
    check_count(&patterns, RULES, errors);
    for pattern in patterns.items() {
        errors.text(&pattern.get("type"), text::label_key);
        needed(&pattern.get("status"), &STATUSES, errors);
    }
    let detail = match (codes.is_set(), !patterns.is_empty()) {
        (true, true) => "specifying both OnExitCodes and OnPodConditions is not supported",
        (false, false) => "specifying one of OnExitCodes and OnPodConditions is required",
        _ => return,
    };
    errors.push(FieldError::omitted(&rule.path, detail));
}

fn check_codes(codes: &At<'_>, spec: &At<'_>, errors: &mut Errors) {
    let operator = codes.get("operator");
    needed(&operator, &OPERATORS, errors);
    let container = codes.get("containerName");
    let pod = spec.dig(&["template", "spec"]);
    let known = ["containers", "initContainers"]
        .iter()
        .flat_map(|list| pod.get(list).items())
        .any(|one| one.get("name").text() == container.text());
    if container.is_set() && !known {
        errors.invalid(&container, "must be one of the container or initContainer names in the pod template");
    }
    let values = codes.get("values");
    if values.is_empty() {
        errors.invalid(&values, "at least one value is required");
    }
    check_count(&values, CODES, errors);
    let mut codes: Vec<i64> = Vec::new();
    let mut seen = BTreeSet::new();
    for value in values.items() {
        let code = value.number().unwrap_or_default();
        if operator.text() == "In" && code == 0 {
            errors.invalid(&value, "must not be 0 for the In operator");
        }
        if !seen.insert(code) {
            errors.duplicate(&value);
        }
        codes.push(code);
    }
    if !codes.is_sorted() {
        errors.invalid(&values, "must be ordered");
    }
}

/// How many indexes a text such as `1,3-5` names (`validateIndexesFormat`).
fn count_indexes(text: &str, completions: i64) -> Result<i64, String> {
    let (mut last, mut total) = (None, 0);
    for part in text.split(',').filter(|_| !text.is_empty()) {
        let limits: Vec<&str> = part.split('-').collect();
        let number = |at: &str| {
            let number: i64 =
                at.parse().map_err(|_| format!("cannot convert string to integer for index: {at:?}"))?;
            if number >= completions { Err(format!("too large index: {at:?}")) } else { Ok(number) }
        };
        let falling = |previous: i64, current: i64| {
            Err(format!("non-increasing order, previous: {previous}, current: {current}"))
        };
        let (first, end) = match limits.as_slice() {
            [one] => (number(one)?, number(one)?),
            [first, end] => {
                let (first, end) = (number(first)?, number(end)?);
                if first >= end {
                    return falling(first, end);
                }
                (first, end)
            }
            _ => {
                return Err(format!(
                    "the fragment {part:?} violates the requirement that an index interval can have at most two parts separated by '-'"
                ));
            }
        };
        if let Some(last) = last.filter(|last| *last >= first) {
            return falling(last, first);
        }
        total += end - first + 1;
        last = Some(end);
    }
    Ok(total)
}

fn check_success(policy: &At<'_>, spec: &At<'_>, errors: &mut Errors) {
    let rules = policy.get("rules");
    if rules.is_empty() {
        errors.required(&rules, "at least one rules must be specified when the successPolicy is specified");
    }
    check_count(&rules, RULES, errors);
    let completions = spec.get("completions").number().unwrap_or_default();
    for rule in rules.items() {
        let (count, indexes) = (rule.get("succeededCount"), rule.get("succeededIndexes"));
        if !count.is_set() && !indexes.is_set() {
            errors.required(&rule, "at least one of succeededCount or succeededIndexes must be specified");
        }
        let mut total = 0;
        if indexes.text().len() > INDEXES {
            errors.push(FieldError::too_long(&indexes.path, INDEXES));
        }
        match count_indexes(indexes.text(), completions) {
            Ok(found) => total = found,
            Err(why) => errors.invalid(&indexes, format!("error parsing succeededIndexes: {why}")),
        }
        errors.non_negative(&count);
        if count.number().is_some_and(|count| count > completions) {
            let detail =
                format!("must be less than or equal to {completions} (the number of specified completions)");
            errors.invalid(&count, detail);
        }
        if indexes.is_set() && count.number().is_some_and(|count| count > total) {
            let detail = format!(
                "must be less than or equal to {total} (the number of indexes in the specified succeededIndexes field)"
            );
            errors.invalid(&count, detail);
        }
    }
}
