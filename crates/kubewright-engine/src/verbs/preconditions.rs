//! What a write demands of the object that it finds: its uid and its version.

use kubewright_meta::{ApiError, FieldError, object};
use kubewright_store::Revision;
use serde_json::Value;

use crate::request::{Call, WriteOptions, version_of};

/// The uid that a replacement names must be the current one.
pub(super) fn check_uid(
    call: Call<'_>,
    options: &WriteOptions,
    current: &Value,
    next: &Value,
) -> Result<(), ApiError> {
    let uid = object::uid(next);
    if !uid.is_empty() && uid != object::uid(current) {
        return Err(precondition_failed(call, options.dry_run, "UID", uid, object::uid(current)));
    }
    Ok(())
}

/// The version that a write names must be the current one. Returns whether it named one.
pub(super) fn check_version(call: Call<'_>, current: &Value, next: &Value) -> Result<bool, ApiError> {
    let version = version_of(next)?;
    if version == 0 {
        if call.kind.behaviour.conditional_update {
            let error = FieldError::invalid("metadata.resourceVersion", 0, "must be specified for an update");
            return Err(ApiError::invalid_of(&call.kind.group, &call.kind.plural, call.name, &[error]));
        }
        return Ok(false);
    }
    let newest = object::resource_version(current).parse::<u64>().unwrap_or_default();
    if Revision(version) == Revision(newest) { Ok(true) } else { Err(modified(call)) }
}

/// 409: somebody else has changed the object.
pub(super) fn modified(call: Call<'_>) -> ApiError {
    ApiError::conflict(
        call.kind,
        call.name,
        "the object has been modified; please apply your changes to the latest version and try again",
    )
}

/// 409: a precondition does not hold, in the words of the storage layer (`k8s.io/apiserver/pkg/storage/errors.go`). What is done
/// on trial does not reach the layer that knows where the registry begins.
pub(super) fn precondition_failed(
    call: Call<'_>,
    dry_run: bool,
    what: &str,
    given: &str,
    current: &str,
) -> ApiError {
    let root = if dry_run { "" } else { "/registry" };
    let path = format!("{root}/{}/{}", call.kind.storage_prefix(), call.key());
    ApiError::conflict(
        call.kind,
        call.name,
        &format!(
            "StorageError: invalid object, Code: 4, Key: {path}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: {what} in precondition: {given}, {what} in object meta: {current}"
        ),
    )
}
