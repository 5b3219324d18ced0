//! Who owns what a write has changed: the engine's side of [`kubewright_schema::fields`].

use std::borrow::Cow;

use kubewright_kinds::{Conversions, Custom, Kind, KnownVersions, encode};
use kubewright_meta::{ApiError, object};
use kubewright_schema::Encoding;
use kubewright_schema::fields::{self, Write};
use kubewright_schema::patch::Configuration;
use serde_json::Value;

use crate::engine::{Engine, convert};
use crate::request::{Call, FieldValidation, WriteOptions, body, type_of_body};

/// How many objects a webhook is asked for, for one write.
const MOST_CONVERSIONS: usize = 100;

/// A write, as the owners of fields are told of it.
pub struct OwnedWrite<'a> {
    /// What is written to.
    pub engine: &'a Engine,
    /// What is written.
    pub call: Call<'a>,
    /// By which subresource; empty for the object itself.
    pub subresource: &'a str,
    /// Says who writes.
    pub options: &'a WriteOptions,
    /// The object before, where there is one.
    pub live: Option<&'a Value>,
}

impl OwnedWrite<'_> {
    /// Gives the fields that the write changes to its manager. Nobody owns what JSON leaves out.
    pub fn own(&self, next: &mut Value) {
        self.own_knowing(next, &Conversions::default());
    }

    /// As [`Self::own`], also of a kind between whose versions a webhook converts. Where that fails, see [`fields::disown`].
    pub(super) async fn own_converting(&self, next: &mut Value) {
        if !convert::asks_to_view(self.call.kind) {
            return self.own(next);
        }
        let mut sent = next.clone();
        let owned = self.converting(|conversions| {
            let mut owned = sent.clone();
            self.own_knowing(&mut owned, conversions);
            owned
        });
        match owned.await {
            Ok(owned) => *next = owned,
            Err(_) => {
                fields::disown(&**self.call.kind, self.live, &mut sent);
                *next = sent;
            }
        }
    }

    fn own_knowing(&self, next: &mut Value, conversions: &Conversions) {
        let Self { call, live, .. } = *self;
        if type_of_body::says_other(call.kind, next) && !is_convertible(call.kind, next) {
            return fields::disown(&**call.kind, live, next);
        }
        let mut written = as_written(call.kind, next);
        if let Some(complete) = call.kind.rules.complete.filter(|_| live.is_none()) {
            complete(written.to_mut());
        }
        let Cow::Owned(mut written) = written else {
            return self.writing(conversions, |write| write.update(live, next));
        };
        // An empty list of owners is not as good as none: it asks for all to be forgotten.
        object::copy_meta(&mut written, next, "managedFields");
        self.writing(conversions, |write| write.update(live, &mut written));
        object::copy_meta(next, &written, "managedFields");
    }

    /// What applying a configuration makes of the object: typed, owned, not yet defaulted. Warnings are added to `warnings`.
    ///
    /// # Errors
    /// As [`Write::apply`], and what strict decoding has against the configuration.
    pub(super) async fn applied(
        &self,
        config: &Configuration,
        warnings: &mut Vec<String>,
    ) -> Result<Value, ApiError> {
        let Self { call, options, live, .. } = *self;
        let value = self.converting(|conversions| {
            self.writing(conversions, |write| write.apply(live, &config.value, options.force))
        });
        let value = value.await??;
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
        body::typed(call.kind, value, warnings).map_err(failed)
    }

    /// What the write makes, once all is known that it asks a webhook for.
    ///
    /// # Errors
    /// 500 when the webhook does not convert an object.
    async fn converting<T>(&self, does: impl Fn(&Conversions) -> T) -> Result<T, ApiError> {
        let conversions = Conversions::default();
        for _ in 0..MOST_CONVERSIONS {
            let made = does(&conversions);
            let Some(wanted) = conversions.take_wanted() else { return Ok(made) };
            let converted = convert::between(self.engine, self.call.kind, &wanted).await?;
            conversions.know(wanted, converted);
        }
        Err(ApiError::internal("too many objects to convert for one write"))
    }

    fn writing<T>(&self, conversions: &Conversions, does: impl FnOnce(&Write<'_>) -> T) -> T {
        let now = object::time(self.engine.world().clock.now());
        let kinds = self.engine.kinds();
        does(&Write {
            versions: &KnownVersions { kinds: &kinds, kind: self.call.kind, conversions },
            manager: &self.options.manager,
            subresource: self.subresource,
            now: now.as_str().unwrap_or_default(),
        })
    }
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
