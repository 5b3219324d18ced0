//! NamespaceExists: nothing at all is done in a namespace that is missing
//! (`k8s.io/kubernetes/plugin/pkg/admission/namespace/exists`).

use kubewright_kinds::built_in::core::namespace::NAMESPACE;
use kubewright_meta::ApiError;
use serde_json::Value;

use super::{AdmissionPlugin, Operation, Plugin, Review};

/// Refuses what is done in a namespace that is missing.
pub(super) struct NamespaceExists;

impl AdmissionPlugin for NamespaceExists {
    fn name(&self) -> Plugin {
        Plugin::NamespaceExists
    }

    fn handles(&self, review: &Review<'_>) -> bool {
        review.operation != Operation::Connect && review.call.kind.namespaced()
    }

    fn validate(&self, review: &Review<'_>, _: &Value, _: &mut Vec<String>) -> Result<(), ApiError> {
        validate(review)
    }
}

/// # Errors
/// 404 of the namespace.
fn validate(review: &Review<'_>) -> Result<(), ApiError> {
    let namespace = review.call.namespace;
    match review.objects.has(&NAMESPACE, namespace) {
        true => Ok(()),
        false => Err(ApiError::not_found_in("", "namespaces", namespace)),
    }
}

#[cfg(test)]
mod tests {
    use kubewright_kinds::built_in::core::pod::POD;
    use serde_json::json;

    use super::*;
    use crate::admission::fake::Fake;

    #[test]
    fn nothing_is_done_in_a_namespace_that_is_missing() {
        let fake = Fake::with(&[(&NAMESPACE, json!({"metadata": {"name": "n"}}))]);
        let mut review = fake.review(&POD, Operation::Delete);
        assert!(NamespaceExists.handles(&review));
        assert!(NamespaceExists.validate(&review, &Value::Null, &mut Vec::new()).is_ok());
        review.call.namespace = "missing";
        assert!(NamespaceExists.validate(&review, &Value::Null, &mut Vec::new()).is_err());
        assert!(!NamespaceExists.handles(&fake.review(&NAMESPACE, Operation::Create)), "it has none");
    }
}
