//! Admission: what the cluster adds to a write, and what it has against one that the kind itself allows.
//!
//! Two phases, as in `k8s.io/apiserver/pkg/admission`: [`mutate`] comes before the kind prepares and validates the
//! object, [`validate`] after it and right before the commit. Deletions change no object: [`admit_deletion`] is both
//! phases in one. Each phase asks the built-in plugins in Kubernetes' order.

mod namespace;
mod rbac;
mod service_account;

use serde_json::Value;

use crate::error::ApiError;
use crate::registry::{Call, Registry};

/// What a write does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// A new object.
    Create,
    /// The next state of an object, or of a part of it.
    Update,
    /// An object goes.
    Delete,
}

/// A write that wants to be admitted. The new object is not part of it: [`mutate`] may change it.
#[derive(Clone, Copy)]
pub struct Review<'a> {
    /// The objects of the cluster.
    pub registry: &'a Registry,
    /// The object and who asks. Its name is empty for a creation.
    pub call: Call<'a>,
    /// What is done.
    pub operation: Operation,
    /// The subresource that is written; empty for the object itself.
    pub subresource: &'a str,
    /// The current object, where there is one.
    pub old: Option<&'a Value>,
    /// Nothing will be kept.
    pub dry_run: bool,
}

/// Lets every plugin add to a new or changed object (decoded and defaulted, as the client sent it) or refuse it.
/// Warnings for the client are added to `warnings`.
///
/// # Errors
/// The first refusal.
#[expect(clippy::unused_async, reason = "webhooks will wait for their answers here")]
pub async fn mutate(
    review: &Review<'_>,
    object: &mut Value,
    _warnings: &mut Vec<String>,
) -> Result<(), ApiError> {
    namespace::admit(review, object)?;
    if review.operation == Operation::Create {
        service_account::admit(review, object)?;
    }
    rbac::admit(review, object)
}

/// Asks every plugin about an object as it will be committed. Warnings for the client are added to `warnings`.
///
/// # Errors
/// The first refusal.
#[expect(clippy::unused_async, reason = "webhooks will wait for their answers here")]
pub async fn validate(
    _review: &Review<'_>,
    _object: &Value,
    _warnings: &mut Vec<String>,
) -> Result<(), ApiError> {
    Ok(())
}

/// Asks every plugin about a deletion of `review.old`. Warnings for the client are added to `warnings`.
///
/// # Errors
/// The first refusal.
#[expect(clippy::unused_async, reason = "webhooks will wait for their answers here")]
pub async fn admit_deletion(review: &Review<'_>, _warnings: &mut Vec<String>) -> Result<(), ApiError> {
    namespace::admit(review, &Value::Null)
}
