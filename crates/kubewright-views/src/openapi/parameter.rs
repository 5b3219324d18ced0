//! The parameters of operations.

use serde_json::{Value, json};

/// A query parameter: its name and JSON type, and what it does.
type Query = (&'static str, &'static str, &'static str);

const DRY_RUN: Query =
    ("dryRun", "string", "`All` goes through all stages of the request and stores nothing.");
const FIELD_MANAGER: Query = ("fieldManager", "string", "The name of who makes the change.");
const FIELD_VALIDATION: Query = (
    "fieldValidation",
    "string",
    "What becomes of unknown and duplicate fields: `Ignore` drops them, `Warn` (the default) drops them with a warning, `Strict` refuses the request.",
);
const PRETTY: Query = ("pretty", "string", "`true` formats the answer for people.");

/// The parameters of a write.
pub(super) const WRITE: &[Query] = &[DRY_RUN, FIELD_MANAGER, FIELD_VALIDATION];

/// The parameters of a deletion.
pub(super) const DELETE: &[Query] = &[
    DRY_RUN,
    ("gracePeriodSeconds", "integer", "How long the object may take to end."),
    ("propagationPolicy", "string", "What becomes of dependents: `Orphan`, `Background` or `Foreground`."),
];

/// The parameters of a list.
pub(super) const LIST: &[Query] = &[
    ("allowWatchBookmarks", "boolean", "A watch may send bookmarks."),
    ("continue", "string", "Goes on with a list after its last part."),
    ("fieldSelector", "string", "Only objects with these fields."),
    ("labelSelector", "string", "Only objects with these labels."),
    ("limit", "integer", "The most objects in one part of the list."),
    ("resourceVersion", "string", "The version of the list, or the one after which a watch begins."),
    ("resourceVersionMatch", "string", "How `resourceVersion` is meant: `Exact` or `NotOlderThan`."),
    ("sendInitialEvents", "boolean", "A watch begins with the objects that are there."),
    ("timeoutSeconds", "integer", "How long the list or watch may last."),
    ("watch", "boolean", "Sends changes as they happen."),
];

/// Query parameters as OpenAPI has them.
pub(super) fn queries<'a>(parameters: impl IntoIterator<Item = &'a Query>) -> Vec<Value> {
    parameters
        .into_iter()
        .map(|(name, kind, description)| {
            let schema = json!({"type": kind, "uniqueItems": true});
            json!({"name": name, "in": "query", "description": description, "schema": schema})
        })
        .collect()
}

/// The parameters that all operations of a path have: the variables in it, and `pretty`.
pub(super) fn of_path(path: &str) -> Vec<Value> {
    let variables = [("name", "The name of the object."), ("namespace", "The namespace of the object.")];
    let in_path = variables.iter().filter(|(name, _)| path.contains(&format!("{{{name}}}")));
    let mut parameters: Vec<Value> = in_path
        .map(|(name, description)| {
            let schema = json!({"type": "string", "uniqueItems": true});
            json!({"name": name, "in": "path", "description": description, "required": true, "schema": schema})
        })
        .collect();
    parameters.extend(queries([&PRETTY]));
    parameters
}
