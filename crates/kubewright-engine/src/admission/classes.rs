//! DefaultStorageClass and DefaultIngressClass: who names no class gets the one that is marked as the default
//! (`k8s.io/kubernetes/plugin/pkg/admission/{storage/storageclass/setdefault,network/defaultingressclass}`).

use std::cmp::Reverse;

use kubewright_meta::object;
use kubewright_quota::CLASS_ANNOTATION;
use serde_json::Value;

use super::{Review, stored};

const STORAGE: &str = "storage.k8s.io/storageclasses";
const STORAGE_MARKS: [&str; 2] =
    ["storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"];
const INGRESS: &str = "networking.k8s.io/ingressclasses";
const INGRESS_MARKS: [&str; 1] = ["ingressclass.kubernetes.io/is-default-class"];
const INGRESS_ANNOTATION: &str = "kubernetes.io/ingress.class";

/// Gives a new claim the default storage class.
pub(super) fn mutate_claim(review: &Review<'_>, claim: &mut Value) {
    set_default(review, claim, CLASS_ANNOTATION, "storageClassName", (STORAGE, &STORAGE_MARKS));
}

/// Gives a new ingress the default ingress class.
pub(super) fn mutate_ingress(review: &Review<'_>, ingress: &mut Value) {
    set_default(review, ingress, INGRESS_ANNOTATION, "ingressClassName", (INGRESS, &INGRESS_MARKS));
}

fn set_default(
    review: &Review<'_>,
    object: &mut Value,
    annotation: &str,
    field: &str,
    (collection, marks): (&str, &[&str]),
) {
    let named = object["metadata"]["annotations"].get(annotation).is_some()
        || object["spec"].get(field).is_some_and(|class| !class.is_null());
    if named {
        return;
    }
    let marked = marks
        .iter()
        .flat_map(|mark| stored::mentioning(&review.registry.snapshot(), collection, mark))
        .filter(|class| marks.iter().any(|mark| class["metadata"]["annotations"][*mark] == "true"));
    // The newest; of those of one second the first by name.
    let newest = marked.min_by_key(|class| {
        (Reverse(object::meta_text(class, "creationTimestamp").to_owned()), object::name(class).to_owned())
    });
    if let Some(class) = newest {
        object::member_mut(object, "spec").insert(field.to_owned(), object::name(&class).into());
    }
}
