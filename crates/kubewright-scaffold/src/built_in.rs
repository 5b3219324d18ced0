//! Kubernetes' own kinds, and where their types are in `k8s-openapi`.

use crate::names::{Group, Kind, Version};

/// The kinds of stable versions: group, version, module in `k8s_openapi`, names. (Kubernetes v1.36)
const KINDS: [(&str, &str, &str, &str); 19] = [
    (
        "admissionregistration.k8s.io",
        "v1",
        "api::admissionregistration::v1",
        "MutatingAdmissionPolicy MutatingAdmissionPolicyBinding MutatingWebhookConfiguration ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding ValidatingWebhookConfiguration",
    ),
    (
        "apiextensions.k8s.io",
        "v1",
        "apiextensions_apiserver::pkg::apis::apiextensions::v1",
        "CustomResourceDefinition",
    ),
    ("apps", "v1", "api::apps::v1", "ControllerRevision DaemonSet Deployment ReplicaSet StatefulSet"),
    ("autoscaling", "v1", "api::autoscaling::v1", "HorizontalPodAutoscaler"),
    ("autoscaling", "v2", "api::autoscaling::v2", "HorizontalPodAutoscaler"),
    ("batch", "v1", "api::batch::v1", "CronJob Job"),
    ("certificates.k8s.io", "v1", "api::certificates::v1", "CertificateSigningRequest"),
    ("coordination.k8s.io", "v1", "api::coordination::v1", "Lease"),
    (
        "core",
        "v1",
        "api::core::v1",
        "ComponentStatus ConfigMap Endpoints Event LimitRange Namespace Node PersistentVolume PersistentVolumeClaim Pod PodTemplate ReplicationController ResourceQuota Secret Service ServiceAccount",
    ),
    ("discovery.k8s.io", "v1", "api::discovery::v1", "EndpointSlice"),
    ("events.k8s.io", "v1", "api::events::v1", "Event"),
    ("flowcontrol.apiserver.k8s.io", "v1", "api::flowcontrol::v1", "FlowSchema PriorityLevelConfiguration"),
    (
        "networking.k8s.io",
        "v1",
        "api::networking::v1",
        "IPAddress Ingress IngressClass NetworkPolicy ServiceCIDR",
    ),
    ("node.k8s.io", "v1", "api::node::v1", "RuntimeClass"),
    ("policy", "v1", "api::policy::v1", "PodDisruptionBudget"),
    ("rbac.authorization.k8s.io", "v1", "api::rbac::v1", "ClusterRole ClusterRoleBinding Role RoleBinding"),
    (
        "resource.k8s.io",
        "v1",
        "api::resource::v1",
        "DeviceClass ResourceClaim ResourceClaimTemplate ResourceSlice",
    ),
    ("scheduling.k8s.io", "v1", "api::scheduling::v1", "PriorityClass"),
    (
        "storage.k8s.io",
        "v1",
        "api::storage::v1",
        "CSIDriver CSINode CSIStorageCapacity StorageClass VolumeAttachment VolumeAttributesClass",
    ),
];

/// The whole name of a built-in group, and the module of a kind of it. Groups may be called by their first part, too
/// (`networking` for `networking.k8s.io`).
pub(crate) fn find(group: &Group, version: &Version, kind: &Kind) -> Option<(&'static str, &'static str)> {
    let is_group = |name: &str| {
        name == group.as_str()
            || name
                .strip_suffix(".k8s.io")
                .is_some_and(|short| short.split('.').next() == Some(group.as_str()))
    };
    KINDS
        .iter()
        .find(|(name, of, _, kinds)| {
            is_group(name) && *of == version.as_str() && kinds.split(' ').any(|known| known == kind.as_str())
        })
        .map(|(name, _, module, _)| (*name, *module))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(group: &str, version: &str, kind: &str) -> Option<(&'static str, &'static str)> {
        let name = Group::new(group).expect("a group");
        find(&name, &Version::new(version).expect("a version"), &Kind::new(kind).expect("a kind"))
    }

    #[test]
    fn kb_10_built_in_kinds_are_found_by_the_names_that_users_know() {
        assert_eq!(found("apps", "v1", "Deployment"), Some(("apps", "api::apps::v1")));
        assert_eq!(found("core", "v1", "Pod"), Some(("core", "api::core::v1")));
        assert_eq!(found("networking", "v1", "Ingress"), Some(("networking.k8s.io", "api::networking::v1")));
        assert_eq!(found("rbac", "v1", "Role"), Some(("rbac.authorization.k8s.io", "api::rbac::v1")));
        assert_eq!(found("apps", "v1beta1", "Deployment"), None);
        assert_eq!(found("police", "v1", "Deployment"), None);
    }
}
