//! Who owns what a write has changed: the engine's side of [`kubewright_schema::fields`].

use std::borrow::Cow;

use kubewright_kinds::{Custom, Kind, ServedVersions, encode};
use kubewright_meta::{ApiError, object};
use kubewright_schema::Encoding;
use kubewright_schema::fields::{self, Write};
use kubewright_schema::patch::Configuration;
use serde_json::Value;

use super::Part;
use crate::engine::Engine;
use crate::request::{Call, FieldValidation, WriteOptions, body, type_of_body};

/// Gives the fields that a write changes to its manager. Nobody owns what JSON leaves out.
pub fn own(
    engine: &Engine,
    call: Call<'_>,
    subresource: &str,
    options: &WriteOptions,
    live: Option<&Value>,
    next: &mut Value,
) {
    if type_of_body::says_other(call.kind, next) && !is_convertible(call.kind, next) {
        // Nobody can say who owns what, and so nobody does (`FieldManager.UpdateNoErrors`).
        return object::set_meta(next, "managedFields", None);
    }
    let mut written = as_written(call.kind, next);
    if let Some(complete) = call.kind.rules.complete.filter(|_| live.is_none()) {
        complete(written.to_mut());
    }
    let Cow::Owned(mut written) = written else {
        return writing(engine, call, subresource, options, |write| write.update(live, next));
    };
    // An empty list of owners is not as good as none: it asks for all to be forgotten.
    object::copy_meta(&mut written, next, "managedFields");
    writing(engine, call, subresource, options, |write| write.update(live, &mut written));
    object::copy_meta(next, &written, "managedFields");
}

/// Whether a custom object that says to be of another kind or version is one of another version.
fn is_convertible(kind: &Kind, object: &Value) -> bool {
    let api_version = object["apiVersion"].as_str().unwrap_or_default();
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let is_version = |custom: &Custom| custom.versions.schema(version).is_some();
    object["kind"] == *kind.kind && group == kind.group && kind.custom.as_ref().is_some_and(is_version)
}

/// An object in its version, as owners are told of it, and of a kind that is stored as another by way of that.
fn as_written<'v>(kind: &Kind, object: &'v Value) -> Cow<'v, Value> {
    let written = kind.schema().written(object, Encoding::Owned);
    if kind.custom.is_some() || kind.is_storage() {
        return written;
    }
    let mut written = written.into_owned();
    kind.to_storage(&mut written);
    kind.to_served(&mut written);
    encode::set_type(kind, &mut written);
    Cow::Owned(written)
}

/// What applying a configuration makes of an object.
#[derive(Clone)]
pub(super) struct Applied {
    /// The object: typed, owned, not yet defaulted.
    pub(super) object: Value,
    /// What kube-apiserver stores of it, though it is not read: it decodes no custom object that was applied.
    pub(super) unread: Unread,
}

/// Which parts of an object are stored with something that is not read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Unread {
    metadata: bool,
    status: bool,
    rest: bool,
}

impl Unread {
    /// What is stored and not read of a custom object that a configuration made; `unknown` are the fields of it that its schema does not
    /// have.
    fn of(kind: &Kind, config: &Configuration, unknown: &[String]) -> Self {
        if kind.custom.is_none() {
            return Self::default();
        }
        let is_status = |path: &String| path == "status" || path.starts_with("status.");
        Self {
            metadata: says_nothing(&config.value["metadata"]),
            status: unknown.iter().any(is_status),
            rest: unknown.iter().any(|path| !is_status(path)),
        }
    }

    /// Whether the write of a part leaves any. The next write of what is read is a write then, although nothing changes.
    pub(super) fn is_left_by(self, kind: &Kind, part: Part) -> bool {
        match part {
            Part::Main => self.metadata || self.is_wanted(kind),
            Part::Status => self.status,
            Part::Member(_) | Part::Trusted => false,
        }
    }

