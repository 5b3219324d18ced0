//! Who owns what a write has changed: the engine's side of [`crate::fields`].

use serde_json::Value;

use super::{Call, FieldValidation, Registry, WriteOptions, body, object};
use crate::error::ApiError;
use crate::fields::{Versions, Write};
use crate::patch::Configuration;

impl Registry {
    /// Gives the fields that a write changes to its manager.
    pub(super) fn own(
        &self,
        call: Call<'_>,
        subresource: &str,
        options: &WriteOptions,
        live: Option<&Value>,
        next: &mut Value,
    ) {
        self.writing(call, subresource, options, |write| write.update(live, next));
    }

    /// What applying a configuration makes of an object: typed, owned, not yet defaulted. Warnings are added to
    /// `warnings`.
    ///
    /// # Errors
    /// As [`Write::apply`], and what strict decoding has against the configuration.
    pub(super) fn applied(
        &self,
        call: Call<'_>,
        subresource: &str,
        config: &Configuration,
        options: &WriteOptions,
        live: Option<&Value>,
        warnings: &mut Vec<String>,
    ) -> Result<Value, ApiError> {
        let force = options.force;
        let value =
            self.writing(call, subresource, options, |write| write.apply(live, &config.value, force))?;
        strict(config, options.validation, warnings)?;
        body::typed(call.kind, value, warnings)
    }

    fn writing<T>(
        &self,
        call: Call<'_>,
        subresource: &str,
        options: &WriteOptions,
        does: impl FnOnce(&Write<'_>) -> T,
    ) -> T {
        let now = object::time(self.world.clock.now());
        let kinds = self.kinds();
        does(&Write {
            versions: Versions { kinds: &kinds, kind: call.kind },
            manager: &options.manager,
            subresource,
            now: now.as_str().unwrap_or_default(),
        })
    }
}

/// What strict decoding has against a configuration: members that stand twice.
pub(super) fn strict(
    config: &Configuration,
    validation: FieldValidation,
    warnings: &mut Vec<String>,
) -> Result<(), ApiError> {
    match (&config.complaint, validation) {
        (Some(complaint), FieldValidation::Strict) => {
            Err(ApiError::bad_request(format!("error strict decoding YAML: {complaint}")))
        }
        (Some(complaint), FieldValidation::Warn) => {
            warnings.push(complaint.clone());
            Ok(())
        }
        _ => Ok(()),
    }
}
