//! CertificateSigning: who may sign for a signer
//! (`k8s.io/kubernetes/plugin/pkg/admission/certificates/signing`).

use kubewright_meta::ApiError;
use serde_json::Value;

use super::refusal::forbidden;
use super::signers::{is_authorized, signer_of};
use super::{AdmissionPlugin, Operation, Plugin, Review};

/// Refuses a signature that is not its writer's to make.
pub(super) struct CertificateSigning;

impl AdmissionPlugin for CertificateSigning {
    fn name(&self) -> Plugin {
        Plugin::CertificateSigning
    }

    fn handles(&self, review: &Review<'_>) -> bool {
        review.subresource == "status" && review.operation == Operation::Update
    }

    fn validate(&self, review: &Review<'_>, request: &Value, _: &mut Vec<String>) -> Result<(), ApiError> {
        validate(review, request)
    }
}

/// Asks whether a signature is its writer's to make.
///
/// # Errors
/// 403.
fn validate(review: &Review<'_>, request: &Value) -> Result<(), ApiError> {
    let Some(old) = review.old else { return Ok(()) };
    let signer = signer_of(old);
    let signed = ["certificate", "conditions"]
        .iter()
        .any(|field| request["status"].get(field) != old["status"].get(field));
    if !signed || is_authorized(review, "sign", signer) {
        return Ok(());
    }
    let why = format!("user not permitted to sign requests with signerName {signer:?}");
    Err(forbidden(review, request, &why))
}

#[cfg(test)]
mod tests {
    use kubewright_kinds::built_in::certificates::certificate_signing_request::CERTIFICATE_SIGNING_REQUEST;
    use serde_json::json;

    use super::*;
    use crate::admission::fake::Fake;

    #[test]
    fn who_may_not_sign_for_the_signer_writes_no_certificate() {
        let request = json!({"metadata": {"name": "r"}, "spec": {"signerName": "example.com/s"}});
        let signed = json!({"metadata": {"name": "r"}, "spec": {"signerName": "example.com/s"}, "status": {"certificate": "c"}});
        let fake = Fake::with(&[]);
        let review = fake.review(&CERTIFICATE_SIGNING_REQUEST, Operation::Update);
        let review = Review { subresource: "status", old: Some(&request), ..review };
        assert!(CertificateSigning.handles(&review));
        assert!(CertificateSigning.validate(&review, &signed, &mut Vec::new()).is_err());
        assert!(CertificateSigning.validate(&review, &request, &mut Vec::new()).is_ok());
    }
}
