//! DenyServiceExternalIPs: no service gets an external address that it has not had
//! (`k8s.io/kubernetes/plugin/pkg/admission/network/denyserviceexternalips`).

use kubewright_meta::ApiError;
use serde_json::Value;

use super::refusal::forbidden;
use super::{AdmissionPlugin, Plugin, Review};

/// Refuses external addresses that a service has not had.
pub(super) struct DenyServiceExternalIPs;

impl AdmissionPlugin for DenyServiceExternalIPs {
    fn name(&self) -> Plugin {
        Plugin::DenyServiceExternalIPs
    }

    fn handles(&self, review: &Review<'_>) -> bool {
        review.is_of_whole()
    }

    fn validate(&self, review: &Review<'_>, service: &Value, _: &mut Vec<String>) -> Result<(), ApiError> {
        validate(review, service)
    }
}

/// # Errors
/// 403 for a new external address.
fn validate(review: &Review<'_>, service: &Value) -> Result<(), ApiError> {
    let of = |service: &'_ Value| service["spec"]["externalIPs"].as_array().cloned().unwrap_or_default();
    let before = review.old.map(of).unwrap_or_default();
    if of(service).iter().all(|address| before.contains(address)) {
        return Ok(());
    }
    Err(forbidden(review, service, "Use of external IPs is denied by admission control"))
}

#[cfg(test)]
mod tests {
    use kubewright_kinds::built_in::core::service::SERVICE;
    use serde_json::json;

    use super::*;
    use crate::admission::Operation;
    use crate::admission::fake::Fake;

    #[test]
    fn a_service_keeps_its_external_addresses_and_gets_no_others() {
        let service =
            |addresses: Value| json!({"metadata": {"name": "s"}, "spec": {"externalIPs": addresses}});
        let (fake, old) = (Fake::with(&[]), service(json!(["1.2.3.4", "1.2.3.5"])));
        let review = Review { old: Some(&old), ..fake.review(&SERVICE, Operation::Update) };
        let of = |addresses| DenyServiceExternalIPs.validate(&review, &service(addresses), &mut Vec::new());
        assert!(of(json!(["1.2.3.5"])).is_ok());
        assert!(of(json!(["1.2.3.6"])).is_err());
    }
}
