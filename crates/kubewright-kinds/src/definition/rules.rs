//! The rules that each part of a definition's schema follows (`ValidateCustomResourceDefinitionOpenAPISchema`).

use std::cell::OnceCell;
use std::collections::BTreeSet;

use kubewright_meta::{FieldError, cost};
use kubewright_schema::node::Node;
use kubewright_schema::rules::field_path;
use kubewright_schema::structural;
use serde_json::Value;

use super::cel::{self, Context, Total};
use super::path::Path;
use super::{fields, flag, go, items, list, part, schema, text, texts};

/// What breaks the rules. `cel`: the schema is in order otherwise, so that its own rules can be looked at. `unchanged`: it is
/// as it was.
pub(super) fn validate(
    schema: &Value,
    cel: bool,
    unchanged: bool,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    let mut found = Found { unchanged, ..Found::default() };
    let place = Place { root: true, cel: cel.then(Context::root), ..Place::default() };
    found.part_of(schema, place, path);
    errors.append(&mut found.schema);
    errors.append(&mut found.cel);
    found.total.check(path, errors);
}

/// What is wrong with a schema, and with its rules.
#[derive(Default)]
struct Found {
    unchanged: bool,
    schema: Vec<FieldError>,
    cel: Vec<FieldError>,
    total: Total,
}

/// Where in the schema a part stands.
#[derive(Clone, Copy, Default)]
struct Place<'a> {
    root: bool,
    /// In apiVersion, kind or metadata of a resource.
    in_meta: bool,
    /// Why defaults are forbidden.
    no_defaults: Option<&'a str>,
    /// What its rules are looked at with; nothing in combinations.
    cel: Option<Context<'a>>,
}

impl Found {
    fn part_of(&mut self, schema: &Value, place: Place<'_>, path: &Path<'_>) {
        cost::step();
        let before = self.schema.len();
        keywords(schema, place, path, &mut self.schema);
        let inner = Place { root: false, cel: None, ..place };
        self.values(schema, place, inner, path);
        self.fields(schema, place, inner, path);
        if let Some(not) = part(schema, "not") {
            self.part_of(not, inner, &path.child("not"));
        }
        for key in ["allOf", "oneOf", "anyOf"] {
            for (index, one) in list(schema, key).enumerate() {
                self.part_of(one, inner, &path.child(key).index(index));
            }
        }
        for (name, one) in fields(schema, "definitions") {
            self.part_of(one, inner, &path.child("definitions").key(name));
        }
        match items(schema) {
            Some(Value::Array(all)) => {
                for (index, one) in all.iter().enumerate() {
                    self.part_of(one, inner, &path.child("items").index(index));
                }
            }
            Some(items) => {
                let cel = place.cel.map(|context| context.elements(schema, items, path));
                self.part_of(items, Place { cel, ..inner }, &path.child("items"));
            }
            None => {}
        }
        for (name, one) in fields(schema, "dependencies").filter(|(_, one)| one.is_object()) {
            self.part_of(one, inner, &path.child("dependencies").key(name));
        }
        extensions(schema, path, &mut self.schema);
        form_of_rules(schema, path, &mut self.schema);
        // A mistake here or below is told before anything that rules would stumble over.
        if let (Some(context), true) = (place.cel, self.schema.len() == before)
            && list(schema, "x-kubernetes-validations").next().is_some()
        {
            cel::validate(schema, context, self.unchanged, path, &mut self.total, &mut self.cel);
        }
    }

    fn values(&mut self, schema: &Value, place: Place<'_>, inner: Place<'_>, path: &Path<'_>) {
        let Some(values) = part(schema, "additionalProperties") else { return };
        let at = path.child("additionalProperties");
        if fields(schema, "properties").next().is_some() && values != &Value::Bool(true) {
            let detail = "additionalProperties and properties are mutual exclusive";
            self.schema.push(FieldError::forbidden(at, detail));
        }
        if values.is_object() {
            let why = "inside additionalProperties applying to object metadata";
            let no_defaults = if place.in_meta { Some(why) } else { inner.no_defaults };
            let cel = place.cel.map(|context| context.values(schema, values));
            self.part_of(values, Place { no_defaults, cel, ..inner }, &at);
        }
    }

    fn fields(&mut self, schema: &Value, place: Place<'_>, inner: Place<'_>, path: &Path<'_>) {
        for (name, field) in fields(schema, "properties") {
            let inner = Place { cel: place.cel.map(|context| context.field(schema, field)), ..inner };
            let meta = matches!(name.as_str(), "apiVersion" | "kind" | "metadata");
            let why = format!("in top-level {name}");
            let place = match (meta, place.root, flag(schema, "x-kubernetes-embedded-resource")) {
                (true, true, _) => Place { in_meta: true, no_defaults: Some(&why), ..inner },
                (true, false, true) => Place { in_meta: true, ..inner },
                _ => inner,
            };
            self.part_of(field, place, &path.child("properties").key(name));
        }
    }
}

