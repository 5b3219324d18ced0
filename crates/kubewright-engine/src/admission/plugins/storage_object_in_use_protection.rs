//! StorageObjectInUseProtection: what is in use is not deleted
//! (`k8s.io/kubernetes/plugin/pkg/admission/storage/storageobjectinuseprotection`).

use kubewright_meta::{ApiError, object};
use serde_json::Value;

use super::{AdmissionPlugin, Plugin, Review};

/// Holds a new claim, volume or attributes class until its controller finds that nobody uses it.
pub(super) struct StorageObjectInUseProtection;

impl AdmissionPlugin for StorageObjectInUseProtection {
    fn name(&self) -> Plugin {
        Plugin::StorageObjectInUseProtection
    }

    fn handles(&self, review: &Review<'_>) -> bool {
        review.is_of_new()
    }

    fn mutate(&self, review: &Review<'_>, object: &mut Value) -> Result<(), ApiError> {
        if let Some(finalizer) = review.call.kind.finalizer_in_use() {
            object::add_finalizer(object, finalizer);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use kubewright_kinds::built_in::core::persistent_volume_claim::PERSISTENT_VOLUME_CLAIM;
    use serde_json::json;

    use super::*;
    use crate::admission::Operation;
    use crate::admission::fake::Fake;

    #[test]
    fn a_new_claim_is_held() {
        let (fake, mut claim) = (Fake::with(&[]), json!({"metadata": {"name": "c"}}));
        let review = fake.review(&PERSISTENT_VOLUME_CLAIM, Operation::Create);
        StorageObjectInUseProtection.mutate(&review, &mut claim).expect("nothing is refused");
        assert_eq!(claim["metadata"]["finalizers"], json!(["kubernetes.io/pvc-protection"]));
    }
}
