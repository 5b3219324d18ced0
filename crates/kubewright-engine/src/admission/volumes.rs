//! StorageObjectInUseProtection and PersistentVolumeClaimResize: what is in use is not deleted, and what cannot grow
//! does not (`k8s.io/kubernetes/plugin/pkg/admission/storage`).

use kubewright_meta::quantity::Quantity;
use kubewright_meta::{ApiError, object};
use kubewright_quota::class_of_claim;
use serde_json::Value;

use super::refusal::forbidden;
use super::{Review, stored};

/// Holds a new claim, volume or attributes class until its controller finds that nobody uses it.
pub(super) fn protect(review: &Review<'_>, object: &mut Value) {
    if let Some(finalizer) = review.call.kind.finalizer_in_use() {
        object::add_finalizer(object, finalizer);
    }
}

/// Lets a claim grow only when it is bound, and its storage class allows it.
///
/// # Errors
/// 403.
pub(super) fn validate_growth(review: &Review<'_>, claim: &Value) -> Result<(), ApiError> {
    let Some(old) = review.old else { return Ok(()) };
    let size = |claim: &Value| {
        Quantity::of(&claim["spec"]["resources"]["requests"]["storage"]).unwrap_or(Quantity::ZERO)
    };
    if size(claim) <= size(old) {
        return Ok(());
    }
    if old["status"]["phase"] != "Bound" {
        return Err(forbidden(review, claim, "Only bound persistent volume claims can be expanded"));
    }
    let class = class_of_claim(claim);
    let allows = || {
        let class = stored::object(&review.registry.snapshot(), "storage.k8s.io/storageclasses", class)?;
        class["allowVolumeExpansion"].as_bool()
    };
    if !class.is_empty() && class == class_of_claim(old) && allows() == Some(true) {
        return Ok(());
    }
    let why = "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize";
    Err(forbidden(review, claim, why))
}
