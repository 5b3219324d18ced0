//! The Secrets that controllers look at: those with a type of their own. What users keep for themselves (`Opaque`), which
//! is most, stays out of the shared cache.

use k8s_openapi::api::core::v1::Secret;

/// The field selector of them all: controllers that share a cache have to agree on one.
pub(crate) const TYPED: &str = "type!=Opaque";
/// The type of those that hold the token of a service account.
pub(crate) const ACCOUNT_TOKEN: &str = "kubernetes.io/service-account-token";

/// Whether a Secret holds the token of a service account.
pub(crate) fn is_account_token(secret: &Secret) -> bool {
    secret.type_.as_deref() == Some(ACCOUNT_TOKEN)
}
