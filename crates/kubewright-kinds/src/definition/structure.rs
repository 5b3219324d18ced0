//! Whether a schema is structural (`apiextensions-apiserver/pkg/apiserver/schema/{validation,complete}.go`): each field has
//! one type, said outside of combinations; what combinations mention is said outside of them too.

use kubewright_meta::{FieldError, cost};
use kubewright_schema::pattern::Patterns;
use serde_json::Value;

use super::path::Path;
use super::{fields, flag, items, list, part, text};

/// What makes a schema unstructural, sorted by message. `patterns`: those of its definition.
pub(super) fn validate(schema: &Value, patterns: &mut Patterns, path: &Path<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    invariants(schema, Level::Root, patterns, path, &mut errors);
    complete(schema, Some(schema), path, path, &mut errors);
    errors.sort_by_cached_key(ToString::to_string);
    errors
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Root,
    Item,
    Field,
}

fn invariants(
    schema: &Value,
    level: Level,
    patterns: &mut Patterns,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    cost::step();
    let kind = text(schema, "type");
    match items(schema) {
        Some(items) => invariants(items, Level::Item, patterns, &path.child("items"), errors),
        None if kind == "array" => {
            errors.push(FieldError::required(path.child("items"), "must be specified"));
        }
        None => {}
    }
    for (name, field) in fields(schema, "properties") {
        invariants(field, Level::Field, patterns, &path.child("properties").key(name), errors);
    }
    let additional = part(schema, "additionalProperties");
    if let Some(values) = additional {
        let at = path.child("additionalProperties");
        if level == Level::Root {
            errors.push(FieldError::forbidden(at, "must not be used at the root"));
        }
        if values.is_object() {
            invariants(values, Level::Field, patterns, &at, errors);
        }
    }
    extensions(schema, path, errors);
    let known = int_or_string(schema);
    validations(schema, known, level, patterns, path, errors);
    own_type(schema, level, path, errors);
    let embedded = flag(schema, "x-kubernetes-embedded-resource");
    if embedded && additional.is_some() {
        let detail = "must not be used if x-kubernetes-embedded-resource is set";
        errors.push(FieldError::forbidden(path.child("additionalProperties"), detail));
    }
    resource_fields(schema, level, path, errors);
    let preserves = flag(schema, "x-kubernetes-preserve-unknown-fields");
    if embedded && !preserves && fields(schema, "properties").next().is_none() {
        let detail = "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields";
        errors.push(FieldError::required(path.child("properties"), detail));
    }
}

fn own_type(schema: &Value, level: Level, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let kind = text(schema, "type");
    let at = path.child("type");
    if flag(schema, "x-kubernetes-embedded-resource") && kind != "object" {
        let detail = "must be object if x-kubernetes-embedded-resource is true";
        errors.push(if kind.is_empty() {
            FieldError::required(at, detail)
        } else {
            FieldError::invalid(at, kind, detail)
        });
    } else if kind.is_empty()
        && !flag(schema, "x-kubernetes-int-or-string")
        && !flag(schema, "x-kubernetes-preserve-unknown-fields")
    {
        let detail = match level {
            Level::Root => "must not be empty at the root",
            Level::Item => "must not be empty for specified array items",
            Level::Field => "must not be empty for specified object fields",
        };
        errors.push(FieldError::required(at, detail));
    }
    if level == Level::Root && !kind.is_empty() && kind != "object" {
        errors.push(FieldError::invalid(path.child("type"), kind, "must be object at the root"));
    }
}

fn extensions(schema: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    if flag(schema, "x-kubernetes-int-or-string") {
        for key in ["x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource"] {
            if flag(schema, key) {
                let detail = "must be false if x-kubernetes-int-or-string is true";
                errors.push(FieldError::invalid(path.child(key), true, detail));
            }
        }
    }
}

/// `apiVersion`, `kind` and `metadata` of a resource are what they are everywhere.
fn resource_fields(schema: &Value, level: Level, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let resource = level == Level::Root || flag(schema, "x-kubernetes-embedded-resource");
    let properties = path.child("properties");
    for (name, field) in fields(schema, "properties") {
        let at = properties.key(name);
        let kind = text(field, "type");
        match name.as_str() {
            "kind" | "apiVersion" if resource && kind != "string" => {
                errors.push(FieldError::invalid(at.child("type"), kind, "must be string"));
            }
            "metadata" => {
                if resource && kind != "object" {
                    errors.push(FieldError::invalid(at.child("type"), kind, "must be object"));
                }
                if level == Level::Root && restricts_more_than_names(field) {
                    let detail = "must not specify anything other than name and generateName, but metadata is implicitly specified";
                    errors.push(FieldError::forbidden(at, detail));
                }
            }
            _ => {}
        }
    }
}

fn restricts_more_than_names(metadata: &Value) -> bool {
    let names = fields(metadata, "properties").all(|(name, _)| name == "name" || name == "generateName");
    let else_said = |(key, value): (&String, &Value)| {
        !matches!(key.as_str(), "type" | "properties" | "default") && !is_left_out(key, value)
    };
    !names || metadata.as_object().is_some_and(|fields| fields.iter().any(else_said))
}

/// Whether a structural schema is made without a member that says this. Lists that are made one by one are none without entries; others
/// are taken over as they are (`apiextensions-apiserver/pkg/apiserver/schema/convert.go`).
fn is_left_out(key: &str, value: &Value) -> bool {
    const BY_ONE: [&str; 5] = ["allOf", "anyOf", "enum", "items", "oneOf"];
    const UNSUPPORTED: [&str; 3] = ["definitions", "dependencies", "patternProperties"];
    match value {
        Value::Null => true,
        Value::Bool(false) => key != "additionalProperties",
        Value::Array(items) => items.is_empty() && BY_ONE.contains(&key),
        Value::Object(members) => members.is_empty() && UNSUPPORTED.contains(&key),
        _ => false,
    }
}

