//! RuntimeClass: what a pod's runtime costs, and the nodes that have it
//! (`k8s.io/kubernetes/plugin/pkg/admission/runtimeclass`).

use kubewright_kinds::built_in::node::runtime_class::RUNTIME_CLASS;
use kubewright_meta::{ApiError, object};
use kubewright_quota::Resources;
use serde_json::{Value, json};

use super::refusal::{forbidden, unaskable};
use super::{AdmissionPlugin, Plugin, Review, tolerations};

const OTHER_OVERHEAD: &str = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead";

/// Gives a new pod what its runtime class says, and refuses another overhead.
pub(super) struct RuntimeClass;

impl AdmissionPlugin for RuntimeClass {
    fn name(&self) -> Plugin {
        Plugin::RuntimeClass
    }

    fn handles(&self, review: &Review<'_>) -> bool {
        review.is_of_new()
    }

    fn mutate(&self, review: &Review<'_>, pod: &mut Value) -> Result<(), ApiError> {
        mutate(review, pod)
    }

    fn validate(&self, review: &Review<'_>, pod: &Value, _: &mut Vec<String>) -> Result<(), ApiError> {
        validate(review, pod)
    }
}

/// Gives a new pod the overhead, node selector and tolerations of its runtime class.
///
/// # Errors
/// 403 when the class is not there, or says something else than the pod.
fn mutate(review: &Review<'_>, pod: &mut Value) -> Result<(), ApiError> {
    let Some(class) = class_of(review, pod)? else { return Ok(()) };
    if let Some(overhead) = overhead_of(&class) {
        let given = Resources::of(&pod["spec"]["overhead"]);
        if pod["spec"]["overhead"].is_object() && given != Resources::of(overhead) {
            return Err(forbidden(review, pod, OTHER_OVERHEAD));
        }
        object::member_mut(pod, "spec").insert("overhead".into(), Resources::of(overhead).to_value());
    }
    let scheduling = &class["scheduling"];
    for (key, value) in scheduling["nodeSelector"].as_object().into_iter().flatten() {
        let selector = &pod["spec"]["nodeSelector"];
        if let Some(given) = selector.get(key).filter(|given| *given != value) {
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            let why = format!(
                "conflict: runtimeClass.scheduling.nodeSelector[{key}] = {}; pod.spec.nodeSelector[{key}] = {}",
                text(value),
                text(given)
            );
            return Err(forbidden(review, pod, &why));
        }
        let selector = object::member_mut(pod, "spec").entry("nodeSelector").or_insert_with(|| json!({}));
        object::as_map(selector).insert(key.clone(), value.clone());
    }
    if scheduling.is_object() {
        let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
        let merged =
            tolerations::merged(&list(&pod["spec"]["tolerations"]), &list(&scheduling["tolerations"]));
        if !merged.is_empty() {
            object::member_mut(pod, "spec").insert("tolerations".into(), merged.into());
        }
    }
    Ok(())
}

/// Allows no overhead but that of the runtime class.
///
/// # Errors
/// 403 for another one, or one without a class that has any.
fn validate(review: &Review<'_>, pod: &Value) -> Result<(), ApiError> {
    let class = class_of(review, pod)?;
    let given = &pod["spec"]["overhead"];
    match class.as_ref().and_then(overhead_of) {
        Some(overhead) if Resources::of(overhead) != Resources::of(given) => {
            Err(forbidden(review, pod, OTHER_OVERHEAD))
        }
        None if given.is_object() => {
            let why = "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead";
            Err(forbidden(review, pod, why))
        }
        _ => Ok(()),
    }
}

fn class_of(review: &Review<'_>, pod: &Value) -> Result<Option<Value>, ApiError> {
    let Some(name) = pod["spec"]["runtimeClassName"].as_str() else { return Ok(None) };
    if name.is_empty() {
        return Err(ApiError::unexplained("resource name may not be empty"));
    }
    if let Some(why) = unaskable(name) {
        return Err(ApiError::unexplained(why));
    }
    match review.objects.object(&RUNTIME_CLASS, name) {
        Some(class) => Ok(Some(class)),
        None => Err(forbidden(review, pod, &format!("pod rejected: RuntimeClass {name:?} not found"))),
    }
}

fn overhead_of(class: &Value) -> Option<&Value> {
    class["overhead"].is_object().then(|| &class["overhead"]["podFixed"])
}

#[cfg(test)]
mod tests {
    use kubewright_kinds::built_in::core::pod::POD;

    use super::*;
    use crate::admission::Operation;
    use crate::admission::fake::Fake;

    fn admitted(spec: &Value) -> Result<Value, String> {
        let scheduling = json!({"nodeSelector": {"vm": "yes"}});
        let class = json!({"metadata": {"name": "vm"}, "handler": "h", "scheduling": scheduling,
            "overhead": {"podFixed": {"cpu": "100m"}}});
        let fake = Fake::with(&[(&RUNTIME_CLASS, class)]);
        let (review, mut pod) =
            (fake.review(&POD, Operation::Create), json!({"metadata": {"name": "p"}, "spec": spec}));
        let outcome = RuntimeClass.mutate(&review, &mut pod);
        let outcome = outcome.and_then(|()| RuntimeClass.validate(&review, &pod, &mut Vec::new()));
        outcome.map(|()| pod["spec"].take()).map_err(|error| error.message)
    }

    #[test]
    fn a_pod_gets_the_overhead_and_the_nodes_of_its_class() {
        let spec = admitted(&json!({"runtimeClassName": "vm"})).expect("the class is there");
        assert_eq!(spec["overhead"], json!({"cpu": "100m"}));
        assert_eq!(spec["nodeSelector"], json!({"vm": "yes"}));
        assert!(admitted(&json!({"runtimeClassName": "vm", "nodeSelector": {"vm": "no"}})).is_err());
        assert!(admitted(&json!({"runtimeClassName": "vm", "overhead": {"cpu": "1"}})).is_err());
        assert!(admitted(&json!({"runtimeClassName": "missing"})).is_err());
        assert!(admitted(&json!({"overhead": {"cpu": "1"}})).is_err(), "an overhead without a class");
        assert!(admitted(&json!({"overhead": {}})).is_err(), "nothing of it is said, but it is there");
        assert!(admitted(&json!({"runtimeClassName": "vm", "overhead": {}})).is_err());
        assert!(admitted(&json!({})).is_ok());
    }
}
