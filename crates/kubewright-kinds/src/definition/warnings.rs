//! What the author of a definition should know, although it is valid.

use std::collections::BTreeSet;

use kubewright_schema::format;
use kubewright_schema::node::Type;
use kubewright_spec::Version;
use serde_json::Value;

use super::{schema, text, versions};

/// The `Warning`s that go with a valid definition in a version of Kubernetes: formats that nobody knows, and from v1.37 on sets of
/// what is no scalar, where `old` (the definition that it replaces) did not have them.
#[must_use]
pub fn warnings(kubernetes: Version, definition: &Value, old: Option<&Value>) -> Vec<String> {
    let known = old.map(unknown_formats).unwrap_or_default();
    let formats = unknown_formats(definition).into_iter().filter(|format| !known.contains(format));
    let mut warnings: Vec<String> = formats.map(|format| format!("unrecognized format {format:?}")).collect();
    if kubernetes >= Version::V1_37 {
        let known = old.map(sets_of_parts).unwrap_or_default();
        warnings.extend(sets_of_parts(definition).difference(&known).map(|kind| {
            format!("x-kubernetes-list-type: set for items of type {kind:?} is not supported by server-side apply or CEL validation rules")
        }));
    }
    warnings
}

/// The types of the items of sets that have parts themselves (`getNonScalarListTypeSetWarnings`).
fn sets_of_parts(definition: &Value) -> BTreeSet<&'static str> {
    let mut types = BTreeSet::new();
    each_schema(definition, &mut |schema| {
        if text(schema, "x-kubernetes-list-type") == "set" {
            let of = text(&schema["items"], "type");
            types.extend(["array", "object"].into_iter().filter(|kind| *kind == of));
        }
    });
    types
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
