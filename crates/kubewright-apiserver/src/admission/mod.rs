//! Admission: what the cluster has against a write that the kind itself allows, and what it adds.
//!
//! Built-in plugins only, in Kubernetes' order; webhooks and policies are not there yet.

mod namespace;
mod rbac;
mod service_account;

use serde_json::Value;

use crate::error::ApiError;
use crate::registry::{Call, Registry};

/// The write in question.
pub enum Operation<'a> {
    /// A new object, which plugins may change.
    Create(&'a mut Value),
    /// The next and the current object.
    Update(&'a mut Value, &'a Value),
    /// The object to be deleted.
    Delete(&'a Value),
}

/// Asks every plugin.
///
/// # Errors
/// The first refusal.
pub fn admit(registry: &Registry, call: Call<'_>, mut operation: Operation<'_>) -> Result<(), ApiError> {
    namespace::admit(registry, call, &operation)?;
    rbac::admit(registry, call, &operation)?;
    if let Operation::Create(object) = &mut operation {
        service_account::admit(registry, call, object)?;
    }
    Ok(())
}
