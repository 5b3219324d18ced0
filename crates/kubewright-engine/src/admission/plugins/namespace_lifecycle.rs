//! NamespaceLifecycle: nothing is created in a namespace that is missing or terminating, and some are not deleted
//! (`k8s.io/apiserver/pkg/admission/plugin/namespace/lifecycle`).

use kubewright_kinds::Role;
use kubewright_kinds::built_in::core::namespace::NAMESPACE;
use kubewright_meta::ApiError;
use serde_json::{Value, json};

use super::refusal::forbidden;
use super::{AdmissionPlugin, Operation, Plugin, Review};

/// The namespaces that cannot be deleted.
const IMMORTAL: [&str; 3] = ["default", "kube-system", "kube-public"];

/// Refuses what has no living namespace, and the deletion of namespaces that every cluster has.
pub(super) struct NamespaceLifecycle;

impl AdmissionPlugin for NamespaceLifecycle {
    fn name(&self) -> Plugin {
        Plugin::NamespaceLifecycle
    }

    fn handles(&self, review: &Review<'_>) -> bool {
        matches!(review.operation, Operation::Create | Operation::Delete)
    }

    fn mutate(&self, review: &Review<'_>, object: &mut Value) -> Result<(), ApiError> {
        admit(review, object)
    }
}

/// # Errors
/// 404 and 403.
fn admit(review: &Review<'_>, object: &Value) -> Result<(), ApiError> {
    let call = review.call;
    match review.operation {
        Operation::Create if call.kind.namespaced() => must_be_alive(review, object),
        Operation::Delete if call.kind.behaviour.role == Role::Namespace && IMMORTAL.contains(&call.name) => {
            Err(ApiError::forbidden("", "namespaces", call.name, "this namespace may not be deleted"))
        }
        _ => Ok(()),
    }
}

fn must_be_alive(review: &Review<'_>, object: &Value) -> Result<(), ApiError> {
    let call = review.call;
    let Some(entry) = review.objects.entry(&NAMESPACE, call.namespace) else {
        return Err(ApiError::not_found_in("", "namespaces", call.namespace));
    };
    if entry.tag.field("status.phase") != "Terminating" {
        return Ok(());
    }
    let why = format!(
        "unable to create new content in namespace {} because it is being terminated",
        call.namespace
    );
    let mut error = forbidden(review, object, &why);
    if let Some(details) = &mut error.details {
        details["causes"] = json!([{
            "reason": "NamespaceTerminating",
            "message": format!("namespace {} is being terminated", call.namespace),
            "field": "metadata.namespace"
        }]);
    }
    Err(error)
}

#[cfg(test)]
mod tests {
    use kubewright_kinds::built_in::core::pod::POD;

    use super::*;
    use crate::admission::fake::Fake;

    fn refused(fake: &Fake, namespace: &str) -> Option<ApiError> {
        let mut review = fake.review(&POD, Operation::Create);
        review.call.namespace = namespace;
        NamespaceLifecycle.mutate(&review, &mut json!({"metadata": {"name": "p"}})).err()
    }

    #[test]
    fn nothing_is_created_in_a_namespace_that_is_missing_or_ends() {
        let ending = json!({"metadata": {"name": "ending"}, "status": {"phase": "Terminating"}});
        let fake = Fake::with(&[(&NAMESPACE, json!({"metadata": {"name": "n"}})), (&NAMESPACE, ending)]);
        assert!(refused(&fake, "n").is_none());
        let missing = refused(&fake, "missing").expect("it is not there");
        assert_eq!(missing.message, "namespaces \"missing\" not found");
        let ends = refused(&fake, "ending").expect("it ends");
        assert!(ends.message.ends_with("because it is being terminated"), "{}", ends.message);
        let details = ends.details.expect("causes");
        assert_eq!(details["causes"][0]["reason"], "NamespaceTerminating");
    }

    #[test]
    fn what_every_cluster_has_is_not_deleted() {
        let fake = Fake::with(&[]);
        for (name, goes) in [("default", false), ("kube-system", false), ("other", true)] {
            let mut review = fake.review(&NAMESPACE, Operation::Delete);
            review.call.name = name;
            assert_eq!(NamespaceLifecycle.mutate(&review, &mut Value::Null).is_ok(), goes, "{name}");
        }
    }
}
