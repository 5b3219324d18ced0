//! CertificateSubjectRestriction: what a signer never signs
//! (`k8s.io/kubernetes/plugin/pkg/admission/certificates/subjectrestriction`).

use kubewright_kinds::rules::certificates::organizations;
use kubewright_meta::ApiError;
use serde_json::Value;

use super::refusal::forbidden;
use super::signers::signer_of;
use super::{AdmissionPlugin, Plugin, Review};

const CLIENT_SIGNER: &str = "kubernetes.io/kube-apiserver-client";

/// Refuses a request of a certificate that would make its bearer an administrator.
pub(super) struct CertificateSubjectRestriction;

impl AdmissionPlugin for CertificateSubjectRestriction {
    fn name(&self) -> Plugin {
        Plugin::CertificateSubjectRestriction
    }

    fn handles(&self, review: &Review<'_>) -> bool {
        review.is_of_new()
    }

    fn validate(&self, review: &Review<'_>, request: &Value, _: &mut Vec<String>) -> Result<(), ApiError> {
        validate(review, request)
    }
}

/// Nobody becomes a member of `system:masters` by a certificate of the cluster's.
///
/// # Errors
/// 403.
fn validate(review: &Review<'_>, request: &Value) -> Result<(), ApiError> {
    if signer_of(request) != CLIENT_SIGNER {
        return Ok(());
    }
    match organizations(request["spec"]["request"].as_str().unwrap_or_default()) {
        Ok(groups) if groups.iter().any(|group| group == "system:masters") => {
            let why = format!("use of {CLIENT_SIGNER} signer with system:masters group is not allowed");
            Err(forbidden(review, request, &why))
        }
        Ok(_) => Ok(()),
        Err(why) => Err(forbidden(review, request, &format!("failed to parse CSR: {why}"))),
    }
}

#[cfg(test)]
mod tests {
    use kubewright_kinds::built_in::certificates::certificate_signing_request::CERTIFICATE_SIGNING_REQUEST;
    use serde_json::json;

    use super::*;
    use crate::admission::Operation;
    use crate::admission::fake::Fake;

    #[test]
    fn what_the_signer_of_clients_cannot_read_is_refused() {
        let fake = Fake::with(&[]);
        let review = fake.review(&CERTIFICATE_SIGNING_REQUEST, Operation::Create);
        let of = |signer: &str| {
            let request = json!({"metadata": {"name": "r"}, "spec": {"signerName": signer, "request": "?"}});
            CertificateSubjectRestriction.validate(&review, &request, &mut Vec::new())
        };
        assert!(of(CLIENT_SIGNER).is_err());
        assert!(of("example.com/s").is_ok());
    }
}
