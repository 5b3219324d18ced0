//! Label selectors as objects (`matchLabels`, `matchExpressions`): their validation
//! (`apimachinery/pkg/apis/meta/v1/validation`) and whether they match labels.

use serde_json::Value;

use super::at::At;
use super::errors::Errors;
use crate::FieldError;
use crate::selector::LabelSelector;
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

/// Whether a selector selects an object with these labels. `None` of one that cannot be used, of which Kubernetes' rules leave it to
/// others to say so (`LabelSelectorAsSelector`).
pub fn selects(selector: &At<'_>, labels: &Value) -> Option<bool> {
    let selector = LabelSelector::from_object(selector.value).ok()?;
    Some(selector.matches_by(|key| labels.get(key).and_then(Value::as_str)))
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

    /// What `LabelSelectorAsSelector` makes of a selector, asked for the labels `app=web,tier=front`.
    #[test]
    fn a_selector_selects_what_its_expressions_say() {
        let labels = json!({"app": "web", "tier": "front"});
        let selected = |selector: &Value| selects(&At::named("spec.selector", selector), &labels);
        let one = |key: &str, operator: &str, values: Value| {
            selected(&json!({"matchExpressions": [{"key": key, "operator": operator, "values": values}]}))
        };
        for (selector, expected) in [
            (Value::Null, Some(false)),
            (json!({}), Some(true)),
            (json!({"matchLabels": {"app": "web"}}), Some(true)),
            (json!({"matchLabels": {"app": "db"}}), Some(false)),
            (json!({"matchLabels": {"none": ""}}), Some(false)),
            (json!({"matchLabels": {"app": "not a label"}}), None),
            (json!({"matchLabels": {"not a key": "web"}}), None),
        ] {
            assert_eq!(selected(&selector), expected, "{selector}");
        }
        for (key, operator, values, expected) in [
            ("app", "In", json!(["db", "web"]), Some(true)),
            ("app", "In", json!(["db"]), Some(false)),
            ("app", "In", json!([]), None),
            ("none", "In", json!(["web"]), Some(false)),
            ("app", "NotIn", json!(["web"]), Some(false)),
            ("none", "NotIn", json!(["web"]), Some(true)),
            ("none", "NotIn", json!([]), None),
            ("tier", "Exists", json!([]), Some(true)),
            ("tier", "Exists", json!(["x"]), None),
            ("none", "Exists", json!([]), Some(false)),
            ("none", "DoesNotExist", json!([]), Some(true)),
            ("tier", "DoesNotExist", json!([]), Some(false)),
            ("tier", "Like", json!([]), None),
        ] {
            assert_eq!(one(key, operator, values.clone()), expected, "{key} {operator} {values}");
        }
    }
}
