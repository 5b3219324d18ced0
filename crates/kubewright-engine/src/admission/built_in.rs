//! The plugins that come with kube-apiserver, in its order (`pkg/kubeapiserver/options/plugins.go`). Which of them look at
//! a kind is said by its descriptor; the others cost nothing.

use kubewright_kinds::Role;
use kubewright_meta::ApiError;
use serde_json::Value;

use super::{
    Operation, Plugin, Review, affinity, certificates, classes, external_ips, images, limit_ranger,
    namespace, nodes, owners, pod_resize, pod_security, priority, runtime_class, service_account,
    tolerations, volumes,
};

type Mutate = fn(&Review<'_>, &mut Value) -> Result<(), ApiError>;
type Validate = fn(&Review<'_>, &Value, &mut Vec<String>) -> Result<(), ApiError>;

/// What plugins add, and refuse before they have seen what others add.
static MUTATE: [(Plugin, Mutate); 13] = [
    (Plugin::NamespaceLifecycle, |review, object| namespace::admit(review, object)),
    (Plugin::LimitRanger, |review, pod| when(of_pod(review), || limit_ranger::mutate(review, pod))),
    (
        Plugin::ServiceAccount,
        |review, pod| {
            if is_new(review) { service_account::mutate(review, pod) } else { Ok(()) }
        },
    ),
    (Plugin::TaintNodesByCondition, |review, node| when(is_new(review), || nodes::taint(node))),
    (Plugin::AlwaysPullImages, |review, pod| when(is_whole(review), || images::mutate(review, pod))),
    (Plugin::Priority, |review, pod| {
        if of_pod(review) && is_whole(review) { priority::mutate(review, pod) } else { Ok(()) }
    }),
    (Plugin::DefaultTolerationSeconds, |review, pod| when(is_whole(review), || tolerations::mutate(pod))),
    (Plugin::ExtendedResourceToleration, |review, pod| {
        when(is_whole(review), || tolerations::stand_resources(pod))
    }),
    (Plugin::DefaultStorageClass, |review, claim| {
        when(is_new(review), || classes::mutate_claim(review, claim))
    }),
    (Plugin::StorageObjectInUseProtection, |review, object| {
        when(is_new(review), || volumes::protect(review, object))
    }),
    (
        Plugin::RuntimeClass,
        |review, pod| {
            if is_new(review) { runtime_class::mutate(review, pod) } else { Ok(()) }
        },
    ),
    (Plugin::DefaultIngressClass, |review, ingress| {
        when(is_new(review), || classes::mutate_ingress(review, ingress))
    }),
    (Plugin::PodTopologyLabels, |review, object| {
        nodes::place(review, object);
        Ok(())
    }),
];

/// What plugins have against an object as it will be.
static VALIDATE: [(Plugin, Validate); 15] = [
    (Plugin::NamespaceExists, |review, _, _| namespace::exists(review)),
    (Plugin::LimitPodHardAntiAffinityTopology, |review, pod, _| affinity::validate(review, pod)),
    (Plugin::LimitRanger, |review, object, _| limit_ranger::validate(review, object)),
    (Plugin::ServiceAccount, |review, pod, _| service_account::validate(review, pod)),
    (Plugin::AlwaysPullImages, |review, pod, _| images::validate(review, pod)),
    (Plugin::PodSecurity, pod_security::validate),
    (Plugin::Priority, |review, class, _| {
        if !of_pod(review) && is_whole(review) { priority::validate_class(review, class) } else { Ok(()) }
    }),
    (Plugin::OwnerReferencesPermissionEnforcement, |review, object, _| owners::validate(review, object)),
    (Plugin::PersistentVolumeClaimResize, |review, claim, _| {
        if is_whole(review) { volumes::validate_growth(review, claim) } else { Ok(()) }
    }),
    (
        Plugin::RuntimeClass,
        |review, pod, _| {
            if is_new(review) { runtime_class::validate(review, pod) } else { Ok(()) }
        },
    ),
    (Plugin::CertificateApproval, |review, request, _| certificates::validate_approval(review, request)),
    (Plugin::CertificateSigning, |review, request, _| certificates::validate_signing(review, request)),
    (Plugin::CertificateSubjectRestriction, |review, request, _| {
        if is_new(review) { certificates::validate_subject(review, request) } else { Ok(()) }
    }),
    (Plugin::DenyServiceExternalIPs, |review, service, _| {
        if is_whole(review) { external_ips::validate(review, service) } else { Ok(()) }
    }),
    (Plugin::PodResizeValidator, |review, pod, _| {
        if review.subresource == "resize" { pod_resize::validate(review, pod) } else { Ok(()) }
    }),
];

/// What the plugins before the webhooks add, and refuse.
///
/// # Errors
/// The first refusal.
pub(super) fn mutate(review: &Review<'_>, object: &mut Value) -> Result<(), ApiError> {
    let mut asked = MUTATE.iter().filter(|(plugin, _)| review.asks(*plugin));
    asked.try_for_each(|(_, mutate)| mutate(review, object))
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
    let mut asked = VALIDATE.iter().filter(|(plugin, _)| review.asks(*plugin));
    asked.try_for_each(|(_, validate)| validate(review, object, warnings))
}

/// Does that, where it is meant.
fn when(meant: bool, mutate: impl FnOnce()) -> Result<(), ApiError> {
    if meant {
        mutate();
    }
    Ok(())
}

/// Whether it is about a pod or a part of one.
fn of_pod(review: &Review<'_>) -> bool {
    review.call.kind.behaviour.role == Role::Pod
}

/// Whether it is about an object, not a part of one.
fn is_whole(review: &Review<'_>) -> bool {
    review.subresource.is_empty()
}

/// Whether it is about a new object.
fn is_new(review: &Review<'_>) -> bool {
    is_whole(review) && review.operation == Operation::Create
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use kubewright_kinds::{BuiltIn, PluginSet};

    #[test]
    fn plugins_are_asked_in_the_order_of_kubernetes() {
        assert!(MUTATE.is_sorted_by_key(|(plugin, _)| *plugin));
        assert!(VALIDATE.is_sorted_by_key(|(plugin, _)| *plugin));
    }

    #[test]
    fn a_plugin_that_some_kind_names_is_one_that_does_something() {
        let here = MUTATE.iter().map(|(plugin, _)| *plugin).chain(VALIDATE.iter().map(|(plugin, _)| *plugin));
        let here: BTreeSet<Plugin> = here.filter(|plugin| !PluginSet::OF_EVERY_KIND.has(*plugin)).collect();
        let named: BTreeSet<Plugin> = BuiltIn::all().flat_map(|kind| kind.plugins).copied().collect();
        assert_eq!(here, named);
    }
}
