//! DenyServiceExternalIPs: no service gets an external address that it has not had
//! (`k8s.io/kubernetes/plugin/pkg/admission/network/denyserviceexternalips`).

use kubewright_meta::ApiError;
use serde_json::Value;

use super::Review;
use super::refusal::forbidden;

/// # Errors
/// 403 for a new external address.
pub(super) fn validate(review: &Review<'_>, service: &Value) -> Result<(), ApiError> {
    let of = |service: &'_ Value| service["spec"]["externalIPs"].as_array().cloned().unwrap_or_default();
    let before = review.old.map(of).unwrap_or_default();
    if of(service).iter().all(|address| before.contains(address)) {
        return Ok(());
    }
    Err(forbidden(review, service, "Use of external IPs is denied by admission control"))
}
