//! The types of Kubernetes v1.36 as JSON schemas, with the words that they are told by. They stand in `definitions.txt`, a line for
//! each type that a served kind is made of.
//!
//! They are what k8s-openapi's types say of themselves through schemars. That is code, which is ten times as large as what it
//! makes and would run once; a test compares.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde_json::Value;

const TABLE: &str = include_str!("definitions.txt");

/// The line of each type.
static LINES: LazyLock<BTreeMap<&'static str, &'static str>> =
    LazyLock::new(|| TABLE.lines().filter_map(|line| line.split_once(' ')).collect());

/// The schema of the type of that name.
pub(super) fn of(name: &str) -> Option<Value> {
    serde_json::from_str(LINES.get(name)?).ok()
}

#[cfg(test)]
mod tests;
