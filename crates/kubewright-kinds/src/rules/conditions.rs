//! Conditions in the form that all kinds may use, `metav1.Condition` (`ValidateConditions` of
//! `k8s.io/apimachinery/pkg/apis/meta/v1/validation/validation.go`).

use std::collections::BTreeSet;

use kubewright_meta::FieldError;
use kubewright_spec::Version;
use serde_json::Value;

use super::at::At;
use super::errors::Errors;
use super::{text, version};

const STATUSES: [&str; 3] = ["False", "True", "Unknown"];
const MAX_REASON: usize = 1024;
const MAX_MESSAGE: usize = 32 * 1024;
const REASON: &str = "a condition reason must start with alphabetic character, optionally followed by a string of alphanumeric characters or '_,:', and must end with an alphanumeric character or '_'";

/// Checks a list of conditions.
pub(super) fn check(conditions: &At<'_>, errors: &mut Errors) {
    let mut seen = BTreeSet::new();
    for condition in conditions.items() {
        let kind = condition.get("type");
        if !seen.insert(kind.text()) {
            // Up to v1.36 it is the type that is twice there.
            let at = if version::since(Version::V1_37) { &condition.path } else { &kind.path };
            errors.push(FieldError::duplicate(at, kind.text()));
        }
        if kind.is_empty() && version::since(Version::V1_37) {
            errors.required(&kind, "is required");
        } else {
            errors.text(&kind, text::label_key);
        }
        let status = condition.get("status");
        // Up to v1.36 a status that is not there is one that is not known.
        if !status.is_empty() || !version::since(Version::V1_37) || errors.need(&status) {
            errors.one_of(&status, &STATUSES);
        }
        let generation = condition.get("observedGeneration");
        if generation.number().is_some_and(|number| number < 0) {
            errors.invalid(&generation, "must be greater than or equal to zero");
        }
        errors.need(&condition.get("lastTransitionTime"));
        let reason = condition.get("reason");
        if errors.need(&reason) {
            if !is_reason(reason.text()) {
                let pattern = "[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?";
                let examples = ["my_name", "MY_NAME", "MyName", "ReasonA,ReasonB", "ReasonA:ReasonB"];
                errors.invalid(&reason, text::pattern(REASON, pattern, &examples));
            }
            if reason.text().len() > MAX_REASON {
                errors.push(FieldError::too_long(&reason.path, MAX_REASON));
            }
        }
        let message = condition.get("message");
        if message.text().len() > MAX_MESSAGE {
            errors.push(FieldError::too_long(&message.path, MAX_MESSAGE));
        }
    }
}

fn is_reason(text: &str) -> bool {
    let word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let bytes = text.as_bytes();
    bytes.first().is_some_and(u8::is_ascii_alphabetic)
        && bytes.last().is_some_and(|&last| word(last))
        && bytes.iter().all(|&byte| word(byte) || matches!(byte, b',' | b':'))
}

/// Whether the condition of a type is true.
pub(super) fn is_true(object: &At<'_>, kind: &str) -> bool {
    let conditions = object.dig(&["status", "conditions"]);
    let mut found = conditions.items().filter(|condition| condition.get("type").text() == kind);
    found.next().is_some_and(|condition| condition.get("status").text() == "True")
}

/// Conditions as errors show them: the fields in Go's order.
pub(super) fn printed(conditions: &At<'_>) -> String {
    if !conditions.is_set() {
        return "null".to_owned();
    }
    let one = |condition: At<'_>| {
        let text = |field: &str| Value::from(condition.get(field).text());
        let generation = condition.get("observedGeneration").number().filter(|number| *number != 0);
        let generation =
            generation.map_or(String::new(), |number| format!("\"observedGeneration\":{number},"));
        let time = condition.get("lastTransitionTime").value.clone();
        format!(
            "{{\"type\":{},\"status\":{},{generation}\"lastTransitionTime\":{time},\"reason\":{},\"message\":{}}}",
            text("type"),
            text("status"),
            text("reason"),
            text("message"),
        )
    };
    format!("[{}]", conditions.items().map(one).collect::<Vec<_>>().join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_that_is_not_there_is_not_supported_up_to_v1_36_and_required_after_it() {
        let conditions = serde_json::json!([
            {"type": "A", "status": "", "reason": "A", "lastTransitionTime": "2020-01-01T00:00:00Z"},
            {"type": "B", "status": "Maybe", "reason": "A", "lastTransitionTime": "2020-01-01T00:00:00Z"},
        ]);
        let said = |version| {
            let errors =
                version::judged_by(version, || Errors::of(|errors| check(&At::root(&conditions), errors)));
            errors.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        let unknown = "supported values: \"False\", \"True\", \"Unknown\"";
        let of_b = format!("[1].status: Unsupported value: \"Maybe\": {unknown}");
        let of_a = format!("[0].status: Unsupported value: \"\": {unknown}");
        assert_eq!(said(Version::V1_36), [of_a, of_b.clone()]);
        assert_eq!(said(Version::V1_37), ["[0].status: Required value".to_owned(), of_b]);
    }
}
