//! Dynamic admission: webhooks and policies, which users configure at run time. They come after the built-in plugins;
//! policies before webhooks.

use kubewright_kinds::built_in::admissionregistration::mutating_admission_policy::MUTATING_ADMISSION_POLICY;
use kubewright_kinds::built_in::admissionregistration::mutating_webhook_configuration::MUTATING_WEBHOOK_CONFIGURATION;
use kubewright_kinds::{BuiltIn, Kind, encode};
use kubewright_meta::ApiError;
use kubewright_schema::Maker;
use serde_json::{Value, json};

use super::policies;
use super::reinvocation::Round;
use super::webhooks;
use super::{Operation, Plugin, Review};
use crate::request::{DeleteOptions, FieldValidation, Propagation, WriteOptions, body, part, type_of_body};

/// What the mutating plugins remember between the two rounds.
#[derive(Default)]
pub(super) struct Rounds {
    policies: Round<policies::Invocation>,
    webhooks: Round<String>,
    is_second: bool,
}

impl Rounds {
    /// Whether something was changed in any of them.
    pub(super) fn have_changed(&self) -> bool {
        self.policies.has_changed() || self.webhooks.has_changed()
    }

    /// Whether everybody is to be asked again: once, after a change.
    pub(super) fn one_more(&mut self) -> bool {
        if self.is_second || !self.have_changed() {
            return false;
        }
        self.is_second = true;
        self.policies.again();
        self.webhooks.again();
        true
    }
}

/// Whether there are policies or webhooks that may change objects.
pub(super) fn may_change(review: &Review<'_>) -> bool {
    let configure: [&BuiltIn; 2] = [&MUTATING_ADMISSION_POLICY, &MUTATING_WEBHOOK_CONFIGURATION];
    let snapshot = review.objects.snapshot();
    configure.iter().any(|kind| snapshot.len(kind.collection()) > 0)
}

/// Lets policies and webhooks change an object, or refuse what is done to it. A deletion has no object to change.
///
/// # Errors
/// The first refusal, with the warnings so far.
pub(super) async fn mutate(
    review: &Review<'_>,
    mut object: Option<&mut Value>,
    rounds: &mut Rounds,
    warnings: &mut Vec<String>,
) -> Result<(), ApiError> {
    let mut outcome = Ok(());
    if review.asks(Plugin::MutatingAdmissionPolicy) {
        outcome = policies::mutate(review, object.as_deref_mut(), &mut rounds.policies);
    }
    if outcome.is_ok() && review.asks(Plugin::MutatingAdmissionWebhook) {
        outcome = webhooks::mutate(review, object, &mut rounds.webhooks, warnings).await;
    }
    outcome.map_err(|error| with_warnings(error, warnings))
}

/// Asks policies and webhooks about an object as it will be committed, or about a deletion.
///
/// # Errors
/// The first refusal, with the warnings so far.
pub(super) async fn validate(
    review: &Review<'_>,
    object: Option<&Value>,
    warnings: &mut Vec<String>,
) -> Result<(), ApiError> {
    let mut outcome = Ok(());
    if review.asks(Plugin::ValidatingAdmissionPolicy) {
        outcome = policies::validate(review, object, warnings);
    }
    if outcome.is_ok() && review.asks(Plugin::ValidatingAdmissionWebhook) {
        outcome = webhooks::validate(review, object, warnings).await;
    }
    if outcome.is_ok()
        && let Some(object) = object
    {
        outcome = policies::authorize(review, object);
    }
    outcome.map_err(|error| with_warnings(error, warnings))
}

/// A refused request warns too.
fn with_warnings(error: ApiError, warnings: &mut Vec<String>) -> ApiError {
    error.with_warnings(std::mem::take(warnings))
}

/// Adds a warning, once. One that cannot stand in a header is dropped, as kube-apiserver does.
pub(super) fn warn(warnings: &mut Vec<String>, warning: &str) {
    if !warning.chars().any(char::is_control) && !warnings.iter().any(|known| known == warning) {
        warnings.push(warning.to_owned());
    }
}