    /// Whether what is wanted has any: each time that it is applied this is another generation.
    pub(super) fn is_wanted(self, kind: &Kind) -> bool {
        self.rest || self.status && !kind.has_status()
    }
}

/// What applying a configuration makes of an object. Warnings are added to `warnings`.
///
/// # Errors
/// As [`Write::apply`], and what strict decoding has against the configuration.
pub(super) fn applied(
    engine: &Engine,
    call: Call<'_>,
    subresource: &str,
    config: &Configuration,
    options: &WriteOptions,
    live: Option<&Value>,
    warnings: &mut Vec<String>,
) -> Result<Applied, ApiError> {
    let force = options.force;
    let value = writing(engine, call, subresource, options, |write| write.apply(live, &config.value, force))?;
    strict(config, options.validation, warnings)?;
    let failed = |why: String| unconvertible(call.kind, &config.value, &why);
    if call.kind.custom.is_none()
        && let Some(given) = config.value["metadata"].get("managedFields")
    {
        // It is read with the rest, although nobody sees it.
        let mut read = value.clone();
        object::set_meta(&mut read, "managedFields", Some(given.clone()));
        body::typed(call.kind, read, &mut Vec::new()).map_err(failed)?;
    }
    let (object, unknown) = body::typed(call.kind, value, warnings).map_err(failed)?;
    Ok(Applied { object, unread: Unread::of(call.kind, config, &unknown) })
}

/// The members of metadata that kube-apiserver stores of an applied custom object although there is nothing in them.
const STORED_EMPTY: [&str; 6] =
    ["annotations", "deletionGracePeriodSeconds", "finalizers", "generateName", "labels", "ownerReferences"];

/// Whether metadata says something without contents.
fn says_nothing(metadata: &Value) -> bool {
    let is_empty = |value: &Value| match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        _ => false,
    };
    // A label without a value is stored as none, and read as an empty one.
    let texts = ["annotations", "labels"].into_iter().filter_map(|member| metadata[member].as_object());
    texts.flat_map(serde_json::Map::values).any(Value::is_null)
        || STORED_EMPTY.iter().any(|member| metadata.get(member).is_some_and(is_empty))
}

fn writing<T>(
    engine: &Engine,
    call: Call<'_>,
    subresource: &str,
    options: &WriteOptions,
    does: impl FnOnce(&Write<'_>) -> T,
) -> T {
    let now = object::time(engine.world().clock.now());
    let kinds = engine.kinds();
    does(&Write {
        versions: &ServedVersions { kinds: &kinds, kind: call.kind },
        manager: &options.manager,
        subresource,
        now: now.as_str().unwrap_or_default(),
    })
}

/// 500 without a reason, as in Kubernetes: what applying a configuration makes of an object is none of the kind
/// (`k8s.io/apimachinery/pkg/util/managedfields/internal/structuredmerge.go`, `Apply`).
fn unconvertible(kind: &Kind, config: &Value, why: &str) -> ApiError {
    ApiError::unexplained(format!(
        "failed to convert new object ({}) to proper version: unable to convert unstructured object to {}: {why}",
        fields::about(kind, config),
        fields::type_of(kind),
    ))
}

/// What strict decoding has against a configuration: members that stand twice
/// (`k8s.io/apiserver/pkg/endpoints/handlers/patch.go`, `applyPatcher`).
pub(super) fn strict(
    config: &Configuration,
    validation: FieldValidation,
    warnings: &mut Vec<String>,
) -> Result<(), ApiError> {
    if config.repeated.is_empty() {
        return Ok(());
    }
    match validation {
        FieldValidation::Strict => Err(ApiError::bad_request(format!(
            "error strict decoding YAML: error converting YAML to JSON: yaml: unmarshal errors:\n  {}",
            config.repeated.join("\n  ")
        ))),
        FieldValidation::Warn => {
            warnings.extend_from_slice(&config.repeated);
            Ok(())
        }
        FieldValidation::Ignore => Ok(()),
    }
}
