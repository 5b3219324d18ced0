//! ClusterTrustBundleAttest: who may say whom a signer trusts
//! (`k8s.io/kubernetes/plugin/pkg/admission/certificates/ctbattest`).

use kubewright_identity::authz::escalation;
use kubewright_meta::ApiError;
use serde_json::Value;

use super::refusal::forbidden;
use super::signers::{is_authorized, signer_of};
use super::{AdmissionPlugin, Plugin, Review};

/// Refuses a trust bundle of a signer that its writer may not attest for.
pub(super) struct ClusterTrustBundleAttest;

impl AdmissionPlugin for ClusterTrustBundleAttest {
    fn name(&self) -> Plugin {
        Plugin::ClusterTrustBundleAttest
    }

    fn handles(&self, review: &Review<'_>) -> bool {
        review.is_write()
    }

    fn validate(&self, review: &Review<'_>, bundle: &Value, _: &mut Vec<String>) -> Result<(), ApiError> {
        validate(review, bundle)
    }
}

/// Asks whether a signer's bundle is its writer's to write. What lets it be collected is, and so is what changes nothing.
///
/// # Errors
/// 403.
fn validate(review: &Review<'_>, bundle: &Value) -> Result<(), ApiError> {
    let signer = signer_of(bundle);
    if signer.is_empty()
        || review.old.is_some_and(|old| escalation::only_lets_collect(bundle, old))
        || is_authorized(review, "attest", signer)
    {
        return Ok(());
    }
    Err(forbidden(review, bundle, &format!("user not permitted to attest for signerName {signer:?}")))
}

#[cfg(test)]
mod tests {
    use kubewright_kinds::built_in::certificates::cluster_trust_bundle::CLUSTER_TRUST_BUNDLE;
    use serde_json::json;

    use super::super::Operation;
    use super::*;
    use crate::admission::fake::Fake;

    #[test]
    fn who_may_not_attest_for_the_signer_writes_no_bundle_of_it() {
        let fake = Fake::with(&[]);
        let bundle = |signer: &str| json!({"metadata": {"name": "b"}, "spec": {"signerName": signer}});
        let said = |review: &Review<'_>, bundle: &Value| {
            assert!(ClusterTrustBundleAttest.handles(review));
            ClusterTrustBundleAttest.validate(review, bundle, &mut Vec::new())
        };
        let create = fake.review(&CLUSTER_TRUST_BUNDLE, Operation::Create);
        assert!(said(&create, &bundle("")).is_ok(), "it is nobody's");
        let refused = said(&create, &bundle("a.b/c")).expect_err("nobody has rights");
        assert!(refused.to_string().contains("user not permitted to attest for signerName \"a.b/c\""));

        let old = bundle("a.b/c");
        let update = Review { old: Some(&old), ..fake.review(&CLUSTER_TRUST_BUNDLE, Operation::Update) };
        let mut new = old.clone();
        new["metadata"]["finalizers"] = json!(["a.b/c"]);
        assert!(said(&update, &new).is_ok());
        new["metadata"]["labels"] = json!({"a": "b"});
        assert!(said(&update, &new).is_err());
    }
}
