//! NamespaceAutoProvision: who creates something in a namespace that is missing creates the namespace
//! (`k8s.io/kubernetes/plugin/pkg/admission/namespace/autoprovision`).

use kubewright_kinds::built_in::core::namespace::NAMESPACE;
use kubewright_meta::ApiError;
use serde_json::Value;

use super::refusal::forbidden;
use super::{Operation, Review};

/// Creates the namespace of a new object, where it is missing.
///
/// # Errors
/// 403 when that fails.
pub(super) async fn admit(review: &Review<'_>, object: &Value) -> Result<(), ApiError> {
    let Review { objects, call, .. } = *review;
    let meant = review.operation == Operation::Create && call.kind.namespaced() && !review.dry_run;
    if !meant || objects.has(&NAMESPACE, call.namespace) {
        return Ok(());
    }
    match objects.create_namespace(call.namespace).await {
        Err(error) if error.reason != "AlreadyExists" => Err(forbidden(review, object, &error.message)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use kubewright_kinds::built_in::core::pod::POD;
    use serde_json::json;

    use super::super::fake::Fake;
    use super::*;

    #[tokio::test]
    async fn a_missing_namespace_comes_with_its_first_object_unless_nothing_is_kept() {
        let fake = Fake::with(&[]);
        let pod = json!({"metadata": {"name": "p"}});
        let review = fake.review(&POD, Operation::Create);
        admit(&Review { dry_run: true, ..review }, &pod).await.expect("nothing is refused");
        assert!(!review.objects.has(&NAMESPACE, "n"));
        admit(&review, &pod).await.expect("nothing is refused");
        assert!(review.objects.has(&NAMESPACE, "n"));
    }
}
