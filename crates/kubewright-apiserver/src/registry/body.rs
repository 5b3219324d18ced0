//! From a decoded body to an object of a kind: its type is checked, unknown fields are found, defaults are set.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{encode, object};
use crate::error::ApiError;
use crate::field::FieldError;
use crate::http::body::Decoded;
use crate::kinds::{Kind, Role};
use crate::patch::{Change, type_name};
use crate::schema::definition;

/// What becomes of fields that the kind does not have, and of members that stand twice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FieldValidation {
    /// They are dropped.
    Ignore,
    /// They are dropped, and the client is warned.
    #[default]
    Warn,
    /// The request is refused.
    Strict,
}

/// An object of `kind` from a body: typed, pruned, not yet defaulted. Warnings are added to `warnings`.
///
/// # Errors
/// 400 when it is of another kind or version, has values of wrong types, or is not valid under [`FieldValidation::Strict`].
pub(super) fn object_of(
    kind: &Kind,
    decoded: Decoded,
    validation: FieldValidation,
    warnings: &mut Vec<String>,
) -> Result<Value, ApiError> {
    let Decoded { mut value, duplicates } = decoded;
    if value.is_null() {
        value = Value::Object(serde_json::Map::new());
    }
    check_type(kind, &value)?;
    let doubled: Vec<String> = duplicates.iter().map(|path| format!("duplicate field {path:?}")).collect();
    fit(kind, &mut value, &doubled, validation, warnings)
        .map_err(|reason| cannot_be_handled(kind, &reason))?;
    warnings.extend(single_owners(&mut value, ""));
    Ok(value)
}

/// What a patch makes of an object of `kind`: typed, pruned, not yet defaulted. Warnings are added to `warnings`.
///
/// # Errors
/// What the patch itself has, and 422 where [`object_of`] has 400 (`k8s.io/apiserver/pkg/endpoints/handlers/patch.go`).
pub(super) fn patched(
    kind: &Kind,
    change: &Change,
    current: &Value,
    validation: FieldValidation,
    warnings: &mut Vec<String>,
) -> Result<Value, ApiError> {
    let mut value = change.apply(current)?;
    if kind.custom.is_some() {
        check_custom_type(kind, &value)?;
    } else {
        check_type(kind, &value).map_err(|error| of_patch(value.to_string(), &error.message))?;
    }
    if let Err(reason) = fit(kind, &mut value, &change.complaints, validation, warnings) {
        // The answer quotes the patch, or else the object before anything was dropped from it.
        let quoted = match change.quoted() {
            Some(quoted) => quoted,
            None => change.apply(current)?.to_string(),
        };
        return Err(of_patch(quoted, &reason));
    }
    warnings.extend(single_owners(&mut value, " after mutating admission happens"));
    Ok(value)
}

/// What an applied configuration has made of an object of `kind`: typed, not yet defaulted.
///
/// # Errors
/// 422 when it is no object of the kind.
pub(super) fn typed(kind: &Kind, mut value: Value, warnings: &mut Vec<String>) -> Result<Value, ApiError> {
    let made = value.to_string();
    fit(kind, &mut value, &[], FieldValidation::Ignore, warnings)
        .map_err(|reason| of_patch(made, &reason))?;
    warnings.extend(single_owners(&mut value, " after mutating admission happens"));
    Ok(value)
}

/// 422: what a patch makes of an object is none.
pub(super) fn of_patch(quoted: String, reason: &str) -> ApiError {
    ApiError::invalid_of("", "", "", &[FieldError::invalid("patch", quoted, reason)])
}

/// Types and prunes an object, as strictly as asked for.
fn fit(
    kind: &Kind,
    value: &mut Value,
    complaints: &[String],
    validation: FieldValidation,
    warnings: &mut Vec<String>,
) -> Result<(), String> {
    encode::set_type(kind, value);
    let unknown = kind.schema().decode(value)?;
    object::meta_mut(value);
    let unknown = unknown.iter().map(|path| format!("unknown field {path:?}"));
    let complaints: Vec<String> = complaints.iter().cloned().chain(unknown).collect();
    match validation {
        FieldValidation::Strict if !complaints.is_empty() => {
            return Err(format!("strict decoding error: {}", complaints.join(", ")));
        }
        FieldValidation::Warn => warnings.extend(complaints),
        FieldValidation::Strict | FieldValidation::Ignore => {}
    }
    Ok(())
}

