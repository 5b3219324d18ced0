//! The fields that field selectors of a custom kind may name.

use std::collections::BTreeSet;

use serde_json::Value;

use super::path::Path;
use super::{part, text};
use crate::field::{FieldError, Problem};

/// At most so many.
const MOST: usize = 8;

/// What is wrong with `selectableFields`.
pub(super) fn validate(selectable: &Value, schema: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let mut seen = BTreeSet::new();
    for (index, one) in selectable.as_array().into_iter().flatten().enumerate() {
        let at = path.index(index);
        let json_path = text(one, "jsonPath");
        if json_path.is_empty() {
            errors.push(FieldError::required(at.child("jsonPath"), ""));
            continue;
        }
        let field = match resolve(json_path, schema) {
            Ok(field) => field,
            Err(why) => {
                let detail = format!("is an invalid path: {why}");
                errors.push(FieldError::invalid(at.child("jsonPath"), json_path, detail));
                continue;
            }
        };
        if json_path == ".metadata" || json_path.starts_with(".metadata.") {
            let detail = "must not point to fields in metadata";
            errors.push(FieldError::invalid(at.child("jsonPath"), json_path, detail));
        }
        if !matches!(text(field, "type"), "string" | "boolean" | "integer") {
            let detail = "must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed.";
            errors.push(FieldError::invalid(at.child("jsonPath"), json_path, detail));
        }
        if !seen.insert(json_path) {
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

/// Follows a path such as `.spec.color`.
fn resolve<'a>(json_path: &str, schema: &'a Value) -> Result<&'a Value, String> {
    let mut here = schema;
    let mut rest = json_path;
    while !rest.is_empty() {
        if rest.starts_with('[') {
            return Err("array notation is not allowed".to_owned());
        }
        let Some(after) = rest.strip_prefix('.') else {
            let token = rest.split(['.', '[', ']']).next().filter(|token| !token.is_empty()).unwrap_or("]");
            return Err(format!("expected [ or . but got: {token}"));
        };
        let name = &after[..after.find(['.', '[', ']']).unwrap_or(after.len())];
        if after.is_empty() {
            return Err("unexpected end of JSON path".to_owned());
        }
        here = match (part(here, "properties"), part(here, "additionalProperties")) {
            (Some(properties), _) => properties.get(name),
            (None, Some(values)) => Some(values).filter(|values| values.is_object()),
            (None, None) => None,
        }
        .ok_or("does not refer to a valid field")?;
        rest = &after[name.len()..];
    }
    Ok(here)
}
