//! Label selectors as objects (`matchLabels`, `matchExpressions`): their validation
//! (`apimachinery/pkg/apis/meta/v1/validation`) and whether they match labels.

use serde_json::{Map, Value};

use super::at::At;
use super::errors::Errors;
use crate::FieldError;
use crate::text;

/// Checks a map of labels: its keys and values (`ValidateLabels`).
pub fn check_labels(labels: &At<'_>, errors: &mut Errors) {
    for (key, value) in labels.value.as_object().into_iter().flatten() {
        for message in text::label_key(key) {
            errors.invalid_as(labels, key.as_str(), message);
        }
        let value = value.as_str().unwrap_or_default();
        for message in text::label_value(value) {
            errors.invalid_as(labels, value, message);
        }
    }
}

/// Checks a label selector, when there is one (`ValidateLabelSelector`).
pub fn check(selector: &At<'_>, errors: &mut Errors) {
    check_labels(&selector.get("matchLabels"), errors);
    for requirement in selector.get("matchExpressions").items() {
        let values = requirement.get("values");
        match requirement.get("operator").text() {
            "In" | "NotIn" if values.is_empty() => {
                errors.required(&values, "must be specified when `operator` is 'In' or 'NotIn'");
            }
            "Exists" | "DoesNotExist" if !values.is_empty() => {
                errors
                    .forbidden(&values, "may not be specified when `operator` is 'Exists' or 'DoesNotExist'");
            }
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            _ => errors.invalid_text(&requirement.get("operator"), "not a valid selector operator"),
        }
        errors.text(&requirement.get("key"), text::label_key);
        for value in values.items() {
            errors.text(&value, text::label_value);
        }
    }
}

/// Whether a selector can be used: nothing is wrong with its expressions and labels (`LabelSelectorAsSelector`).
pub fn is_usable(selector: &At<'_>) -> bool {
    let mut errors = Errors::default();
    check(&At { path: String::new(), ..selector.clone() }, &mut errors);
    errors.count() == 0
}

/// `Invalid value`, of a selector as Go prints it.
pub fn invalid(selector: &At<'_>, detail: impl Into<String>, errors: &mut Errors) {
    errors.push(FieldError::invalid(&selector.path, Value::Null, detail).printed(printed(selector)));
}

/// A selector that may not change.
pub fn immutable(new: &At<'_>, old: &At<'_>, errors: &mut Errors) {
    if !new.same(old) {
        let error = FieldError::invalid(&new.path, Value::Null, super::errors::IMMUTABLE);
        errors.push(if new.is_set() { error.printed(printed(new)) } else { error });
    }
}

/// A selector as Go prints it: its fields in their own order.
fn printed(selector: &At<'_>) -> String {
    let (labels, expressions) = (selector.get("matchLabels"), selector.get("matchExpressions"));
    let text = |at: &At<'_>| Value::from(at.text()).to_string();
    let mut parts = Vec::new();
    if !labels.is_empty() {
        parts.push(format!("\"matchLabels\":{}", labels.value));
    }
    if !expressions.is_empty() {
        let all: Vec<String> = expressions
            .items()
            .map(|one| {
                let values = one.get("values");
                let values =
                    if values.is_empty() { String::new() } else { format!(",\"values\":{}", values.value) };
                format!(
                    "{{\"key\":{},\"operator\":{}{values}}}",
                    text(&one.get("key")),
                    text(&one.get("operator"))
                )
            })
            .collect();
        parts.push(format!("\"matchExpressions\":[{}]", all.join(",")));
    }
    format!("{{{}}}", parts.join(","))
}

/// Whether a selector asks for nothing, and so matches everything.
pub fn is_everything(selector: &At<'_>) -> bool {
    selector.get("matchLabels").is_empty() && selector.get("matchExpressions").is_empty()
}

/// Whether a selector matches these labels. A selector with an unknown operator matches nothing.
pub fn matches(selector: &Value, labels: &Value) -> bool {
    let none = Map::new();
    let labels = labels.as_object().unwrap_or(&none);
    let wanted = selector.get("matchLabels").and_then(Value::as_object).unwrap_or(&none);
    let expressions =
        selector.get("matchExpressions").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    wanted.iter().all(|(key, value)| labels.get(key) == Some(value))
        && expressions.iter().all(|expression| holds(expression, labels))
}

fn holds(expression: &Value, labels: &Map<String, Value>) -> bool {
    let expression = At::root(expression);
    let has = labels.get(expression.get("key").text());
    let listed = || has.is_some_and(|value| expression.get("values").items().any(|item| item.value == value));
    match expression.get("operator").text() {
        "In" => listed(),
        "NotIn" => !listed(),
        "Exists" => has.is_some(),
        "DoesNotExist" => has.is_none(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn found(selector: &Value) -> Vec<String> {
        Errors::of(|errors| check(&At::named("spec.selector", selector), errors))
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    #[test]
    fn a_good_selector_passes() {
        let good = json!({"matchLabels": {"a": "b"}, "matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]});
        assert!(found(&good).is_empty());
        assert!(found(&Value::Null).is_empty());
    }

    #[test]
    fn each_operator_asks_for_its_values() {
        let of = |operator: &str, values: Value| {
            found(&json!({"matchExpressions": [{"key": "a", "operator": operator, "values": values}]}))
        };
        let at = "spec.selector.matchExpressions[0]";
        assert_eq!(
            of("In", json!([])),
            [format!("{at}.values: Required value: must be specified when `operator` is 'In' or 'NotIn'")]
        );
        assert_eq!(
            of("Exists", json!(["x"])),
            [format!(
                "{at}.values: Forbidden: may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            )]
        );
        assert_eq!(
            of("Like", json!(["x"])),
            [format!("{at}.operator: Invalid value: \"Like\": not a valid selector operator")]
        );
    }

    #[test]
    fn a_selector_matches_what_its_expressions_say() {
        let labels = json!({"app": "web", "tier": "front"});
        let of = |key: &str, operator: &str, values: Value| {
            matches(
                &json!({"matchExpressions": [{"key": key, "operator": operator, "values": values}]}),
                &labels,
            )
        };
        assert!(matches(&json!({"matchLabels": {"app": "web"}}), &labels));
        assert!(!matches(&json!({"matchLabels": {"app": "db"}}), &labels));
        assert!(of("app", "In", json!(["db", "web"])) && !of("app", "NotIn", json!(["web"])));
        assert!(of("none", "NotIn", json!(["web"])) && of("none", "DoesNotExist", json!([])));
        assert!(of("tier", "Exists", json!([])) && !of("tier", "Like", json!([])));
    }
}