fn keywords(schema: &Value, place: Place<'_>, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];
    /// Each with whether it has to have entries to be one.
    const UNSUPPORTED: [(&str, bool); 6] = [
        ("id", false),
        ("additionalItems", false),
        ("patternProperties", true),
        ("definitions", true),
        ("dependencies", false),
        ("$ref", false),
    ];
    let kind = text(schema, "type");
    if !kind.is_empty() && !TYPES.contains(&kind) {
        errors.push(FieldError::not_supported(path.child("type"), kind, TYPES));
    }
    if let (Some(_), Some(why)) = (part(schema, "default"), place.no_defaults) {
        errors.push(FieldError::forbidden(path.child("default"), format!("must not be set {why}")));
    }
    for (key, needs_entries) in UNSUPPORTED {
        let is_said =
            if needs_entries { fields(schema, key).next().is_some() } else { part(schema, key).is_some() };
        if is_said {
            errors.push(FieldError::forbidden(path.child(key), format!("{key} is not supported")));
        }
    }
    if kind == "null" {
        let detail = "type cannot be set to null, use nullable as an alternative";
        errors.push(FieldError::forbidden(path.child("type"), detail));
    }
    if schema.get("items").and_then(Value::as_array).is_some_and(|schemas| !schemas.is_empty()) {
        errors.push(FieldError::forbidden(
            path.child("items"),
            "items must be a schema object and not an array",
        ));
    }
    if place.in_meta && flag(schema, "x-kubernetes-embedded-resource") {
        let detail = "must not be used inside of resource meta";
        errors.push(FieldError::forbidden(path.child("x-kubernetes-embedded-resource"), detail));
    }
    if flag(schema, "uniqueItems") {
        let detail = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
        errors.push(FieldError::forbidden(path.child("uniqueItems"), detail));
    }
}

fn extensions(schema: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    const PRESERVE: &str = "x-kubernetes-preserve-unknown-fields";
    if schema.get(PRESERVE) == Some(&Value::Bool(false)) {
        errors.push(FieldError::invalid(path.child(PRESERVE), false, "must be true or undefined"));
    }
    needs_type(schema, "x-kubernetes-map-type", "object", path, errors);
    among(schema, "x-kubernetes-map-type", &["atomic", "granular"], path, errors);
    needs_type(schema, "x-kubernetes-list-type", "array", path, errors);
    let list_type = part(schema, "x-kubernetes-list-type").and_then(Value::as_str);
    if list_type == Some("set") && text(schema, "type") == "array" {
        elements_of_a_set(schema, path, errors);
    }
    among(schema, "x-kubernetes-list-type", &["atomic", "set", "map"], path, errors);
    let keys = texts(schema, "x-kubernetes-list-map-keys");
    if !keys.is_empty() && list_type != Some("map") {
        let at = path.child("x-kubernetes-list-type");
        let detail = "must be map if x-kubernetes-list-map-keys is non-empty";
        errors.push(
            list_type.map_or_else(
                || FieldError::required(at, detail),
                |kind| FieldError::invalid(at, kind, detail),
            ),
        );
    }
    if list_type == Some("map") {
        elements_of_a_map(schema, &keys, path, errors);
    }
    if let (Some(list_type @ ("set" | "map")), Some(items)) = (list_type, items(schema)) {
        keys_are_there(list_type, items, &keys, path, errors);
    }
}

fn needs_type(schema: &Value, key: &str, kind: &str, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let found = text(schema, "type");
    if part(schema, key).is_some() && found != kind {
        let detail = format!("must be {kind} if {key} is specified");
        let at = path.child("type");
        errors.push(if found.is_empty() {
            FieldError::required(at, detail)
        } else {
            FieldError::invalid(at, found, detail)
        });
    }
}

fn among(schema: &Value, key: &str, allowed: &[&str], path: &Path<'_>, errors: &mut Vec<FieldError>) {
    if let Some(value) = part(schema, key).and_then(Value::as_str).filter(|value| !allowed.contains(value)) {
        errors.push(FieldError::not_supported(path.child(key), value, allowed.iter().copied()));
    }
}

fn elements_of_a_set(schema: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let Some(items) = items(schema) else { return };
    let list_type = part(items, "x-kubernetes-list-type");
    let wrong = match text(items, "type") {
        "array" if list_type.is_some_and(|kind| kind != "atomic") => "x-kubernetes-list-type",
        "object" if text(items, "x-kubernetes-map-type") != "atomic" => "x-kubernetes-map-type",
        _ => return,
    };
    let detail = "must be atomic as item of a list with x-kubernetes-list-type=set";
    errors.push(FieldError::invalid(
        path.child("items").child(wrong),
        list_type.cloned().unwrap_or_default(),
        detail,
    ));
}

