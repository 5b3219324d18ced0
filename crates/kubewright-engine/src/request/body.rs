//! From a decoded body to an object of a kind: its type is checked, unknown fields are found, defaults are set.

use std::collections::BTreeSet;

use kubewright_codec::body::{Decoded, Origin};
use kubewright_kinds::definition;
use kubewright_kinds::{Kind, Role, encode};
use kubewright_meta::{ApiError, FieldError, object};
use kubewright_schema::patch::Change;
use kubewright_schema::{Encoding, Maker};
use serde_json::Value;

use super::said;
use super::type_of_body::{self, Wanted};

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
pub(crate) fn object_of(
    kind: &Kind,
    decoded: Decoded,
    validation: FieldValidation,
    warnings: &mut Vec<String>,
) -> Result<Value, ApiError> {
    let Decoded { mut value, mut origin } = decoded;
    if value.is_null() {
        value = Value::Object(serde_json::Map::new());
    }
    // The first is read into what the others have made of it, as the decoder has come by them.
    for earlier in origin.take_earlier().into_iter().rev() {
        kind.schema().put_under(&mut value, &earlier.pointer, earlier.value);
    }
    if kind.custom.is_some() {
        if let Err(error) = type_of_body::check_custom(kind, &value, origin.text()) {
            return Err(said::refuse_custom(kind, error, (value, &origin), validation, warnings));
        }
    } else if let Err(mismatch) = type_of_body::check(kind, &value) {
        return Err(said::refuse(&Wanted::of(kind), &mismatch, (&value, &origin), validation, warnings));
    }
    let said = value["kind"].as_str().filter(|_| type_of_body::says_other(kind, &value));
    let said = said.unwrap_or(&kind.kind).to_owned();
    let refused = |wanted: &str, reason: &str| said::cannot_be_handled(&said, &kind.version, wanted, reason);
    let unknown = decode(kind, &mut value, Maker::Client).map_err(|reason| refused(&kind.kind, &reason))?;
    complain(&origin, &unknown, kind.custom.is_some(), validation, warnings)
        .map_err(|reason| refused(&said, &reason))?;
    warnings.extend(single_owners(&mut value, ""));
    Ok(value)
}

/// A review of `kind`, which is answered and not stored, from a body: as for an object, and without texts that say nothing,
/// as Go's encoder leaves them out of the answer.
pub fn review_of(
    kind: &Kind,
    decoded: Decoded,
    validation: FieldValidation,
    warnings: &mut Vec<String>,
) -> Result<Value, ApiError> {
    let mut review = object_of(kind, decoded, validation, warnings)?;
    for field in ["uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"] {
        object::set_meta(&mut review, field, None);
    }
    if !kind.namespaced() {
        object::set_meta(&mut review, "namespace", None);
    }
    kind.schema().leave_out(&mut review, Encoding::Json);
    without_empty_texts(&mut review["spec"]);
    object::as_map(&mut review).remove("status");
    Ok(review)
}

fn without_empty_texts(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.retain(|_, member| *member != "" && !member.is_null());
            members.values_mut().for_each(without_empty_texts);
        }
        Value::Array(items) => items.iter_mut().for_each(without_empty_texts),
        _ => {}
    }
}

/// What a patch makes of an object of `kind`: typed, pruned, not yet defaulted. Warnings are added to `warnings`.
///
/// # Errors
/// What the patch itself has, and 422 where [`object_of`] has 400 (`k8s.io/apiserver/pkg/endpoints/handlers/patch.go`).
pub(crate) fn patched(
    kind: &Kind,
    change: &Change,
    current: &Value,
    validation: FieldValidation,
    warnings: &mut Vec<String>,
) -> Result<Value, ApiError> {
    let mut value = change.apply(current)?;
    let mut mistyped = None;
    let mut unknown = Vec::new();
    let maker = change.maker();
    if maker == Maker::Merge {
        // The object is made of Go's type of the kind, whatever it says to be (`FromUnstructured`).
        for (field, own) in [("apiVersion", kind.api_version()), ("kind", kind.kind.clone())] {
            match &value[field] {
                Value::Null => {}
                Value::String(_) => value[field] = own.into(),
                other => {
                    let why = match other.is_i64() {
                        true => "cannot convert int64 to string",
                        false => "unrecognized type: string",
                    };
                    return Err(of_patch(change.quoted(current).unwrap_or_default(), why));
                }
            }
        }
    } else {
        type_of_body::read(kind, &value).map_err(|reason| of_patch(value.to_string(), &reason))?;
        if type_of_body::has_no_version(&value) {
            if kind.custom.is_some() {
                mistyped = Some(ApiError::internal(type_of_body::NO_VERSION));
            } else {
                unknown = type_of_body::as_internal(kind, &mut value);
            }
        }
    }
    let origin = Origin::Patch { complaints: change.complaints.clone() };
    let fits = decode(kind, &mut value, maker).and_then(|mut more| {
        unknown.append(&mut more);
        complain(&origin, &unknown, kind.custom.is_some(), validation, warnings)
    });
    if let Err(reason) = fits {
        // The answer quotes the patch and what converting it says, or else the object before anything was dropped from it.
        return Err(match change.quoted(current) {
            Some(quoted) => of_patch(quoted, &reason),
            None => of_patch(change.apply(current)?.to_string(), &reason),
        });
    }
    // That the name is another one is found before.
    if let Some(error) = mistyped.filter(|_| object::name(&value) == object::name(current)) {
        return Err(error);
    }
    warnings.extend(single_owners(&mut value, AFTER_ADMISSION));
    Ok(value)
}

