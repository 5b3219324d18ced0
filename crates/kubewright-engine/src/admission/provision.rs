//! NamespaceAutoProvision: who creates something in a namespace that is missing creates the namespace
//! (`k8s.io/kubernetes/plugin/pkg/admission/namespace/autoprovision`).

use std::sync::{Arc, LazyLock};

use futures::future::BoxFuture;
use kubewright_codec::body::Decoded;
use kubewright_identity::authn::User;
use kubewright_kinds::Kind;
use kubewright_kinds::built_in::core::namespace::NAMESPACE;
use kubewright_meta::ApiError;
use serde_json::{Value, json};

use super::refusal::forbidden;
use super::{Operation, Review};
use crate::registry::{Call, WriteOptions, Written};

/// Who creates them.
static SERVER: LazyLock<User> = LazyLock::new(|| User::new("system:apiserver", ["system:masters"]));

/// Creates the namespace of a new object, where it is missing.
///
/// # Errors
/// 403 when that fails.
pub(super) async fn admit(review: &Review<'_>, object: &Value) -> Result<(), ApiError> {
    let Review { registry, call, .. } = *review;
    let meant = review.operation == Operation::Create && call.kind.namespaced() && !review.dry_run;
    if !meant || registry.snapshot().get("/namespaces", call.namespace).is_some() {
        return Ok(());
    }
    let Some(kind) = registry.kinds().find(&NAMESPACE).cloned() else { return Ok(()) };
    match create(review, &kind).await {
        Err(error) if error.reason != "AlreadyExists" => Err(forbidden(review, object, &error.message)),
        _ => Ok(()),
    }
}

/// A write within a write: its type has to be told.
fn create<'a>(review: &'a Review<'_>, kind: &'a Arc<Kind>) -> BoxFuture<'a, Result<Written, ApiError>> {
    let namespace =
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": review.call.namespace}});
    let options = WriteOptions { manager: "kube-apiserver".to_owned(), ..WriteOptions::default() };
    let call = Call { kind, namespace: "", name: "", user: &SERVER };
    Box::pin(review.registry.create(call, Decoded::of(namespace), options))
}
