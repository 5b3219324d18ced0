//! PersistentVolumeClaimResize: what cannot grow does not
//! (`k8s.io/kubernetes/plugin/pkg/admission/storage/persistentvolume/resize`).

use kubewright_kinds::built_in::storage::storage_class::STORAGE_CLASS;
use kubewright_meta::ApiError;
use kubewright_meta::quantity::Quantity;
use kubewright_quota::class_of_claim;
use serde_json::Value;

use super::refusal::forbidden;
use super::{AdmissionPlugin, Plugin, Review};

/// Refuses to let a claim grow that cannot.
pub(super) struct PersistentVolumeClaimResize;

impl AdmissionPlugin for PersistentVolumeClaimResize {
    fn name(&self) -> Plugin {
        Plugin::PersistentVolumeClaimResize
    }

    fn handles(&self, review: &Review<'_>) -> bool {
        review.is_of_whole()
    }

    fn validate(&self, review: &Review<'_>, claim: &Value, _: &mut Vec<String>) -> Result<(), ApiError> {
        validate(review, claim)
    }
}

/// Lets a claim grow only when it is bound, and its storage class allows it.
///
/// # Errors
/// 403.
fn validate(review: &Review<'_>, claim: &Value) -> Result<(), ApiError> {
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
    let allows = || review.objects.object(&STORAGE_CLASS, class)?["allowVolumeExpansion"].as_bool();
    if !class.is_empty() && class == class_of_claim(old) && allows() == Some(true) {
        return Ok(());
    }
    let why = "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize";
    Err(forbidden(review, claim, why))
}

#[cfg(test)]
mod tests {
    use kubewright_kinds::built_in::core::persistent_volume_claim::PERSISTENT_VOLUME_CLAIM;
    use serde_json::json;

    use super::*;
    use crate::admission::Operation;
    use crate::admission::fake::Fake;

    #[test]
    fn a_bound_claim_grows_where_its_class_says_so() {
        let class = |name: &str, grows: bool| {
            (&STORAGE_CLASS, json!({"metadata": {"name": name}, "allowVolumeExpansion": grows}))
        };
        let fake = Fake::with(&[class("elastic", true), class("stiff", false)]);
        let claim = |class: &str, size: &str, phase: &str| {
            let resources = json!({"requests": {"storage": size}});
            let spec = json!({"storageClassName": class, "resources": resources});
            json!({"metadata": {"name": "c"}, "spec": spec, "status": {"phase": phase}})
        };
        let grows = |class: &str, phase: &str, from: &str, to: &str| {
            let (old, new) = (claim(class, from, phase), claim(class, to, phase));
            let review =
                Review { old: Some(&old), ..fake.review(&PERSISTENT_VOLUME_CLAIM, Operation::Update) };
            PersistentVolumeClaimResize.validate(&review, &new, &mut Vec::new()).is_ok()
        };
        assert!(grows("elastic", "Bound", "1Gi", "2Gi"));
        assert!(!grows("stiff", "Bound", "1Gi", "2Gi"));
        assert!(grows("stiff", "Bound", "2Gi", "1Gi"), "it shrinks: that is others' business");
        assert!(!grows("elastic", "Pending", "1Gi", "2Gi"));
        assert!(!grows("missing", "Bound", "1Gi", "2Gi"));
    }
}