/// What an applied configuration has made of an object of `kind`: typed, not yet defaulted.
///
/// # Errors
/// Why it is no object of the kind.
pub(crate) fn typed(kind: &Kind, mut value: Value, warnings: &mut Vec<String>) -> Result<Value, String> {
    decode(kind, &mut value, Maker::Merge)?;
    warnings.extend(single_owners(&mut value, AFTER_ADMISSION));
    Ok(value)
}

/// 422: what a patch makes of an object is none.
pub(crate) fn of_patch(quoted: String, reason: &str) -> ApiError {
    ApiError::invalid_of("", "", "", &[FieldError::invalid("patch", quoted, reason)])
}

/// Types and prunes an object. One of a custom kind that says to be another is read as what it says, and goes on saying so: validation
/// finds that. Quantities in lists that are one value stay as they were sent ([`Schema::settle`]). Returns its unknown fields.
///
/// [`Schema::settle`]: kubewright_schema::Schema::settle
fn decode(kind: &Kind, value: &mut Value, by: Maker) -> Result<Vec<String>, String> {
    let unknown = if type_of_body::says_other(kind, value) {
        said::decode_custom(kind, value)?
    } else {
        encode::set_type(kind, value);
        kind.schema().decode_made(value, by)?
    };
    object::meta_mut(value);
    Ok(unknown)
}

/// Refuses, or warns of, fields that are unknown and those that stand twice.
pub(super) fn complain(
    origin: &Origin,
    unknown: &[String],
    custom: bool,
    validation: FieldValidation,
    warnings: &mut Vec<String>,
) -> Result<(), String> {
    match validation {
        FieldValidation::Strict => return origin.strict_error(unknown, custom).map_or(Ok(()), Err),
        FieldValidation::Warn => warnings.extend(origin.complaints(unknown, custom)),
        FieldValidation::Ignore => {}
    }
    Ok(())
}

/// When owners that are named twice are found, as the warning says it.
pub(crate) const AFTER_ADMISSION: &str = " after mutating admission happens";

/// Keeps the first of references that are the same in all that they say; a warning names the owners of the others
/// (`k8s.io/apiserver/pkg/endpoints/handlers/rest.go`, `dedupOwnerReferencesAndAddWarning`).
pub(crate) fn single_owners(value: &mut Value, when: &str) -> Option<String> {
    let Some(Value::Array(owners)) = object::meta_mut(value).get_mut("ownerReferences") else { return None };
    let mut seen = BTreeSet::new();
    let mut doubled = Vec::new();
    owners.retain(|owner| {
        let first = seen.insert(owner.to_string());
        if !first {
            doubled.push(owner["uid"].as_str().unwrap_or_default().to_owned());
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
pub fn default(kind: &Kind, value: &mut Value) {
    if type_of_body::says_other(kind, value) {
        said::schema_of_custom(kind, value).default(value);
    } else {
        kind.schema().default(value);
    }
    by_rules(kind, value);
}

/// Sets the defaults of what applying a configuration, or admission, has made. A null that no schema allows stays, to be refused: Kubernetes
/// drops nulls where it decodes a body, and decodes no such custom object
/// (`k8s.io/apiextensions-apiserver/pkg/apiserver/customresource_handler.go`, `schemaCoercingDecoder`).
pub(crate) fn default_changed(kind: &Kind, value: &mut Value) {
    kind.schema().default_with_nulls(value);
    by_rules(kind, value);
}

fn by_rules(kind: &Kind, value: &mut Value) {
    kind.rules.default(value);
    if kind.behaviour.role == Role::Definition {
        definition::default(value);
    }
}
