// Copyright 2026 Example.
// SPDX-License-Identifier: MIT

//! What is filled in before a Captain is stored.

use kubewright::webhook::{Defaulter, Denied, Request, Webhook};

use super::Captain;

/// Whom the API server asks, and about what.
pub fn webhook() -> Webhook {
    Webhook::defaulting::<Captain>(Defaults)
}

struct Defaults;

impl Defaulter<Captain> for Defaults {
    async fn apply_defaults(&self, _: &Request, object: Captain) -> Result<Captain, Denied> {
        // Here: give it back with what its user has left out.
        Ok(object)
    }
}
