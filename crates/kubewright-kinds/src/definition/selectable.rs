//! The fields that field selectors of a custom kind may name.

use std::collections::BTreeSet;

use kubewright_meta::FieldError;
use kubewright_meta::field::Problem;
use kubewright_schema::node::Type;
use kubewright_schema::rules::field_path;
use kubewright_schema::structural;
use serde_json::Value;

use super::path::Path;
use super::{schema, text};

/// At most so many.
const MOST: usize = 8;

/// What is wrong with `selectableFields` at `path`, which are fields of a schema; or what it means that there is none, where some are
/// named. `schema_at`: where that stands.
pub(super) fn validate(
    selectable: &Value,
    schema: Result<&Value, &str>,
    (path, schema_at): (&Path<'_>, &str),
    errors: &mut Vec<FieldError>,
) {
    let root = match schema {
        Ok(schema) => {
            if let Some(why) = schema::no_structure(schema) {
                errors.push(FieldError::invalid(schema_at, "", why));
            }
            structural::node(schema)
        }
        Err(_) if selectable.as_array().is_none_or(Vec::is_empty) => return,
        Err(why) => return errors.push(FieldError::invalid(path.to_string(), "", why)),
    };
    let mut seen = BTreeSet::new();
    for (index, one) in selectable.as_array().into_iter().flatten().enumerate() {
        let at = path.index(index);
        let json_path = text(one, "jsonPath");
        if json_path.is_empty() {
            errors.push(FieldError::required(at.child("jsonPath"), ""));
            continue;
        }
        let found = match field_path::follow(json_path, &root, false) {
            Ok(found) => found,
            Err(why) => {
                let detail = format!("is an invalid path: {why}");
                errors.push(FieldError::invalid(at.child("jsonPath"), json_path, detail));
                continue;
            }
        };
        if found.path == "metadata" || found.path.starts_with("metadata.") {
            let detail = "must not point to fields in metadata";
            errors.push(FieldError::invalid(at.child("jsonPath"), json_path, detail));
        }
        if !matches!(found.node.kind, Some(Type::String | Type::Boolean | Type::Integer)) {
            let detail = "must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed.";
            errors.push(FieldError::invalid(at.child("jsonPath"), json_path, detail));
        }
        if !seen.insert(found.path) {
            errors.push(FieldError::duplicate(at.child("jsonPath"), json_path));
        }
    }
    if seen.len() > MOST {
        errors.push(FieldError {
            field: path.to_string(),
            problem: Problem::TooMany(seen.len()),
            detail: format!("must have at most {MOST} items"),
        });
    }
}
