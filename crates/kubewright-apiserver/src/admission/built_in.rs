//! The plugins that come with kube-apiserver, in its order (`pkg/kubeapiserver/options/plugins.go`). Which of them look at
//! a kind is decided once: the others cost nothing.

use kubewright_meta::ApiError;
use serde_json::Value;

use super::{
    Operation, Plugin, Review, affinity, certificates, classes, external_ips, images, limit_ranger,
    namespace, nodes, owners, pod_resize, pod_security, priority, runtime_class, service_account,
    tolerations, volumes,
};

/// What the plugins before the webhooks add, and refuse.
///
/// # Errors
/// The first refusal.
pub(super) fn mutate(review: &Review<'_>, object: &mut Value) -> Result<(), ApiError> {
    if review.asks(Plugin::NamespaceLifecycle) {
        namespace::admit(review, object)?;
    }
    let creates = review.operation == Operation::Create;
    let kind = review.call.kind;
    match (kind.group.as_str(), kind.plural.as_str(), review.subresource) {
        ("", "pods", "") => mutate_pod(review, object)?,
        ("", "pods", "resize") if review.asks(Plugin::LimitRanger) => limit_ranger::mutate(review, object),
        ("", "pods", "binding") if creates && object["target"]["kind"] == "Node" => {
            let node = object["target"]["name"].as_str().unwrap_or_default().to_owned();
            if review.asks(Plugin::PodTopologyLabels) {
                nodes::tell_place(review, object, &node);
            }
        }
        ("", "nodes", "") if creates && review.asks(Plugin::TaintNodesByCondition) => nodes::taint(object),
        ("", "persistentvolumeclaims", "") if creates => {
            if review.asks(Plugin::DefaultStorageClass) {
                classes::mutate_claim(review, object);
            }
            protect(review, object);
        }
        ("", "persistentvolumes", "") | ("storage.k8s.io", "volumeattributesclasses", "") if creates => {
            protect(review, object);
        }
        ("networking.k8s.io", "ingresses", "") if creates && review.asks(Plugin::DefaultIngressClass) => {
            classes::mutate_ingress(review, object);
        }
        _ => {}
    }
    Ok(())
}

fn protect(review: &Review<'_>, object: &mut Value) {
    if review.asks(Plugin::StorageObjectInUseProtection) {
        volumes::protect(object, &review.call.kind.plural);
    }
}

fn mutate_pod(review: &Review<'_>, pod: &mut Value) -> Result<(), ApiError> {
    let creates = review.operation == Operation::Create;
    if review.asks(Plugin::LimitRanger) {
        limit_ranger::mutate(review, pod);
    }
    if creates && review.asks(Plugin::ServiceAccount) {
        service_account::mutate(review, pod)?;
    }
    if review.asks(Plugin::AlwaysPullImages) {
        images::mutate(review, pod);
    }
    if review.asks(Plugin::Priority) {
        priority::mutate(review, pod)?;
    }
    if review.asks(Plugin::DefaultTolerationSeconds) {
        tolerations::mutate(pod);
    }
    if review.asks(Plugin::ExtendedResourceToleration) {
        tolerations::stand_resources(pod);
    }
    if creates && review.asks(Plugin::RuntimeClass) {
        runtime_class::mutate(review, pod)?;
    }
    if creates && review.asks(Plugin::PodTopologyLabels) {
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
    if review.asks(Plugin::NamespaceExists) {
        namespace::exists(review)?;
    }
    let kind = review.call.kind;
    match (kind.group.as_str(), kind.plural.as_str(), review.subresource) {
        ("", "pods", _) => validate_pod(review, object, warnings)?,
        ("", "namespaces", _) if review.asks(Plugin::PodSecurity) => {
            pod_security::validate_namespace(review, object, warnings)?;
        }
        ("", "persistentvolumeclaims", "") if review.asks(Plugin::LimitRanger) => {
            limit_ranger::validate(review, object)?;
        }
        ("", "replicationcontrollers" | "podtemplates", _)
        | ("apps", "daemonsets" | "deployments" | "replicasets" | "statefulsets", _)
        | ("batch", "cronjobs" | "jobs", _)
            if review.asks(Plugin::PodSecurity) =>
        {
            pod_security::validate(review, object, warnings)?;
        }
        ("scheduling.k8s.io", "priorityclasses", "") if review.asks(Plugin::Priority) => {
            priority::validate_class(review, object)?;
        }
        _ => {}
    }
    if review.asks(Plugin::OwnerReferencesPermissionEnforcement) {
        owners::validate(review, object)?;
    }
    match (kind.group.as_str(), kind.plural.as_str(), review.subresource) {
        ("", "persistentvolumeclaims", "") if review.asks(Plugin::PersistentVolumeClaimResize) => {
            volumes::validate_growth(review, object)
        }
        ("", "pods", "") if review.operation == Operation::Create && review.asks(Plugin::RuntimeClass) => {
            runtime_class::validate(review, object)
        }
        ("", "pods", "resize") if review.asks(Plugin::PodResizeValidator) => {
            pod_resize::validate(review, object)
        }
        ("", "services", "") if review.asks(Plugin::DenyServiceExternalIPs) => {
            external_ips::validate(review, object)
        }
        ("certificates.k8s.io", "certificatesigningrequests", _) => certificates::validate(review, object),
        _ => Ok(()),
    }
}

fn validate_pod(review: &Review<'_>, pod: &Value, warnings: &mut Vec<String>) -> Result<(), ApiError> {
    if review.asks(Plugin::LimitPodHardAntiAffinityTopology) {
        affinity::validate(review, pod)?;
    }
    if review.asks(Plugin::LimitRanger) {
        limit_ranger::validate(review, pod)?;
    }
    if review.asks(Plugin::ServiceAccount) {
        service_account::validate(review, pod)?;
    }
    if review.asks(Plugin::AlwaysPullImages) {
        images::validate(review, pod)?;
    }
    if review.asks(Plugin::PodSecurity) {
        pod_security::validate(review, pod, warnings)?;
    }
    Ok(())
}
