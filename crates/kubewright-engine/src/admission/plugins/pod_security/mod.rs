//! PodSecurity: a namespace says by its labels how careful its pods have to be
//! (`k8s.io/pod-security-admission/admission`).

mod baseline;
mod checks;
mod namespace;
mod policy;
mod restricted;

use std::collections::BTreeMap;

use kubewright_kinds::Role;
use kubewright_kinds::built_in::core::namespace::NAMESPACE;
use kubewright_meta::ApiError;
use serde_json::Value;

use self::checks::Finding;
use self::policy::{Level, Policy, Standard};
use super::refusal::forbidden;
use super::{AdmissionPlugin, Operation, Plugin, Review};

/// Refuses pods that the standards of their namespace do not allow.
pub(super) struct PodSecurity;

impl AdmissionPlugin for PodSecurity {
    fn name(&self) -> Plugin {
        Plugin::PodSecurity
    }

    fn handles(&self, review: &Review<'_>) -> bool {
        review.is_write() && matches!(review.subresource, "" | "ephemeralcontainers" | "resize")
    }

    fn validate(
        &self,
        review: &Review<'_>,
        object: &Value,
        warnings: &mut Vec<String>,
    ) -> Result<(), ApiError> {
        validate(review, object, warnings)
    }
}

/// Asks what a new or changed pod, or the template of pods in another object, has against the standards of its
/// namespace. A pod may be refused; all else is only warned of. Of a namespace it asks what its pods have against it.
///
/// # Errors
/// 403 for a pod.
fn validate(review: &Review<'_>, object: &Value, warnings: &mut Vec<String>) -> Result<(), ApiError> {
    if review.call.kind.behaviour.role == Role::Namespace {
        return namespace::validate(review, object, warnings);
    }
    let is_pod = review.is_of_pod();
    if !is_pod && !review.subresource.is_empty() {
        return Ok(());
    }
    let Some(policy) = policy_of(review) else { return Ok(()) };
    if is_pod
        && review.operation == Operation::Update
        && !review.old.is_some_and(|old| has_other_images(object, old))
    {
        return Ok(());
    }
    let Some(pod) = template_of(object, is_pod) else { return Ok(()) };
    if is_pod && let Some(why) = violation(policy.enforce, pod) {
        let why = format!("violates PodSecurity \"{}\": {why}", policy.enforce);
        return Err(forbidden(review, object, &why));
    }
    if let Some(why) = violation(policy.warn, pod) {
        warnings.push(format!("would violate PodSecurity \"{}\": {why}", policy.warn));
    }
    Ok(())
}

/// The policy of the namespace, when it asks for anything.
fn policy_of(review: &Review<'_>) -> Option<Policy> {
    let namespace = review.objects.entry(&NAMESPACE, review.call.namespace)?;
    let (policy, _) = Policy::of(|label| namespace.tag.label(label));
    (policy.enforce.level != Level::Privileged || policy.warn.level != Level::Privileged).then_some(policy)
}

/// The pod in an object: itself, or its template.
fn template_of(object: &Value, is_pod: bool) -> Option<&Value> {
    if is_pod {
        return Some(object);
    }
    let places = ["/spec/jobTemplate/spec/template", "/spec/template", "/template"];
    places.into_iter().find_map(|place| object.pointer(place)).filter(|template| template["spec"].is_object())
}

/// What a pod has against a standard, in detail.
fn violation(standard: Standard, pod: &Value) -> Option<String> {
    let findings = checks::evaluate(standard, pod);
    let told: Vec<String> = findings.iter().map(Finding::to_string).collect();
    (!told.is_empty()).then(|| told.join(", "))
}

/// Whether a change of a pod matters: a container came, or has another image.
fn has_other_images(pod: &Value, old: &Value) -> bool {
    let images = |pod: &Value, list: &str| -> Vec<Value> {
        let containers = pod["spec"][list].as_array().into_iter().flatten();
        containers.map(|container| container["image"].clone()).collect()
    };
    let by_name = |pod: &Value| -> BTreeMap<String, Value> {
        let containers = pod["spec"]["ephemeralContainers"].as_array().into_iter().flatten();
        let named = |container: &Value| {
            (container["name"].as_str().unwrap_or_default().to_owned(), container["image"].clone())
        };
        containers.map(named).collect()
    };
    let before = by_name(old);
    ["containers", "initContainers"].into_iter().any(|list| images(pod, list) != images(old, list))
        || by_name(pod).iter().any(|(name, image)| before.get(name) != Some(image))
}

#[cfg(test)]
mod tests {
    use kubewright_kinds::built_in::core::pod::POD;
    use serde_json::json;

    use super::*;
    use crate::admission::fake::Fake;

    #[test]
    fn a_namespace_says_which_pods_are_refused_and_of_which_is_warned() {
        let namespace = |name: &str, label: &str| {
            let labels = json!({format!("pod-security.kubernetes.io/{label}"): "baseline"});
            (&NAMESPACE, json!({"metadata": {"name": name, "labels": labels}}))
        };
        let fake = Fake::with(&[namespace("strict", "enforce"), namespace("mild", "warn")]);
        let pod = json!({"metadata": {"name": "p"}, "spec": {"hostNetwork": true, "containers": []}});
        let of = |namespace: &'static str| {
            let mut review = fake.review(&POD, Operation::Create);
            review.call.namespace = namespace;
            let mut warnings = Vec::new();
            PodSecurity.validate(&review, &pod, &mut warnings).map(|()| warnings.len())
        };
        assert!(of("strict").is_err());
        assert_eq!(of("mild").ok(), Some(1));
        assert_eq!(of("other").ok(), Some(0));
    }
}
