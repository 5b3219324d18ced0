//! The validation of a definition's schema: first its structure, then its defaults, then the rules of each part
//! (`validateCustomResourceDefinitionValidation`).

use kubewright_meta::FieldError;
use kubewright_schema::pattern::Patterns;
use serde_json::Value;

use super::path::Path;
use super::{defaults, fields, flag, go, list, part, rules, structure, text};

/// What is wrong with the `schema` of a version that stands at `path`. `status`: the status subresource is on. `unchanged`:
/// the schema is as it was. `patterns`: those of all versions.
pub(super) fn validate(
    schema: &Value,
    status: bool,
    unchanged: bool,
    patterns: &mut Patterns,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    let path = path.child("openAPIV3Schema");
    let Some(schema) = part(schema, "openAPIV3Schema") else { return };
    if status {
        root_with_status(schema, &path, errors);
    }
    if flag(schema, "nullable") {
        errors.push(FieldError::forbidden(path.child("nullable"), "nullable cannot be true at the root"));
    }
    // What makes no structural schema at all is told by the rules below, one by one.
    let structural = !any(schema, &is_no_structure);
    let mut in_order = structural;
    if structural {
        let found = structure::validate(schema, patterns, &path);
        let found = if found.is_empty() { defaults::validate(schema, &path) } else { found };
        in_order = found.is_empty();
        errors.extend(found);
    }
    let before = errors.len();
    rules::validate(schema, in_order, unchanged, &path, errors);
    if !structural && errors.len() == before {
        // The other reasons are told by the rules.
        errors.push(FieldError::invalid(path, "", "OpenAPIV3Schema 'schema' is not supported"));
    }
}

/// Whether a part says what structural schemas cannot.
fn is_no_structure(schema: &Value) -> bool {
    let says = |key: &&str| part(schema, key).is_some();
    let has_entries = |key: &&str| fields(schema, key).next().is_some();
    ["id", "$schema", "$ref", "additionalItems"].iter().any(says)
        || ["patternProperties", "dependencies", "definitions"].iter().any(has_entries)
        || list(schema, "items").next().is_some()
        || schema.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(false))
}

/// Whether any part of a schema is such.
pub(super) fn any(schema: &Value, is: &dyn Fn(&Value) -> bool) -> bool {
    is(schema) || parts(schema).any(|part| any(part, is))
}

/// The schemas that stand directly in a schema.
pub(super) fn parts(schema: &Value) -> impl Iterator<Item = &Value> {
    let one = ["items", "additionalProperties", "not"].into_iter().filter_map(|key| schema.get(key));
    let lists = ["allOf", "anyOf", "oneOf", "items"].into_iter().flat_map(|key| list(schema, key));
    let maps =
        ["properties", "patternProperties", "definitions"].into_iter().flat_map(|key| fields(schema, key));
    one.filter(|one| one.is_object()).chain(lists).chain(maps.map(|(_, one)| one))
}

/// With the status subresource on, the root may say little more than its fields.
fn root_with_status(schema: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    const ALLOWED: [(&str, &str); 22] = [
        ("description", "Description"),
        ("type", "Type"),
        ("format", "Format"),
        ("title", "Title"),
        ("maximum", "Maximum"),
        ("exclusiveMaximum", "ExclusiveMaximum"),
        ("minimum", "Minimum"),
        ("exclusiveMinimum", "ExclusiveMinimum"),
        ("maxLength", "MaxLength"),
        ("minLength", "MinLength"),
        ("pattern", "Pattern"),
        ("maxItems", "MaxItems"),
        ("minItems", "MinItems"),
        ("uniqueItems", "UniqueItems"),
        ("multipleOf", "MultipleOf"),
        ("required", "Required"),
        ("items", "Items"),
        ("properties", "Properties"),
        ("externalDocs", "ExternalDocs"),
        ("example", "Example"),
        ("x-kubernetes-preserve-unknown-fields", "XPreserveUnknownFields"),
        ("x-kubernetes-validations", "XValidations"),
    ];
    let kind = text(schema, "type");
    if !kind.is_empty() && kind != "object" {
        let detail = r#"only "object" is allowed as the type at the root of the schema if the status subresource is enabled"#;
        errors.push(FieldError::invalid(path.child("type"), kind, detail));
        return;
    }
    let says = |(key, value): (&String, &Value)| {
        value != &Value::Bool(false) && !value.is_null() && !ALLOWED.iter().any(|(allowed, _)| allowed == key)
    };
    if schema.as_object().is_some_and(|schema| schema.iter().any(says)) {
        let names: Vec<_> = ALLOWED.iter().map(|(_, name)| *name).collect();
        let detail = format!(
            "only [{}] fields are allowed at the root of the schema if the status subresource is enabled",
            names.join(" ")
        );
        errors.push(FieldError::invalid(*path, Value::Null, detail).printed(go::schema(schema)));
    }
}
