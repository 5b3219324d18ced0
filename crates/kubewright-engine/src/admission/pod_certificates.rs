//! What kube-apiserver asks of a new status of a request for a certificate of a pod, beyond its form: the time and who signs
//! (`k8s.io/kubernetes/pkg/registry/certificates/podcertificaterequest`).

use kubewright_kinds::Role;
use kubewright_kinds::rules::pod_certificates;
use kubewright_meta::FieldError;
use serde_json::Value;

use super::Review;
use super::plugins::signers::{is_authorized, signer_of};

/// What is wrong with the new status of an object, if it is such a request.
pub(crate) fn status_errors(review: &Review<'_>, new: &Value, old: &Value) -> Vec<FieldError> {
    if review.call.kind.behaviour.role != Role::PodCertificateRequest {
        return Vec::new();
    }
    let clock = review.objects.world().clock;
    let found = pod_certificates::status_errors(new, old, &[clock.now(), clock.outside().now()]);
    let signer = signer_of(old);
    if !found.is_empty() || new.get("status") == old.get("status") || is_authorized(review, "sign", signer) {
        return found;
    }
    let user = &review.call.user.name;
    let why = format!("User {user:?} is not permitted to \"sign\" for signer {signer:?}");
    vec![FieldError::forbidden("spec.signerName", why)]
}
