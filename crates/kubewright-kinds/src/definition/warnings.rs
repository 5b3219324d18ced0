//! What the author of a definition should know, although it is valid.

use kubewright_schema::format;
use kubewright_schema::node::Type;
use serde_json::Value;

use super::{schema, text, versions};

/// The `Warning`s that go with a valid definition: formats that nobody knows, where `old` (the definition that it
/// replaces) did not have them.
#[must_use]
pub fn warnings(definition: &Value, old: Option<&Value>) -> Vec<String> {
    let known = old.map(unknown_formats).unwrap_or_default();
    unknown_formats(definition)
        .into_iter()
        .filter(|format| !known.contains(format))
        .map(|format| format!("unrecognized format {format:?}"))
        .collect()
}

fn unknown_formats(definition: &Value) -> Vec<String> {
    let mut formats = Vec::new();
    each_schema(definition, &mut |schema| {
        let format = text(schema, "format");
        if !format.is_empty() && !format::is_known(Type::parse(text(schema, "type")), format) {
            formats.push(format.to_owned());
        }
    });
    formats
}

/// All schemas of a definition; what all versions have in common counts once.
fn each_schema(definition: &Value, seen: &mut dyn FnMut(&Value)) {
    fn walk(schema: &Value, seen: &mut dyn FnMut(&Value)) {
        seen(schema);
        schema::parts(schema).for_each(|part| walk(part, seen));
    }
    let mut before: Option<&Value> = None;
    for version in versions(definition) {
        let schema = &version["schema"]["openAPIV3Schema"];
        if before != Some(schema) {
            walk(schema, seen);
        }
        before = before.or(Some(schema));
    }
}
