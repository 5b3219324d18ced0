//! The parameters of operations.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use kubewright_spec::Version;
use serde_json::{Value, json};

/// The parameters of lists.
pub(super) const LIST: &[&str] = &[
    "allowWatchBookmarks",
    "continue",
    "fieldSelector",
    "labelSelector",
    "limit",
    "resourceVersion",
    "resourceVersionMatch",
    "sendInitialEvents",
    "shardSelector",
    "timeoutSeconds",
    "watch",
];
/// Which of them a deletion of many has, of built-in kinds, beside those of a deletion.
pub(super) const LIST_TO_DELETE: &[&str] = &[
    "continue",
    "fieldSelector",
    "labelSelector",
    "limit",
    "resourceVersion",
    "resourceVersionMatch",
    "sendInitialEvents",
    "shardSelector",
    "timeoutSeconds",
];
/// The parameters of a deletion.
pub(super) const DELETE: &[&str] = &[
    "dryRun",
    "gracePeriodSeconds",
    "ignoreStoreReadErrorWithClusterBreakingPotential",
    "orphanDependents",
    "propagationPolicy",
];
/// The parameters of a write.
pub(super) const WRITE: &[&str] = &["dryRun", "fieldManager", "fieldValidation"];
/// The parameters of a patch.
pub(super) const PATCH: &[&str] = &["dryRun", "fieldManager@patch", "fieldValidation", "force"];
/// The parameter of who reads one object of a custom kind.
pub(super) const READ: &[&str] = &["resourceVersion"];
/// The parameter of all operations.
pub(super) const ALL: &[&str] = &["pretty"];

/// The parameters that are told of, by their names in the table: type and description.
fn table() -> &'static BTreeMap<&'static str, (&'static str, String)> {
    static TABLE: OnceLock<BTreeMap<&str, (&str, String)>> = OnceLock::new();
    TABLE.get_or_init(|| {
        let lines = include_str!("parameters.txt").lines().filter(|line| !line.starts_with('#'));
        let read = |line: &'static str| {
            let (name, rest) = line.split_once(' ')?;
            let (kind, description) = rest.split_once(' ')?;
            Some((name, (kind, serde_json::from_str(description).ok()?)))
        };
        lines.filter_map(read).collect()
    })
}

/// Query parameters as OpenAPI has them.
pub(super) fn queries<'a>(version: Version, names: impl IntoIterator<Item = &'a &'a str>) -> Vec<Value> {
    let is_there = |name: &&&str| **name != "shardSelector" || version >= Version::V1_36;
    let made = names.into_iter().filter(is_there).filter_map(|name| {
        let (kind, description) = table().get(name)?;
        let name = name.split('@').next();
        let schema = json!({"type": kind, "uniqueItems": true});
        Some(json!({"name": name, "in": "query", "description": description, "schema": schema}))
    });
    made.collect()
}

/// The variables of a path, which leads to objects of this kind.
pub(super) fn of_path(path: &str, kind: &str) -> Vec<Value> {
    let variables = [
        ("name", format!("name of the {kind}")),
        ("namespace", "object name and auth scope, such as for teams and projects".to_owned()),
    ];
    let in_path = variables.into_iter().filter(|(name, _)| path.contains(&format!("{{{name}}}")));
    in_path
        .map(|(name, description)| {
            let schema = json!({"type": "string", "uniqueItems": true});
            json!({"name": name, "in": "path", "description": description, "required": true, "schema": schema})
        })
        .collect()
}

/// Puts parameters in the order of their names.
pub(super) fn sort(parameters: &mut [Value]) {
    parameters.sort_by(|one, other| one["name"].as_str().cmp(&other["name"].as_str()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_parameter_is_in_the_table() {
        for names in [LIST, LIST_TO_DELETE, DELETE, WRITE, PATCH, READ, ALL] {
            assert_eq!(queries(Version::V1_36, names).len(), names.len());
        }
        assert_eq!(queries(Version::V1_35, LIST).len(), LIST.len() - 1, "there are no shards before v1.36");
        assert_eq!(queries(Version::V1_36, PATCH)[1]["name"], "fieldManager");
    }
}
