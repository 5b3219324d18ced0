//! CertificateApproval: who may approve for a signer
//! (`k8s.io/kubernetes/plugin/pkg/admission/certificates/approval`).

use kubewright_meta::ApiError;
use serde_json::Value;

use super::refusal::forbidden;
use super::signers::{is_authorized, signer_of};
use super::{AdmissionPlugin, Operation, Plugin, Review};

/// Refuses an approval that is not its writer's to make.
pub(super) struct CertificateApproval;

impl AdmissionPlugin for CertificateApproval {
    fn name(&self) -> Plugin {
        Plugin::CertificateApproval
    }

    fn handles(&self, review: &Review<'_>) -> bool {
        review.subresource == "approval" && review.operation == Operation::Update
    }

    fn validate(&self, review: &Review<'_>, request: &Value, _: &mut Vec<String>) -> Result<(), ApiError> {
        validate(review, request)
    }
}

/// Asks whether an approval is its writer's to make.
///
/// # Errors
/// 403.
fn validate(review: &Review<'_>, request: &Value) -> Result<(), ApiError> {
    let Some(old) = review.old else { return Ok(()) };
    let signer = signer_of(old);
    if is_authorized(review, "approve", signer) {
        return Ok(());
    }
    let why = format!("user not permitted to approve requests with signerName {signer:?}");
    Err(forbidden(review, request, &why))
}

#[cfg(test)]
mod tests {
    use kubewright_kinds::built_in::certificates::certificate_signing_request::CERTIFICATE_SIGNING_REQUEST;
    use serde_json::json;

    use super::*;
    use crate::admission::fake::Fake;

    #[test]
    fn who_may_not_approve_for_the_signer_is_refused() {
        let request = json!({"metadata": {"name": "r"}, "spec": {"signerName": "example.com/s"}});
        let fake = Fake::with(&[]);
        let review = fake.review(&CERTIFICATE_SIGNING_REQUEST, Operation::Update);
        assert!(!CertificateApproval.handles(&review), "it is no approval");
        let review = Review { subresource: "approval", old: Some(&request), ..review };
        assert!(CertificateApproval.handles(&review));
        assert!(CertificateApproval.validate(&review, &request, &mut Vec::new()).is_err());
    }
}
