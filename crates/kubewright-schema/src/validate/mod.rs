//! Validation of objects against their schema.

mod check;
mod embedded;
mod former;
mod lists;
mod logic;
mod number;

use kubewright_meta::FieldError;
use kubewright_spec::Version;
use serde_json::Value;

use super::node::Node;

pub use check::value_at;
pub use embedded::check as embedded_at;
pub(super) use former::{Former, FormerElements, Keyed};

/// What is wrong with the values of a custom resource. On an update, what was wrong before and is unchanged is let pass.
pub fn values(version: Version, root: &Node, object: &Value, old: Option<&Value>) -> Vec<FieldError> {
    check::value(version, root, object, old.map(|old| Former::of(root, old)), "")
}

/// What is wrong with the status of a custom resource, when only that is written
/// (`pkg/registry/customresource/validator.go`, `ValidateStatusUpdate`).
pub fn status(version: Version, root: &Node, object: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let (Some(node), Some(status)) = (root.properties.get("status"), object.get("status")) else {
        return Vec::new();
    };
    let old = old.and_then(|old| Former::of(root, old).field("status"));
    check::value(version, node, status, old, "status")
}

/// What is wrong with embedded resources.
pub fn embedded(root: &Node, object: &Value) -> Vec<FieldError> {
    embedded::check(root, object, "")
}

/// The elements that stand twice in their list, unless some did so before.
pub fn duplicates(root: &Node, object: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let found = lists::check(root, object, "");
    if !found.is_empty() && old.is_some_and(|old| !lists::check(root, old, "").is_empty()) {
        return Vec::new();
    }
    found
}

/// A path and the name of a field in it.
fn child(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

#[cfg(test)]
mod tests;
