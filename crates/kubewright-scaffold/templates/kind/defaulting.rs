//! What is filled in before a @Kind@ is stored.

use kubewright::webhook::{Defaulter, Denied, Request, Webhook};

use super::@Kind@;

/// Whom the API server asks, and about what.
pub fn webhook() -> Webhook {
    Webhook::defaulting::<@Kind@>(Defaults)
}

struct Defaults;

impl Defaulter<@Kind@> for Defaults {
    async fn apply_defaults(&self, _: &Request, object: @Kind@) -> Result<@Kind@, Denied> {
        // Here: give it back with what its user has left out.
        Ok(object)
    }
}