/// Where `anyOf: [{type: integer}, {type: string}]` may stand, next to `x-kubernetes-int-or-string`.
#[derive(Clone, Copy, Default)]
struct Known {
    any_of: bool,
    in_first_all_of: bool,
}

fn int_or_string(schema: &Value) -> Known {
    let says_only = |one: &Value, kind: &str| {
        let mut others = one.as_object().into_iter().flatten().filter(|(key, _)| *key != "type");
        text(one, "type") == kind && others.all(|(key, value)| is_left_out(key, value))
    };
    let is_pattern = |any_of: Option<&Value>| {
        let any_of = any_of.and_then(Value::as_array).map(Vec::as_slice);
        matches!(any_of, Some([one, other]) if says_only(one, "integer") && says_only(other, "string"))
    };
    Known {
        any_of: is_pattern(schema.get("anyOf")),
        in_first_all_of: is_pattern(schema.pointer("/allOf/0/anyOf")),
    }
}

/// The combinations and the pattern of a schema.
fn validations(
    schema: &Value,
    known: Known,
    level: Level,
    patterns: &mut Patterns,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    for key in ["anyOf", "allOf", "oneOf"] {
        if key == "anyOf" && known.any_of {
            continue;
        }
        for (index, one) in list(schema, key).enumerate() {
            let any_of = key == "allOf" && index == 0 && known.in_first_all_of;
            let inner = Known { any_of, ..Known::default() };
            nested(one, inner, level, patterns, &path.child(key).index(index), errors);
        }
    }
    if let Some(not) = part(schema, "not") {
        nested(not, Known::default(), level, patterns, &path.child("not"), errors);
    }
    let pattern = text(schema, "pattern");
    if let (false, Some(why)) = (pattern.is_empty(), patterns.mistake(pattern)) {
        let detail = format!("must be a valid regular expression, but isn't: {why}");
        errors.push(FieldError::invalid(path.child("pattern"), pattern, detail));
    }
}

/// A schema in a combination: it validates values, and says nothing of structure.
fn nested(
    schema: &Value,
    known: Known,
    level: Level,
    patterns: &mut Patterns,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    const FORBIDDEN: [(&str, &str); 13] = [
        ("type", "must be empty to be structural"),
        ("additionalProperties", "must be undefined to be structural"),
        ("default", "must be undefined to be structural"),
        ("title", "must be empty to be structural"),
        ("description", "must be empty to be structural"),
        ("nullable", "must be false to be structural"),
        ("x-kubernetes-preserve-unknown-fields", "must be false to be structural"),
        ("x-kubernetes-embedded-resource", "must be false to be structural"),
        ("x-kubernetes-int-or-string", "must be false to be structural"),
        ("x-kubernetes-list-map-keys", "must be empty to be structural"),
        ("x-kubernetes-list-type", "must be undefined to be structural"),
        ("x-kubernetes-map-type", "must be undefined to be structural"),
        ("x-kubernetes-validations", "must be empty to be structural"),
    ];
    /// Whose values are there whatever they are.
    const ANY: [&str; 3] = ["default", "x-kubernetes-list-type", "x-kubernetes-map-type"];
    cost::step();
    validations(schema, known, level, patterns, path, errors);
    if let Some(items) = items(schema) {
        nested(items, Known::default(), level, patterns, &path.child("items"), errors);
    }
    for (name, field) in fields(schema, "properties") {
        nested(field, Known::default(), Level::Field, patterns, &path.child("properties").key(name), errors);
    }
    let is_said = |key: &str, value: &Value| match value {
        Value::Null => false,
        _ if ANY.contains(&key) => true,
        Value::Bool(truth) => *truth,
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        _ => true,
    };
    for (key, detail) in FORBIDDEN {
        if schema.get(key).is_some_and(|value| is_said(key, value)) {
            errors.push(FieldError::forbidden(path.child(key), detail));
        }
    }
    if fields(schema, "properties").any(|(name, _)| name == "metadata") {
        let detail = "must not be specified in a nested context";
        errors.push(FieldError::forbidden(path.child("properties").key("metadata"), detail));
    }
}

/// What the combinations of `validating` mention must be said by `structure`, which stands at `path`.
fn complete(
    validating: &Value,
    structure: Option<&Value>,
    path: &Path<'_>,
    mentioned: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    for key in ["not", "allOf", "anyOf", "oneOf"] {
        if let Some(one) = part(validating, key).filter(|one| one.is_object()) {
            complete_nested(one, structure, path, &mentioned.child(key), errors);
        }
        for (index, one) in list(validating, key).enumerate() {
            complete_nested(one, structure, path, &mentioned.child(key).index(index), errors);
        }
    }
}

fn complete_nested(
    validating: &Value,
    structure: Option<&Value>,
    path: &Path<'_>,
    mentioned: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    cost::step();
    let Some(structure) = structure else {
        errors.push(FieldError::required(*path, format!("because it is defined in {mentioned}")));
        return;
    };
    complete(validating, Some(structure), path, mentioned, errors);
    if let Some(all) = items(validating) {
        complete_nested(all, items(structure), &path.child("items"), &mentioned.child("items"), errors);
    }
    for (name, field) in fields(validating, "properties") {
        let said = structure.get("properties").and_then(|all| all.get(name));
        let (path, mentioned) = (path.child("properties"), mentioned.child("properties"));
        complete_nested(field, said, &path.key(name), &mentioned.key(name), errors);
    }
}
