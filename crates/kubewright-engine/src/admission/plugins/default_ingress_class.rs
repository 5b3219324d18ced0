//! DefaultIngressClass: an ingress that names no class gets the one that is marked as the default
//! (`k8s.io/kubernetes/plugin/pkg/admission/network/defaultingressclass`).

use kubewright_kinds::built_in::networking::ingress_class::INGRESS_CLASS;
use kubewright_meta::ApiError;
use serde_json::Value;

use super::default_class::DefaultClass;
use super::{AdmissionPlugin, Plugin, Review};

static CLASS: DefaultClass = DefaultClass {
    annotation: "kubernetes.io/ingress.class",
    field: "ingressClassName",
    classes: &INGRESS_CLASS,
    marks: &["ingressclass.kubernetes.io/is-default-class"],
};

/// Gives a new ingress the default ingress class.
pub(super) struct DefaultIngressClass;

impl AdmissionPlugin for DefaultIngressClass {
    fn name(&self) -> Plugin {
        Plugin::DefaultIngressClass
    }

    fn handles(&self, review: &Review<'_>) -> bool {
        review.is_of_new()
    }

    fn mutate(&self, review: &Review<'_>, ingress: &mut Value) -> Result<(), ApiError> {
        CLASS.set(review, ingress);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use kubewright_kinds::built_in::networking::ingress::INGRESS;
    use serde_json::json;

    use super::*;
    use crate::admission::Operation;
    use crate::admission::fake::Fake;

    #[test]
    fn an_ingress_gets_the_default_class_unless_it_names_one() {
        let annotations = json!({"ingressclass.kubernetes.io/is-default-class": "true"});
        let class = json!({"metadata": {"name": "usual", "annotations": annotations}});
        let fake = Fake::with(&[(&INGRESS_CLASS, class)]);
        let of = |annotations: Value| {
            let mut ingress = json!({"metadata": {"name": "i", "annotations": annotations}});
            let review = fake.review(&INGRESS, Operation::Create);
            DefaultIngressClass.mutate(&review, &mut ingress).expect("nothing is refused");
            ingress["spec"]["ingressClassName"].clone()
        };
        assert_eq!(of(json!({})), "usual");
        assert_eq!(of(json!({"kubernetes.io/ingress.class": "other"})), Value::Null);
    }
}
