//! Validation of objects against their schema.

mod built_in;
mod check;
mod embedded;
mod lists;
mod logic;
mod number;

use serde_json::Value;

use super::node::Node;
use crate::field::FieldError;

pub(super) use built_in::enumerations;
pub(super) use check::value_at;
pub(super) use embedded::check as embedded_at;

/// What is wrong with a custom resource, in the order of kube-apiserver (`pkg/registry/customresource/strategy.go`):
/// values, embedded resources, lists. On an update, what was wrong before and is unchanged is let pass.
pub(super) fn custom(root: &Node, object: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut errors = check::object(root, object, old);
    errors.extend(embedded::check(root, object, ""));
    let was_fine = old.is_none_or(|old| lists::check(root, old, "").is_empty());
    if was_fine {
        errors.extend(lists::check(root, object, ""));
    }
    errors
}

/// A path and the name of a field in it.
fn child(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

#[cfg(test)]
mod tests;