fn elements_of_a_map(schema: &Value, keys: &[String], path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let at = path.child("x-kubernetes-list-map-keys");
    if keys.is_empty() {
        errors.push(FieldError::required(at, "must not be empty if x-kubernetes-list-type is map"));
    }
    let items_path = path.child("items");
    let items = match part(schema, "items") {
        None => {
            let detail = "must have a schema if x-kubernetes-list-type is map";
            return errors.push(FieldError::required(items_path, detail));
        }
        Some(Value::Array(all)) => {
            let detail = "must only have a single schema if x-kubernetes-list-type is map";
            let all = go::list(all.iter().map(go::schema));
            let printed = format!("{{\"Schema\":null,\"JSONSchemas\":{all}}}");
            return errors.push(FieldError::invalid(items_path, Value::Null, detail).printed(printed));
        }
        Some(items) => items,
    };
    if text(items, "type") != "object" {
        let detail = "must be object if parent array's x-kubernetes-list-type is map";
        errors.push(FieldError::invalid(items_path.child("type"), text(items, "type"), detail));
        return;
    }
    // Each error quotes all keys: so many errors are told at most.
    const QUOTED: usize = 10_000;
    let most = errors.len() + (QUOTED / keys.len().max(1)).clamp(1, 100);
    let mut before = BTreeSet::new();
    for key in keys {
        if errors.len() >= most {
            return;
        }
        match items.get("properties").and_then(|all| all.get(key)) {
            Some(field) if matches!(text(field, "type"), "array" | "object") => {
                let detail = "must be a scalar type if parent array's x-kubernetes-list-type is map";
                let field = items_path.child("properties");
                errors.push(FieldError::invalid(field.key(key).child("type"), "object", detail));
            }
            Some(_) => {}
            None => errors.push(FieldError::invalid(
                at,
                keys.to_vec(),
                "entries must all be names of item properties",
            )),
        }
        if !before.insert(key) {
            errors.push(FieldError::invalid(at, keys.to_vec(), "must not contain duplicate entries"));
        }
    }
}

/// The keys of elements are always there: required, or with a default.
fn keys_are_there(
    list_type: &str,
    items: &Value,
    keys: &[String],
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    let items_path = path.child("items");
    if flag(items, "nullable") {
        let detail = format!("cannot be nullable when x-kubernetes-list-type is {list_type}");
        errors.push(FieldError::forbidden(items_path.child("nullable"), detail));
    }
    if list_type != "map" {
        return;
    }
    let required: BTreeSet<String> = texts(items, "required").into_iter().collect();
    let properties = items_path.child("properties");
    for key in keys {
        let Some(field) = items.get("properties").and_then(|all| all.get(key)) else { continue };
        let at = properties.key(key);
        if !required.contains(key) && part(field, "default").is_none() {
            let detail = "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property";
            errors.push(FieldError::required(at.child("default"), detail));
        }
        if flag(field, "nullable") {
            let detail = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable";
            errors.push(FieldError::forbidden(at.child("nullable"), detail));
        }
    }
}

/// The form of rules.
fn form_of_rules(schema: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    const REASONS: [&str; 4] =
        ["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"];
    let breaks = |text: &str| text.contains(['\n', '\r']);
    let all = path.child("x-kubernetes-validations");
    let node = OnceCell::new();
    for (index, rule) in list(schema, "x-kubernetes-validations").enumerate() {
        let at = all.index(index);
        let (code, message) = (text(rule, "rule").trim(), text(rule, "message"));
        if code.is_empty() {
            errors.push(FieldError::required(at.child("rule"), "rule is not specified"));
        } else if !message.is_empty() && message.trim().is_empty() {
            errors.push(FieldError::invalid(at.child("message"), message, "must be non-empty if specified"));
        } else if breaks(message.trim()) {
            errors.push(FieldError::invalid(at.child("message"), message, "must not contain line breaks"));
        } else if breaks(code) && message.is_empty() {
            let detail = "message must be specified if rule contains line breaks";
            errors.push(FieldError::required(at.child("message"), detail));
        }
        let expression = text(rule, "messageExpression");
        if !expression.is_empty() && expression.trim().is_empty() {
            let detail = "messageExpression must be non-empty if specified";
            errors.push(FieldError::required(at.child("messageExpression"), detail));
        }
        if let Some(reason) =
            part(rule, "reason").and_then(Value::as_str).filter(|reason| !REASONS.contains(reason))
        {
            errors.push(FieldError::not_supported(at.child("reason"), reason, REASONS));
        }
        let node = || {
            let read = || schema::no_structure(schema).is_none().then(|| structural::node(schema));
            node.get_or_init(read).as_ref()
        };
        place_of_failure(node, text(rule, "fieldPath"), &at.child("fieldPath"), errors);
    }
}

/// The field that a failure is told of must be there. `node` is the schema of the rule, where it has a structure.
fn place_of_failure<'a>(
    node: impl Fn() -> Option<&'a Node>,
    field: &str,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    if field.is_empty() {
        return;
    }
    let mut wrong = |detail: &str| errors.push(FieldError::invalid(*path, field, detail));
    if field.trim().is_empty() {
        wrong("must be non-empty if specified");
    }
    if field.contains(['\n', '\r']) {
        wrong("must not contain line breaks");
    }
    if node().is_some_and(|node| field_path::follow(field, node, true).is_err()) {
        wrong("must be a valid path");
    }
}
