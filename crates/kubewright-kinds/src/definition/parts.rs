//! The validation of the small parts of a definition: names, the deprecation warning, the scale subresource, columns.

use std::sync::LazyLock;

use kubewright_meta::FieldError;
use kubewright_schema::names::label_1035;
use regex::Regex;
use serde_json::Value;

use super::path::Path;
use super::{flag, part, text, texts};

/// Names, those asked for and those accepted alike.
pub(super) fn resource_names(names: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    for name in ["plural", "singular"] {
        let value = text(names, name);
        if let (false, Some(why)) = (value.is_empty(), label_1035(value)) {
            errors.push(FieldError::invalid(path.child(name), value, why));
        }
    }
    for name in ["kind", "listKind"] {
        let value = text(names, name);
        if let (false, Some(why)) = (value.is_empty(), label_1035(&value.to_lowercase())) {
            let detail = format!("may have mixed case, but should otherwise match: {why}");
            errors.push(FieldError::invalid(path.child(name), value, detail));
        }
    }
    let all = |key: &str, errors: &mut Vec<FieldError>| {
        for (index, name) in texts(names, key).into_iter().enumerate() {
            if let Some(why) = label_1035(&name) {
                errors.push(FieldError::invalid(path.child(key).index(index), name, why));
            }
        }
    };
    all("shortNames", errors);
    let kind = text(names, "kind");
    if !kind.is_empty() && kind == text(names, "listKind") {
        errors.push(FieldError::invalid(
            path.child("listKind"),
            kind,
            "kind and listKind may not be the same",
        ));
    }
    all("categories", errors);
}

/// Where the scale subresource finds its numbers.
pub(super) fn scale(subresources: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let Some(scale) = part(subresources, "scale") else { return };
    let mut one = |key: &str, field: &str, below: &[&str], detail: &str, required: bool| {
        let at = path.child(field);
        let value = text(scale, key);
        if value.is_empty() {
            if required {
                errors.push(FieldError::required(at, ""));
            }
        } else if !value.starts_with('.') {
            errors.push(FieldError::invalid(at, value, "must be a simple json path starting with ."));
        } else if !below.iter().any(|below| value.starts_with(below)) {
            errors.push(FieldError::invalid(at, value, detail));
        }
    };
    one("specReplicasPath", "scale.specReplicasPath", &[".spec."], "should be a json path under .spec", true);
    one(
        "statusReplicasPath",
        "scale.statusReplicasPath",
        &[".status."],
        "should be a json path under .status",
        true,
    );
    let either = "should be a json path under either .spec or .status";
    one("labelSelectorPath", "scale.labelSelectorPath", &[".spec.", ".status."], either, false);
}

/// The columns of tables.
pub(super) fn columns(columns: Option<&Value>, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    const TYPES: [&str; 5] = ["boolean", "date", "integer", "number", "string"];
    const FORMATS: [&str; 8] = ["byte", "date", "date-time", "double", "float", "int32", "int64", "password"];
    for (index, column) in columns.and_then(Value::as_array).into_iter().flatten().enumerate() {
        let path = path.index(index);
        if text(column, "name").is_empty() {
            errors.push(FieldError::required(path.child("name"), ""));
        }
        let kinds = format!("must be one of {}", TYPES.join(","));
        match text(column, "type") {
            "" => errors.push(FieldError::required(path.child("type"), kinds)),
            kind if !TYPES.contains(&kind) => {
                errors.push(FieldError::invalid(path.child("type"), kind, kinds));
            }
            _ => {}
        }
        let format = text(column, "format");
        if !format.is_empty() && !FORMATS.contains(&format) {
            let detail = format!("must be one of {}", FORMATS.join(","));
            errors.push(FieldError::invalid(path.child("format"), format, detail));
        }
        match text(column, "jsonPath") {
            "" => errors.push(FieldError::required(path.child("JSONPath"), "")),
            json_path if !json_path.starts_with('.') => {
                let detail = "must be a simple json path starting with .";
                errors.push(FieldError::invalid(path.child("JSONPath"), json_path, detail));
            }
            _ => {}
        }
    }
}

/// The warning of a deprecated version.
pub(super) fn deprecation(version: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let Some(warning) = version.get("deprecationWarning").and_then(Value::as_str) else { return };
    let mut wrong =
        |why: String| errors.push(FieldError::invalid(path.child("deprecationWarning"), warning, why));
    if !flag(version, "deprecated") {
        return wrong("can only be set for deprecated versions".to_owned());
    }
    if warning.len() > 256 {
        wrong("must be <= 256 characters long".to_owned());
    }
    if warning.is_empty() {
        wrong("must not be an empty string".to_owned());
    }
    if let Some((index, _)) = warning.char_indices().find(|(_, one)| !is_printable(*one)) {
        wrong(format!(
            "must only contain printable UTF-8 characters; non-printable character found at index {index}"
        ));
    }
}

/// Whether Go's `unicode.IsPrint` holds: letters, marks, numbers, punctuation, symbols, and the space.
fn is_printable(one: char) -> bool {
    static PRINTABLE: LazyLock<Option<Regex>> =
        LazyLock::new(|| Regex::new(r"^[\p{L}\p{M}\p{N}\p{P}\p{S} ]$").ok());
    let mut text = [0; 4];
    PRINTABLE.as_ref().is_none_or(|printable| printable.is_match(one.encode_utf8(&mut text)))
}
