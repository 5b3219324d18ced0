//! Defaults in a schema must be valid by that schema (`apiextensions-apiserver/pkg/apiserver/schema/defaulting`).

use serde_json::Value;

use super::super::{prune, structural, validate as validation};
use super::path::Path;
use super::{fields, flag, part};
use crate::field::FieldError;

/// What is wrong with the defaults of a structural schema.
pub(super) fn validate(schema: &Value, path: &Path<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    walk(schema, path, &mut errors);
    errors
}

/// Defaults below `additionalProperties` are never set alone; they are not looked at.
fn walk(schema: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    if let Some(default) = part(schema, "default") {
        one(schema, default, &path.child("default"), errors);
    }
    if let Some(items) = part(schema, "items") {
        walk(items, &path.child("items"), errors);
    }
    for (name, field) in fields(schema, "properties") {
        walk(field, &path.child("properties").key(name), errors);
    }
}

fn one(schema: &Value, default: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let node = structural::node(schema);
    if prune::pruned(&node, default) != *default {
        errors.push(FieldError::invalid(*path, default.clone(), "must not have unknown fields"));
    }
    let base = path.to_string();
    if flag(schema, "x-kubernetes-embedded-resource") {
        let found = validation::embedded_at(&node, default, &base);
        if !found.is_empty() {
            errors.extend(found);
            return;
        }
    }
    errors.extend(validation::value_at(&node, default, &base));
}
