//! AlwaysPullImages: nobody runs an image that only somebody else's pod may pull
//! (`k8s.io/kubernetes/plugin/pkg/admission/alwayspullimages`).

use std::collections::BTreeSet;

use kubewright_meta::{ApiError, object};
use serde_json::Value;

use super::refusal::{forbidden, joined};
use super::{AdmissionPlugin, Operation, Plugin, Review};

const LISTS: [&str; 3] = ["initContainers", "containers", "ephemeralContainers"];

/// Makes every container pull its image, and refuses one that does not.
pub(super) struct AlwaysPullImages;

impl AdmissionPlugin for AlwaysPullImages {
    fn name(&self) -> Plugin {
        Plugin::AlwaysPullImages
    }

    fn handles(&self, review: &Review<'_>) -> bool {
        review.is_of_whole()
    }

    fn mutate(&self, review: &Review<'_>, pod: &mut Value) -> Result<(), ApiError> {
        mutate(review, pod);
        Ok(())
    }

    fn validate(&self, review: &Review<'_>, pod: &Value, _: &mut Vec<String>) -> Result<(), ApiError> {
        validate(review, pod)
    }
}

/// Makes every container pull its image.
fn mutate(review: &Review<'_>, pod: &mut Value) {
    if !is_meant(review, pod) {
        return;
    }
    let spec = object::member_mut(pod, "spec");
    for list in LISTS {
        for container in spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
            object::as_map(container).insert("imagePullPolicy".into(), "Always".into());
        }
    }
    for volume in spec.get_mut("volumes").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(image) = volume.get_mut("image").filter(|image| image.is_object()) {
            object::as_map(image).insert("pullPolicy".into(), "Always".into());
        }
    }
}

/// Asks whether every container still pulls its image: a webhook may have changed it.
///
/// # Errors
/// 500, as kube-apiserver has no status for several refusals.
fn validate(review: &Review<'_>, pod: &Value) -> Result<(), ApiError> {
    if !is_meant(review, pod) {
        return Ok(());
    }
    let mut complaints = Vec::new();
    let mut check = |field: String, policy: &Value| {
        if policy != "Always" {
            let policy = policy.as_str().unwrap_or_default();
            let why = format!("{field}: Unsupported value: {policy:?}: supported values: \"Always\"");
            complaints.push(forbidden(review, pod, &why).message);
        }
    };
    for list in LISTS {
        for (at, container) in pod["spec"][list].as_array().into_iter().flatten().enumerate() {
            check(format!("spec.{list}[{at}].imagePullPolicy"), &container["imagePullPolicy"]);
        }
    }
    for (at, volume) in pod["spec"]["volumes"].as_array().into_iter().flatten().enumerate() {
        if volume["image"].is_object() {
            check(format!("spec.volumes[{at}].image.pullPolicy"), &volume["image"]["pullPolicy"]);
        }
    }
    joined(&complaints).map_or(Ok(()), |why| Err(ApiError::unexplained(why)))
}

/// A new pod, or one with an image that it has not had.
fn is_meant(review: &Review<'_>, pod: &Value) -> bool {
    let old = match (review.operation, review.old) {
        (Operation::Update, Some(old)) => images(old),
        _ => return true,
    };
    !images(pod).is_subset(&old)
}

fn images(pod: &Value) -> BTreeSet<&str> {
    let containers = LISTS.into_iter().flat_map(|list| pod["spec"][list].as_array()).flatten();
    containers.filter_map(|container| container["image"].as_str()).collect()
}

#[cfg(test)]
mod tests {
    use kubewright_kinds::built_in::core::pod::POD;
    use serde_json::json;

    use super::*;
    use crate::admission::fake::Fake;

    #[test]
    fn a_container_pulls_its_image_unless_the_pod_has_had_it() {
        let fake = Fake::with(&[]);
        let pod = json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
        let mut new = pod.clone();
        let mut review = fake.review(&POD, Operation::Create);
        AlwaysPullImages.mutate(&review, &mut new).expect("nothing is refused");
        assert_eq!(new["spec"]["containers"][0]["imagePullPolicy"], "Always");
        assert!(AlwaysPullImages.validate(&review, &new, &mut Vec::new()).is_ok());
        assert!(AlwaysPullImages.validate(&review, &pod, &mut Vec::new()).is_err());
        review = Review { old: Some(&pod), ..fake.review(&POD, Operation::Update) };
        assert!(AlwaysPullImages.validate(&review, &pod, &mut Vec::new()).is_ok());
    }
}