/// What a patch has made of an object of `kind`: typed and defaulted. The body of a subresource is typed and pruned.
/// `strict`: fields that a built-in kind does not have are refused.
///
/// # Errors
/// 500: why it is no object of the kind.
pub(super) fn adopt(
    review: &Review<'_>,
    kind: &Kind,
    mut value: Value,
    strict: bool,
) -> Result<Value, ApiError> {
    let with_own_body = kind.subresource(review.subresource).filter(|one| one.body_kind().is_some());
    if let Some(subresource) = with_own_body {
        part::retype(kind.kubernetes(), subresource, &mut value).map_err(|why| ApiError::internal(&why))?;
    } else {
        check_type(kind, &value, strict)?;
        // What says to be of another kind goes on saying so: validation finds it.
        if !type_of_body::says_other(kind, &value) {
            encode::set_type(kind, &mut value);
        }
        let unknown = kind
            .schema()
            .decode_made(&mut value, Maker::Admission)
            .map_err(|why| ApiError::internal(&why))?;
        if strict && kind.custom.is_none() && !unknown.is_empty() {
            let unknown: Vec<String> = unknown.iter().map(|path| format!("unknown field {path:?}")).collect();
            return Err(ApiError::internal(&format!("strict decoding error: {}", unknown.join(", "))));
        }
        body::default_changed(kind, &mut value);
    }
    Ok(value)
}

/// It is still of its kind. `by_policy`: what cannot be converted is told by who tried
/// (`.../admission/plugin/policy/mutating/patch`, `.../admission/plugin/webhook/mutating`).
fn check_type(kind: &Kind, value: &Value, by_policy: bool) -> Result<(), ApiError> {
    type_of_body::texts(value).map_err(|why| ApiError::internal(&why))?;
    let unconverted = |why: &str| match by_policy {
        true => ApiError::internal(&format!("failed to convert object: {why}")),
        false => ApiError::unexplained(why),
    };
    if kind.custom.is_none() {
        return type_of_body::check(kind, value).map_err(|mismatch| match mismatch.is_known() {
            true => unconverted(mismatch.reason()),
            false => ApiError::internal(mismatch.reason()),
        });
    }
    let text = |field: &str| value[field].as_str().unwrap_or_default();
    let (name, api_version) = (text("kind"), text("apiVersion"));
    if name.is_empty() {
        return Err(ApiError::internal(&format!("Object 'Kind' is missing in '{value}'")));
    }
    if api_version == kind.api_version() {
        return Ok(());
    }
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    Err(unconverted(&match group == kind.group {
        true => format!("request to convert CR from an invalid group/version: {api_version}"),
        false => format!(
            "{group}/{version}, Kind={name} is unstructured and is not suitable for converting to {:?}",
            kind.api_version()
        ),
    }))
}

/// The options of a request, as webhooks and policies see them.
#[derive(Clone, Copy)]
pub enum Options<'a> {
    /// Of a create, an update or a patch.
    Write(&'a WriteOptions),
    /// Of a delete.
    Delete(&'a DeleteOptions),
    /// Of a connection: what it asks for is its object.
    Connect,
}

impl Options<'_> {
    /// `CreateOptions`, `UpdateOptions` or `DeleteOptions`; null of a connection.
    pub(super) fn to_value(self, operation: Operation) -> Value {
        let of_write = if operation == Operation::Create { "CreateOptions" } else { "UpdateOptions" };
        let (kind, dry_run) = match self {
            Self::Write(options) => (of_write, options.dry_run),
            Self::Delete(options) => ("DeleteOptions", options.dry_run),
            Self::Connect => return Value::Null,
        };
        let mut value = json!({"kind": kind, "apiVersion": "meta.k8s.io/v1"});
        if dry_run {
            value["dryRun"] = json!(["All"]);
        }
        match self {
            Self::Write(options) => add_write_options(&mut value, options),
            Self::Delete(options) => add_delete_options(&mut value, options),
            Self::Connect => {}
        }
        value
    }
}

fn add_write_options(value: &mut Value, options: &WriteOptions) {
    match options.validation {
        FieldValidation::Strict => value["fieldValidation"] = "Strict".into(),
        FieldValidation::Ignore => value["fieldValidation"] = "Ignore".into(),
        FieldValidation::Warn => {}
    }
    if let Some(manager) = &options.named_manager {
        value["fieldManager"] = manager.as_str().into();
    }
}

fn add_delete_options(value: &mut Value, options: &DeleteOptions) {
    if let Some(seconds) = options.grace_seconds {
        value["gracePeriodSeconds"] = seconds.into();
    }
    if let Some(propagation) = options.propagation {
        let word = match propagation {
            Propagation::Orphan => "Orphan",
            Propagation::Background => "Background",
            Propagation::Foreground => "Foreground",
        };
        value["propagationPolicy"] = word.into();
    }
    for (field, given) in [("uid", &options.uid), ("resourceVersion", &options.resource_version)] {
        if let Some(given) = given {
            value["preconditions"][field] = given.clone().into();
        }
    }
}
