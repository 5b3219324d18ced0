//! Defaults in a schema must be valid by that schema (`apiextensions-apiserver/pkg/apiserver/schema/defaulting`).

use kubewright_meta::FieldError;
use kubewright_meta::field::Problem;
use kubewright_schema::Type;
use kubewright_schema::node::Node;
use kubewright_schema::rules::{Budget, Finding, Rules};
use kubewright_schema::{prune, structural, validate as validation};
use serde_json::{Value, json};

use super::path::Path;
use super::{fields, flag, items, part};
use crate::rules::version;

/// What is wrong with the defaults of a structural schema.
pub(super) fn validate(schema: &Value, path: &Path<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let place = Place { resource: schema, steps: Steps::Here, in_meta: false };
    walk(schema, true, place, path, &mut errors);
    errors
}

/// Where a schema stands.
#[derive(Clone, Copy)]
struct Place<'a> {
    /// The schema of the resource that it is in.
    resource: &'a Value,
    /// The way from that to here.
    steps: Steps<'a>,
    /// In the resource's apiVersion, kind or metadata.
    in_meta: bool,
}

/// The way from a resource to a value in it.
#[derive(Clone, Copy)]
enum Steps<'a> {
    Here,
    Field(&'a Steps<'a>, &'a str),
    Element(&'a Steps<'a>),
}

impl Steps<'_> {
    /// The smallest resource that has `value` in this place.
    fn around(&self, value: Value) -> Value {
        match self {
            Self::Here => {
                let mut resource = value;
                if let Some(fields) = resource.as_object_mut() {
                    fields.entry("apiVersion").or_insert_with(|| "validation/v1".into());
                    fields.entry("kind").or_insert_with(|| "Validation".into());
                }
                resource
            }
            Self::Field(before, name) => before.around(json!({*name: value})),
            Self::Element(before) => before.around(json!([value])),
        }
    }
}

/// Defaults below `additionalProperties` are never set alone; they are not looked at. `root`: the schema is that of the
/// custom resource itself.
fn walk(schema: &Value, root: bool, place: Place<'_>, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let resource = root || flag(schema, "x-kubernetes-embedded-resource");
    let place = if resource { Place { resource: schema, steps: Steps::Here, in_meta: false } } else { place };
    if let Some(default) = part(schema, "default") {
        let at = path.child("default");
        if place.in_meta {
            in_metadata(schema, default, place, &at, errors);
        } else {
            one(schema, default, resource, &at, errors);
        }
    }
    if let Some(items) = items(schema) {
        let place = Place { steps: Steps::Element(&place.steps), ..place };
        walk(items, false, place, &path.child("items"), errors);
    }
    for (name, field) in fields(schema, "properties") {
        let meta = resource && matches!(name.as_str(), "metadata" | "apiVersion" | "kind");
        let steps = Steps::Field(&place.steps, name);
        let place = Place { steps, in_meta: place.in_meta || meta, ..place };
        walk(field, false, place, &path.child("properties").key(name), errors);
    }
}

fn one(schema: &Value, default: &Value, resource: bool, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let mut node = node(schema);
    let mut pruned = default.clone();
    node.embedded_resource = resource;
    prune::value(&node, &mut pruned);
    if pruned != *default {
        errors.push(FieldError::invalid(*path, default.clone(), "must not have unknown fields"));
    }
    let base = path.to_string();
    if let Err(error) = prune::embedded_at(&node, &mut pruned, &base) {
        errors.push(error);
        return;
    }
    let mut found = validation::embedded_at(&node, default, &base);
    of_unknown_types(schema, default, (&base, ""), &mut found);
    let found = if found.is_empty() {
        validation::value_at(version::current(), &node, default, &base)
    } else {
        found
    };
    if found.is_empty() {
        errors.extend(by_rules(schema, resource, default, &base));
    } else {
        errors.extend(found);
    }
}

/// Nothing is of a type that there is not: `path` and the path within the default.
fn of_unknown_types(schema: &Value, value: &Value, (base, path): (&str, &str), errors: &mut Vec<FieldError>) {
    let (name, type_name) = match value {
        Value::Null => return,
        Value::Number(number) if number.is_i64() => (schema["type"].as_str(), "integer"),
        other => (schema["type"].as_str(), kubewright_codec::json::type_name(other)),
    };
    let type_name = if type_name == "bool" { "boolean" } else { type_name };
    let at = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
    if let Some(name) = name.filter(|name| !name.is_empty() && Type::parse(name).is_none()) {
        let detail = format!("{path} in body must be of type {name}: {type_name:?}");
        let field = if path.is_empty() { base.to_owned() } else { format!("{base}.{path}") };
        errors.push(FieldError { field, problem: Problem::TypeInvalid(type_name.into()), detail });
        return;
    }
    for (name, field) in fields(schema, "properties") {
        if let Some(value) = value.get(name) {
            of_unknown_types(field, value, (base, &at(name)), errors);
        }
    }
}

/// A default follows the rules of its schema, as one that stays and as one that is new.
fn by_rules(schema: &Value, resource: bool, default: &Value, base: &str) -> Vec<FieldError> {
    let Some(rules) = Rules::of(&structural::node(schema).into(), resource) else { return Vec::new() };
    for old in [Some(default), None] {
        let found = rules.evaluate(base, default, old, None, &mut Budget::default());
        if !found.is_empty() {
            let told = found.into_iter().map(|finding| match finding {
                Finding::Error(error) | Finding::Warning(error) => error,
            });
            return told.collect();
        }
    }
    Vec::new()
}

/// A default in the metadata of a resource must make valid metadata.
fn in_metadata(
    schema: &Value,
    default: &Value,
    place: Place<'_>,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    let mut resource = node(place.resource);
    resource.embedded_resource = true;
    let mut object = place.steps.around(default.clone());
    let wrong = match prune::embedded_at(&resource, &mut object, "") {
        Err(error) => vec![error],
        Ok(()) => validation::embedded_at(&resource, &object, ""),
    };
    if wrong.is_empty() {
        errors.extend(validation::value_at(version::current(), &node(schema), default, &path.to_string()));
        return;
    }
    let mut told: Vec<String> = wrong.iter().map(ToString::to_string).collect();
    let told = if told.len() == 1 { told.remove(0) } else { format!("[{}]", told.join(", ")) };
    let detail = format!("must result in valid metadata: {told}");
    errors.push(FieldError::invalid(*path, default.clone(), detail));
}

/// The schema as defaults are checked by it: `x-kubernetes-int-or-string` does not say a type there.
fn node(schema: &Value) -> Node {
    let mut plain = schema.clone();
    say_no_type(&mut plain);
    structural::node_with_all_formats(&plain)
}

fn say_no_type(schema: &mut Value) {
    match schema {
        Value::Object(all) => {
            if all.get("x-kubernetes-int-or-string") == Some(&Value::Bool(true)) {
                all.remove("x-kubernetes-int-or-string");
            }
            for (key, value) in all {
                if !matches!(key.as_str(), "default" | "enum" | "example") {
                    say_no_type(value);
                }
            }
        }
        Value::Array(list) => list.iter_mut().for_each(say_no_type),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
