//! DefaultStorageClass: a claim that names no storage class gets the one that is marked as the default
//! (`k8s.io/kubernetes/plugin/pkg/admission/storage/storageclass/setdefault`).

use kubewright_kinds::built_in::storage::storage_class::STORAGE_CLASS;
use kubewright_meta::ApiError;
use kubewright_quota::CLASS_ANNOTATION;
use serde_json::Value;

use super::default_class::DefaultClass;
use super::{AdmissionPlugin, Plugin, Review};

static CLASS: DefaultClass = DefaultClass {
    annotation: CLASS_ANNOTATION,
    field: "storageClassName",
    classes: &STORAGE_CLASS,
    marks: &[
        "storageclass.kubernetes.io/is-default-class",
        "storageclass.beta.kubernetes.io/is-default-class",
    ],
};

/// Gives a new claim the default storage class.
pub(super) struct DefaultStorageClass;

impl AdmissionPlugin for DefaultStorageClass {
    fn name(&self) -> Plugin {
        Plugin::DefaultStorageClass
    }

    fn handles(&self, review: &Review<'_>) -> bool {
        review.is_of_new()
    }

    fn mutate(&self, review: &Review<'_>, claim: &mut Value) -> Result<(), ApiError> {
        CLASS.set(review, claim);
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
    fn a_claim_gets_the_newest_default_class_unless_it_names_one() {
        let class = |name: &str, made: &str, default: &str| {
            let annotations = json!({"storageclass.kubernetes.io/is-default-class": default});
            let meta = json!({"name": name, "creationTimestamp": made, "annotations": annotations});
            (&STORAGE_CLASS, json!({"metadata": meta}))
        };
        let fake = Fake::with(&[
            class("old", "2024-01-01T00:00:00Z", "true"),
            class("new", "2025-01-01T00:00:00Z", "true"),
            class("none", "2026-01-01T00:00:00Z", "false"),
        ]);
        let of = |spec: Value| {
            let mut claim = json!({"metadata": {"name": "c"}, "spec": spec});
            let review = fake.review(&PERSISTENT_VOLUME_CLAIM, Operation::Create);
            DefaultStorageClass.mutate(&review, &mut claim).expect("nothing is refused");
            claim["spec"]["storageClassName"].clone()
        };
        assert_eq!(of(json!({})), "new");
        assert_eq!(of(json!({"storageClassName": "old"})), "old");
        assert_eq!(of(json!({"storageClassName": ""})), "");
    }
}
