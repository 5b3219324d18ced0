//! The plugins that kube-apiserver has on by default, in its order (`pkg/kubeapiserver/options/plugins.go`). Which of
//! them look at a kind is decided once: the others cost nothing.

use serde_json::Value;

use super::{
    Operation, Review, certificates, classes, limit_ranger, namespace, nodes, pod_resize, pod_security,
    priority, runtime_class, service_account, tolerations, volumes,
};
use crate::error::ApiError;

/// What the plugins before the webhooks add, and refuse.
///
/// # Errors
/// The first refusal.
pub(super) fn mutate(review: &Review<'_>, object: &mut Value) -> Result<(), ApiError> {
    namespace::admit(review, object)?;
    let creates = review.operation == Operation::Create;
    let kind = review.call.kind;
    match (kind.group.as_str(), kind.plural.as_str(), review.subresource) {
        ("", "pods", "") => mutate_pod(review, object)?,
        ("", "pods", "resize") => limit_ranger::mutate(review, object),
        ("", "pods", "binding") if creates && object["target"]["kind"] == "Node" => {
            let node = object["target"]["name"].as_str().unwrap_or_default().to_owned();
            nodes::tell_place(review, object, &node);
        }
        ("", "nodes", "") if creates => nodes::taint(object),
        ("", "persistentvolumeclaims", "") if creates => {
            classes::mutate_claim(review, object);
            volumes::protect(object, &kind.plural);
        }
        ("", "persistentvolumes", "") | ("storage.k8s.io", "volumeattributesclasses", "") if creates => {
            volumes::protect(object, &kind.plural);
        }
        ("certificates.k8s.io", "certificatesigningrequests", _) => certificates::mutate(review, object),
        ("networking.k8s.io", "ingresses", "") if creates => classes::mutate_ingress(review, object),
        _ => {}
    }
    Ok(())
}

fn mutate_pod(review: &Review<'_>, pod: &mut Value) -> Result<(), ApiError> {
    let creates = review.operation == Operation::Create;
    limit_ranger::mutate(review, pod);
    if creates {
        service_account::mutate(review, pod)?;
    }
    priority::mutate(review, pod)?;
    tolerations::mutate(pod);
    if creates {
        runtime_class::mutate(review, pod)?;
        let node = nodes::node_of(pod);
        nodes::tell_place(review, pod, &node);
    }
    Ok(())
}

/// What the plugins before the webhooks have against an object as it will be.
///
/// # Errors
/// The first refusal.
pub(super) fn validate(
    review: &Review<'_>,
    object: &Value,
    warnings: &mut Vec<String>,
) -> Result<(), ApiError> {
    let creates = review.operation == Operation::Create;
    let kind = review.call.kind;
    match (kind.group.as_str(), kind.plural.as_str(), review.subresource) {
        ("", "pods", subresource) => {
            limit_ranger::validate(review, object)?;
            service_account::validate(review, object)?;
            pod_security::validate(review, object, warnings)?;
            match subresource {
                "" if creates => runtime_class::validate(review, object),
                "resize" => pod_resize::validate(review, object),
                _ => Ok(()),
            }
        }
        ("", "namespaces", _) => pod_security::validate_namespace(review, object, warnings),
        ("", "persistentvolumeclaims", "") => {
            limit_ranger::validate(review, object)?;
            volumes::validate_growth(review, object)
        }
        ("", "replicationcontrollers" | "podtemplates", _)
        | ("apps", "daemonsets" | "deployments" | "replicasets" | "statefulsets", _)
        | ("batch", "cronjobs" | "jobs", _) => pod_security::validate(review, object, warnings),
        ("scheduling.k8s.io", "priorityclasses", "") => priority::validate_class(review, object),
        ("certificates.k8s.io", "certificatesigningrequests", _) => certificates::validate(review, object),
        _ => Ok(()),
    }
}
