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
    let no_structure = no_structure(schema);
    let mut in_order = no_structure.is_none();
    if in_order {
        let found = structure::validate(schema, patterns, &path);
        let found = if found.is_empty() { defaults::validate(schema, &path) } else { found };
        in_order = found.is_empty();
        errors.extend(found);
    }
    let before = errors.len();
    rules::validate(schema, in_order, unchanged, &path, errors);
    if let Some(why) = no_structure.filter(|_| errors.len() == before) {
        // The other reasons are told by the rules.
        errors.push(FieldError::invalid(path, "", why));
    }
}

/// What a schema says that structural schemas cannot, in Kubernetes' words; the first thing of it
/// (`apiextensions-apiserver/pkg/apiserver/schema/convert.go`).
pub(super) fn no_structure(schema: &Value) -> Option<String> {
    let says = |key: &str| match part(schema, key) {
        Some(Value::String(text)) => !text.is_empty(),
        said => said.is_some(),
    };
    let has_entries = |key: &str| fields(schema, key).next().is_some();
    let unsupported = [
        ("id", says("id")),
        ("schema", says("$schema")),
        ("$ref", says("$ref")),
        ("patternProperties", has_entries("patternProperties")),
        ("dependencies", has_entries("dependencies")),
        ("additionalItems", says("additionalItems")),
        ("definitions", has_entries("definitions")),
    ];
    if let Some((name, _)) = unsupported.into_iter().find(|(_, said)| *said) {
        return Some(format!("OpenAPIV3Schema '{name}' is not supported"));
    }
    if schema.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(false)) {
        return Some(
            "internal error: 'x-kubernetes-preserve-unknown-fields' must be true or undefined".to_owned(),
        );
    }
    if list(schema, "items").next().is_some() {
        return Some("OpenAPIV3Schema 'items' must be a schema, but is an array".to_owned());
    }
    parts(schema).find_map(no_structure)
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
    // What Go has as a plain text or truth is not said where it is empty.
    let says = |key: &str, value: &Value| match value {
        Value::Null => false,
        Value::Bool(false) => !matches!(
            key,
            "nullable" | "x-kubernetes-embedded-resource" | "x-kubernetes-int-or-string" | "uniqueItems"
        ),
        Value::String(text) => !text.is_empty() || !matches!(key, "id" | "$schema"),
        _ => true,
    };
    let kind = text(schema, "type");
    let says_before =
        ["id", "$schema", "$ref"].iter().any(|key| schema.get(key).is_some_and(|value| says(key, value)));
    if !says_before && !kind.is_empty() && kind != "object" {
        let detail = r#"only "object" is allowed as the type at the root of the schema if the status subresource is enabled"#;
        errors.push(FieldError::invalid(path.child("type"), kind, detail));
        return;
    }
    let is_odd = |(key, value): (&String, &Value)| {
        says(key, value) && !ALLOWED.iter().any(|(allowed, _)| allowed == key)
    };
    if schema.as_object().is_some_and(|schema| schema.iter().any(is_odd)) {
        let names: Vec<_> = ALLOWED.iter().map(|(_, name)| *name).collect();
        let detail = format!(
            "only [{}] fields are allowed at the root of the schema if the status subresource is enabled",
            names.join(" ")
        );
        errors.push(FieldError::invalid(*path, Value::Null, detail).printed(go::schema(schema)));
    }
}
