//! What a @Kind@ must be to be stored.

use kubewright::webhook::{Denied, FieldError, Request, Validator, ValidationResult, Warnings, Webhook};

use super::@Kind@;

/// Whom the API server asks, and about what.
pub fn webhook() -> Webhook {
    Webhook::validating::<@Kind@>(Checks)
}

struct Checks;

impl Validator<@Kind@> for Checks {
    async fn validate_create(&self, _: &Request, object: &@Kind@) -> ValidationResult {
        check(object)
    }

    async fn validate_update(&self, _: &Request, _: &@Kind@, object: &@Kind@) -> ValidationResult {
        check(object)
    }
}

fn check(object: &@Kind@) -> ValidationResult {
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
