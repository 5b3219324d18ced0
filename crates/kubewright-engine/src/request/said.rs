//! Bodies that say to be something else than their place is for. Kubernetes reads a body as what it says to be, and only then compares
//! that with the place: values of wrong types and unknown fields are told before (`k8s.io/apiserver/pkg/endpoints/handlers/create.go`).

use std::borrow::Cow;

use kubewright_codec::body::Origin;
use kubewright_kinds::Kind;
use kubewright_meta::ApiError;
use kubewright_schema::Schema;
use serde_json::{Value, json};

use super::body::{FieldValidation, complain};
use super::type_of_body::{self, Mismatch, Wanted};

/// The answer to a body of another built-in type.
pub(super) fn refuse(
    wanted: &Wanted<'_>,
    mismatch: &Mismatch,
    (value, origin): (&Value, &Origin),
    validation: FieldValidation,
    warnings: &mut Vec<String>,
) -> ApiError {
    let said = type_of_body::said(wanted, value).filter(|_| mismatch.is_known());
    let read = said.map(|said| (said, said.schema().decode(&mut value.clone())));
    let wrong = |said: &Kind, reason: &str| cannot_be_handled(&said.kind, &said.version, wanted.kind, reason);
    match (read, mismatch) {
        (Some((said, Err(reason))), _) => return wrong(said, &reason),
        // What cannot be converted is told before what is unknown.
        (Some((said, Ok(unknown))), Mismatch::Version(_)) => {
            if let Err(reason) = complain(origin, &unknown, false, validation, warnings) {
                return wrong(said, &reason);
            }
        }
        _ => {}
    }
    mismatch.refuse(wanted.kind, origin.text())
}

/// The answer to a custom object that says to be of another kind or version, for which `error` is the answer if all its fields are known.
pub(super) fn refuse_custom(
    kind: &Kind,
    error: ApiError,
    (mut value, origin): (Value, &Origin),
    validation: FieldValidation,
    warnings: &mut Vec<String>,
) -> ApiError {
    let text = |field: &str| value[field].as_str().unwrap_or_default().to_owned();
    let (api_version, given) = (text("apiVersion"), text("kind"));
    if api_version.split('/').count() > 2 {
        return error;
    }
    if given.is_empty() {
        // Where nothing is validated, the text is read straight into the object, of which the place is known.
        return match validation {
            FieldValidation::Ignore => {
                let reason = type_of_body::missing_kind(&String::from_utf8_lossy(origin.text()));
                cannot_be_handled(&kind.kind, &kind.version, &kind.kind, &reason)
            }
            FieldValidation::Warn | FieldValidation::Strict => error,
        };
    }
    let version = api_version.rsplit('/').next().unwrap_or_default();
    let unknown = match decode_custom(kind, &mut value) {
        Ok(unknown) => unknown,
        Err(reason) => return cannot_be_handled(&given, version, &kind.kind, &reason),
    };
    match complain(origin, &unknown, true, validation, warnings) {
        Ok(()) => error,
        Err(_) if api_version.is_empty() => ApiError::bad_request(type_of_body::NO_VERSION),
        Err(reason) => cannot_be_handled(&given, version, &given, &reason),
    }
}

/// Decodes a custom object as what it says to be. Returns its unknown fields.
///
/// # Errors
/// Why it cannot be decoded.
pub(super) fn decode_custom(kind: &Kind, object: &mut Value) -> Result<Vec<String>, String> {
    schema_of_custom(kind, object).decode(object)
}

/// The schema of what a custom object says to be: of another kind than that of its place only the metadata is known, and a version that
/// the definition does not have has no fields (`apiextensions-apiserver/pkg/apiserver/customresource_handler.go`,
/// `unstructuredSchemaCoercer`).
pub(super) fn schema_of_custom<'k>(kind: &'k Kind, object: &Value) -> Cow<'k, Schema> {
    let api_version = object["apiVersion"].as_str().unwrap_or_default();
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    if group != kind.group || object["kind"] != *kind.kind {
        let any = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        return Cow::Owned(Schema::custom(&any));
    }
    match kind.custom.as_ref().and_then(|custom| custom.versions.schema(version)) {
        Some(schema) => Cow::Borrowed(schema),
        None => Cow::Owned(Schema::custom(&json!({"type": "object"}))),
    }
}

/// `<Kind> in version "<v>" cannot be handled as a <Kind>: …`.
pub(super) fn cannot_be_handled(given: &str, version: &str, wanted: &str, reason: &str) -> ApiError {
    ApiError::bad_request(format!("{given} in version {version:?} cannot be handled as a {wanted}: {reason}"))
}
