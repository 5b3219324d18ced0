//! Objects that cannot be read: they are stored in a version that their definition no longer has
//! (`apiextensions-apiserver/pkg/apiserver/conversion/converter.go`). From v1.37 on an error says which objects these are
//! (`k8s.io/apiserver/pkg/storage/etcd3/corrupt_obj_deleter.go`), and they may be deleted unread.

use http::StatusCode;
use kubewright_meta::ApiError;
use kubewright_store::Entry;
use serde_json::{Value, json};

use super::encode::stored_version;
use super::{Kind, Summary};

/// The feature by which they are named, and may be deleted.
const GATE: &str = "AllowUnsafeMalformedObjectDeletion";

/// So many are told of in one error.
const MOST: usize = 100;

/// Whether the kind's server names them, and deletes them when it is asked to.
#[must_use]
pub fn are_named(kind: &Kind) -> bool {
    kubewright_spec::has_feature(kind.kubernetes(), GATE)
}

/// Why an object cannot be read.
#[must_use]
pub fn why(kind: &Kind, entry: &Entry<Summary>) -> Option<String> {
    let lost = kind.custom.as_ref().and_then(|custom| custom.versions.unreadable())?;
    let is_lost = lost.rsplit('/').next() == Some(stored_version(&entry.bytes));
    is_lost.then(|| cannot_convert(lost))
}

/// An object that is read or deleted has to be readable.
///
/// # Errors
/// 500.
pub fn check(kind: &Kind, entry: &Entry<Summary>) -> Result<(), ApiError> {
    match why(kind, entry) {
        None => Ok(()),
        Some(why) if are_named(kind) => {
            Err(ApiError::internal(&corrupt(&place(kind, "", &entry.key), &undecodable(entry, &why))))
        }
        Some(why) => Err(ApiError::unexplained(why)),
    }
}

/// An object that is changed has to be readable.
///
/// # Errors
/// 500.
pub fn check_to_write(kind: &Kind, entry: &Entry<Summary>) -> Result<(), ApiError> {
    match why(kind, entry) {
        None => Ok(()),
        Some(why) if are_named(kind) => Err(ApiError::unexplained(undecodable(entry, &why))),
        Some(why) => Err(ApiError::unexplained(why)),
    }
}

/// All of a list have to be readable.
///
/// # Errors
/// 500.
pub fn check_list<'a>(
    kind: &Kind,
    entries: impl Iterator<Item = &'a Entry<Summary>>,
) -> Result<(), ApiError> {
    let mut wrong = entries.filter_map(|entry| Some((entry, why(kind, entry)?)));
    if !are_named(kind) {
        return wrong.next().map_or(Ok(()), |(_, why)| Err(ApiError::unexplained(why)));
    }
    let told: Vec<(String, String)> = wrong
        .take(MOST)
        .map(|(entry, why)| {
            let at = stored_place(kind, &entry.key);
            let told = corrupt(&at, &undecodable(entry, &why));
            (at, told)
        })
        .collect();
    if told.is_empty() { Ok(()) } else { Err(not_read(kind, &told)) }
}

/// All objects of a kind have to be readable where they are read into one cache, from which lists and watches are served.
///
/// # Errors
/// 429, since kube-apiserver tries again until the cache is there (`k8s.io/apiserver/pkg/storage/cacher`).
pub fn check_cache<'a>(
    kind: &Kind,
    entries: impl Iterator<Item = &'a Entry<Summary>>,
) -> Result<(), ApiError> {
    if kind.custom.as_ref().and_then(|custom| custom.versions.unreadable()).is_none() {
        return Ok(());
    }
    check_list(kind, entries).map_err(|error| not_cached(kind, &error))
}

/// 429: the cache that lists and watches of `kind` are served from cannot be filled.
#[must_use]
pub fn not_cached(kind: &Kind, why: &ApiError) -> ApiError {
    let what = match are_named(kind) {
        true => "<unspecified>".to_owned(),
        false => format!("{}, Kind={}", kind.api_version(), kind.kind),
    };
    let message = format!("storage is (re)initializing: failed to list {what}: {why}");
    ApiError::new(StatusCode::TOO_MANY_REQUESTS, "TooManyRequests", message)
        .with_details(json!({"retryAfterSeconds": 1}))
}

/// 409: an object was to be deleted unread, and can be read.
#[must_use]
pub fn is_readable(kind: &Kind, name: &str, key: &str) -> ApiError {
    let told = storage_error(
        "invalid object",
        4,
        &stored_place(kind, key),
        "unsafe deletion is not allowed because the object is decodable from storage",
    );
    ApiError::conflict(kind, name, &told)
}

fn cannot_convert(lost: &str) -> String {
    format!("request to convert CR from an invalid group/version: {lost}")
}

fn undecodable(entry: &Entry<Summary>, why: &str) -> String {
    format!("object not decodable revision={}: {why}", entry.revision)
}

fn corrupt(key: &str, why: &str) -> String {
    storage_error("corrupt object", 7, key, why)
}

fn storage_error(what: &str, code: u8, key: &str, why: &str) -> String {
    format!("StorageError: {what}, Code: {code}, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: {why}")
}

/// Where etcd has it.
fn stored_place(kind: &Kind, key: &str) -> String {
    place(kind, "/registry", key)
}

/// As kube-apiserver calls the place of an object in its storage (`default_storage_factory_builder.go`).
fn place(kind: &Kind, root: &str, key: &str) -> String {
    let has_group =
        kind.custom.is_some() || matches!(&*kind.group, "apiextensions.k8s.io" | "apiregistration.k8s.io");
    let resource = match (&*kind.group, &*kind.plural) {
        ("", "replicationcontrollers") => "controllers",
        ("", "endpoints") => "services/endpoints",
        ("", "nodes") => "minions",
        ("", "services") => "services/specs",
        ("networking.k8s.io", "ingresses") => "ingress",
        (_, plural) => plural,
    };
    match has_group {
        true => format!("{root}/{}/{resource}/{key}", kind.group),
        false => format!("{root}/{resource}/{key}"),
    }
}

/// 500: some of the objects of a list cannot be read, each told by its place.
fn not_read(kind: &Kind, told: &[(String, String)]) -> ApiError {
    let resource = match kind.group.is_empty() {
        true => kind.plural.to_string(),
        false => format!("{}.{}", kind.plural, kind.group),
    };
    let mut message = format!("failed to read one or more {resource} from the storage: {}", told[0].1);
    if told.len() > 1 {
        message += &format!(" (and {} more)", told.len() - 1);
    }
    let mut causes: Vec<Value> = told
        .iter()
        .map(|(at, told)| json!({"reason": "UnexpectedServerResponse", "message": told, "field": at}))
        .collect();
    if told.len() == MOST {
        let why = "too many errors, the list is truncated";
        causes.push(json!({"reason": "FieldValueTooMany", "message": why}));
    }
    let mut details = json!({"name": "list", "kind": kind.plural, "causes": causes});
    if !kind.group.is_empty() {
        details["group"] = kind.group.as_str().into();
    }
    ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "StorageReadError", message).with_details(details)
}
