// Copyright 2026 Example.
// SPDX-License-Identifier: MIT

//! What a Captain must be to be stored.

use kubewright::webhook::{
    Denied, FieldError, Request, ValidationResult, Validator, Warnings, Webhook,
};

use super::Captain;

/// Whom the API server asks, and about what.
pub fn webhook() -> Webhook {
    Webhook::validating::<Captain>(Checks)
}

struct Checks;

impl Validator<Captain> for Checks {
    async fn validate_create(&self, _: &Request, object: &Captain) -> ValidationResult {
        check(object)
    }

    async fn validate_update(
        &self,
        _: &Request,
        _: &Captain,
        object: &Captain,
    ) -> ValidationResult {
        check(object)
    }
}

fn check(object: &Captain) -> ValidationResult {
    let mut errors = Vec::new();
    // Here: what must not be. What the schema can say belongs to the types.
    if object.metadata.name.as_deref() == Some("forbidden") {
        errors.push(FieldError::invalid(
            "metadata.name",
            "forbidden",
            "is an example",
        ));
    }
    if errors.is_empty() {
        Ok(Warnings::none())
    } else {
        Err(Denied::invalid(object, &errors))
    }
}
