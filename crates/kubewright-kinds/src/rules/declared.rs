//! Rules that Kubernetes declares by tags in its types (`+k8s:beta(since: "1.37")=+k8s:required`) and checks by itself from a version
//! on (`apiserver/pkg/registry/rest/validate.go`): what they find stands last, once for each field, and in their own words. What is found
//! is the same.

use kubewright_meta::{FieldError, Problem};
use serde_json::Value;

/// A rule that is declared: a field, with `[*]` for each place in a list, and what may be wrong with it. In the order of the fields
/// in their types.
pub(crate) type Declared = (&'static str, Mistake);

/// What a declared rule finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mistake {
    /// There is nothing.
    Required,
    /// It is no longer what it was.
    Immutable,
    /// It is no good: too small, too long, too many, none of those that there are, in another form.
    Other,
}

const IMMUTABLE: &str = "field is immutable";

/// Puts what declared rules find where these put it.
pub(super) fn put_last(declared: &[Declared], errors: &mut Vec<FieldError>) {
    let mut found: Vec<FieldError> = Vec::new();
    for (field, mistake) in declared {
        errors.retain(|error| {
            let is_it = is_at(&error.field, field) && is_of(error, *mistake);
            if is_it && let Some(told) = described(error, *mistake).filter(|told| !found.contains(told)) {
                found.push(told);
            }
            !is_it
        });
    }
    errors.append(&mut found);
}

/// Leaves the first of those that are the same.
pub(super) fn keep_first_of_each(errors: &mut Vec<FieldError>) {
    let mut told: Vec<FieldError> = Vec::new();
    for error in std::mem::take(errors) {
        if !told.contains(&error) {
            told.push(error);
        }
    }
    *errors = told;
}

/// Whether a path is that of a field.
fn is_at(path: &str, field: &str) -> bool {
    let mut parts = field.split("[*]");
    let Some(mut rest) = parts.next().and_then(|first| path.strip_prefix(first)) else { return false };
    for part in parts {
        let Some((place, behind)) = rest.strip_prefix('[').and_then(|rest| rest.split_once(']')) else {
            return false;
        };
        match behind.strip_prefix(part) {
            Some(behind) if place.bytes().all(|byte| byte.is_ascii_digit()) => rest = behind,
            _ => return false,
        }
    }
    rest.is_empty()
}

fn is_of(error: &FieldError, mistake: Mistake) -> bool {
    let is_required = matches!(error.problem, Problem::Required);
    let is_immutable = error.detail == IMMUTABLE
        || (matches!(error.problem, Problem::Forbidden) && error.detail.starts_with("updates to "));
    match mistake {
        Mistake::Required => is_required,
        Mistake::Immutable => is_immutable,
        Mistake::Other => !is_required && !is_immutable,
    }
}

fn described(error: &FieldError, mistake: Mistake) -> Option<FieldError> {
    Some(match mistake {
        Mistake::Required => FieldError::required(&error.field, ""),
        Mistake::Immutable => FieldError::invalid(&error.field, Value::Null, IMMUTABLE),
        Mistake::Other => error.clone(),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_declared_is_told_last_and_once() {
        let declared = [("rules[*].verbs", Mistake::Required), ("class", Mistake::Immutable)];
        let verbs = |at: u8| FieldError::required(format!("rules[{at}].verbs"), "at least one");
        let other = FieldError::required("rules[0].verbs[0]", "not this one");
        let class = FieldError::forbidden("class", "updates to class are forbidden.");
        let mut errors = vec![verbs(0), class, verbs(1), verbs(0), other.clone()];
        put_last(&declared, &mut errors);
        let required = |at: u8| FieldError::required(format!("rules[{at}].verbs"), "");
        let immutable = FieldError::invalid("class", json!(null), IMMUTABLE);
        assert_eq!(errors, [other, required(0), required(1), immutable]);
    }
}