/// Keeps the first reference to each owner; a warning names the others
/// (`k8s.io/apiserver/pkg/endpoints/handlers/create.go`, `dedupOwnerReferencesAndAddWarning`).
fn single_owners(value: &mut Value, when: &str) -> Option<String> {
    let Some(Value::Array(owners)) = object::meta_mut(value).get_mut("ownerReferences") else { return None };
    let mut seen = BTreeSet::new();
    let mut doubled = Vec::new();
    owners.retain(|owner| {
        let uid = owner["uid"].as_str().unwrap_or_default();
        let first = seen.insert(uid.to_owned());
        if !first {
            doubled.push(uid.to_owned());
        }
        first
    });
    (!doubled.is_empty()).then(|| {
        format!(
            ".metadata.ownerReferences contains duplicate entries{when}; API server dedups owner references in 1.20+, and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: {}",
            doubled.join(", ")
        )
    })
}

/// Sets what the schema and the kind set by default.
pub(crate) fn default(kind: &Kind, value: &mut Value) {
    kind.schema().default(value);
    (kind.rules.default)(value);
    if kind.behaviour.role == Role::Definition {
        definition::default(value);
    }
}

/// `<Kind> in version "<v>" cannot be handled as a <Kind>: …`.
fn cannot_be_handled(kind: &Kind, reason: &str) -> ApiError {
    ApiError::bad_request(format!(
        "{} in version {:?} cannot be handled as a {}: {reason}",
        kind.kind, kind.version, kind.kind
    ))
}

fn check_type(kind: &Kind, value: &Value) -> Result<(), ApiError> {
    if !value.is_object() {
        return Err(unrecognized(
            kind,
            &format!("json: cannot unmarshal {} into Go value", type_name(value)),
        ));
    }
    let given_version = value["apiVersion"].as_str().unwrap_or_default();
    let given_kind = value["kind"].as_str().unwrap_or_default();
    let same_version = given_version.is_empty() || given_version == kind.api_version();
    let same_kind = given_kind.is_empty() || given_kind == kind.kind;
    if kind.custom.is_some() || given_kind.is_empty() || given_version.is_empty() {
        if !same_version {
            return Err(ApiError::bad_request(format!(
                "the API version in the data ({given_version}) does not match the expected API version ({})",
                kind.api_version()
            )));
        }
        if !same_kind {
            return Err(ApiError::bad_request(format!(
                "{given_kind} in version {:?} cannot be handled as a {}: kind does not match",
                kind.version, kind.kind
            )));
        }
        return Ok(());
    }
    if same_version && same_kind {
        return Ok(());
    }
    Err(ApiError::bad_request(format!(
        "the API version and kind in the data ({given_version}, {given_kind}) do not match the expected ones ({}, {})",
        kind.api_version(),
        kind.kind
    )))
}

/// A custom object may be patched to anything; what it says to be is a rule like any other
/// (`apiextensions-apiserver/pkg/registry/customresource/validator.go`).
fn check_custom_type(kind: &Kind, value: &Value) -> Result<(), ApiError> {
    let (version, name) =
        (value["apiVersion"].as_str().unwrap_or_default(), value["kind"].as_str().unwrap_or_default());
    let mut errors = Vec::new();
    if name != kind.kind {
        errors.push(FieldError::invalid("kind", name, format!("must be {}", kind.kind)));
    }
    if version != kind.api_version() {
        errors.push(FieldError::invalid("apiVersion", version, format!("must be {}", kind.api_version())));
    }
    if errors.is_empty() {
        return Ok(());
    }
    Err(ApiError::invalid_of(&kind.group, name, object::name(value), &errors))
}

/// The answer to a body that is no object of any kind.
#[must_use]
pub fn unrecognized(kind: &Kind, reason: &str) -> ApiError {
    ApiError::bad_request(format!(
        "the object provided is unrecognized (must be of type {}): couldn't get version/kind; json parse error: {reason}",
        kind.kind
    ))
}
