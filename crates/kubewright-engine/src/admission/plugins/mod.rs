//! The plugins that come with kube-apiserver and stand before the webhooks and policies: one file for each, behind one trait.
//!
//! A kind's descriptor names the plugins that look at its objects. Names are bits of a set that is made with the kind: a request
//! masks it with what is on, and what is not named costs nothing. The order is that of the names
//! (`pkg/kubeapiserver/options/plugins.go`).

mod always_pull_images;
mod certificate_approval;
mod certificate_signing;
mod certificate_subject_restriction;
mod cluster_trust_bundle_attest;
mod default_class;
mod default_ingress_class;
mod default_storage_class;
mod default_toleration_seconds;
mod deny_service_external_ips;
mod extended_resource_toleration;
mod limit_pod_hard_anti_affinity_topology;
mod limit_ranger;
mod namespace_exists;
mod namespace_lifecycle;
mod owner_references_permission_enforcement;
mod persistent_volume_claim_resize;
mod pod_resize_validator;
mod pod_security;
mod pod_topology_labels;
mod priority;
mod runtime_class;
mod service_account;
pub(super) mod signers;
mod storage_object_in_use_protection;
mod taint_nodes_by_condition;
mod tolerations;

use std::sync::LazyLock;

use kubewright_meta::ApiError;
use serde_json::Value;

use self::always_pull_images::AlwaysPullImages;
use self::certificate_approval::CertificateApproval;
use self::certificate_signing::CertificateSigning;
use self::certificate_subject_restriction::CertificateSubjectRestriction;
use self::cluster_trust_bundle_attest::ClusterTrustBundleAttest;
use self::default_ingress_class::DefaultIngressClass;
use self::default_storage_class::DefaultStorageClass;
use self::default_toleration_seconds::DefaultTolerationSeconds;
use self::deny_service_external_ips::DenyServiceExternalIPs;
use self::extended_resource_toleration::ExtendedResourceToleration;
use self::limit_pod_hard_anti_affinity_topology::LimitPodHardAntiAffinityTopology;
use self::limit_ranger::LimitRanger;
use self::namespace_exists::NamespaceExists;
use self::namespace_lifecycle::NamespaceLifecycle;
use self::owner_references_permission_enforcement::OwnerReferencesPermissionEnforcement;
use self::persistent_volume_claim_resize::PersistentVolumeClaimResize;
use self::pod_resize_validator::PodResizeValidator;
use self::pod_security::PodSecurity;
use self::pod_topology_labels::PodTopologyLabels;
use self::priority::Priority;
use self::runtime_class::RuntimeClass;
use self::service_account::ServiceAccount;
use self::storage_object_in_use_protection::StorageObjectInUseProtection;
use self::taint_nodes_by_condition::TaintNodesByCondition;
use super::{Operation, Plugin, Review, refusal};

/// An admission plugin (`k8s.io/apiserver/pkg/admission/interfaces.go`): `Interface` with both of its phases.
trait AdmissionPlugin: Sync {
    /// Its name, which is also its place in the order.
    fn name(&self) -> Plugin;

    /// Whether it has something to do with a request, by its operation and its subresource. Of a deletion the phases see null.
    fn handles(&self, review: &Review<'_>) -> bool;

    /// Adds to the object, or refuses it before others have added to it.
    ///
    /// # Errors
    /// The refusal.
    fn mutate(&self, _review: &Review<'_>, _object: &mut Value) -> Result<(), ApiError> {
        Ok(())
    }

    /// Says what it has against the object as it will be. Warnings for the client are added to `warnings`.
    ///
    /// # Errors
    /// The refusal.
    fn validate(
        &self,
        _review: &Review<'_>,
        _object: &Value,
        _warnings: &mut Vec<String>,
    ) -> Result<(), ApiError> {
        Ok(())
    }
}

/// The plugins, in the order in which they are asked.
static PLUGINS: [&dyn AdmissionPlugin; 24] = [
    &NamespaceLifecycle,
    &NamespaceExists,
    &LimitPodHardAntiAffinityTopology,
    &LimitRanger,
    &ServiceAccount,
    &TaintNodesByCondition,
    &AlwaysPullImages,
    &PodSecurity,
    &Priority,
    &DefaultTolerationSeconds,
    &ExtendedResourceToleration,
    &DefaultStorageClass,
    &StorageObjectInUseProtection,
    &OwnerReferencesPermissionEnforcement,
    &PersistentVolumeClaimResize,
    &RuntimeClass,
    &CertificateApproval,
    &CertificateSigning,
    &ClusterTrustBundleAttest,
    &CertificateSubjectRestriction,
    &DefaultIngressClass,
    &DenyServiceExternalIPs,
    &PodTopologyLabels,
    &PodResizeValidator,
];

/// The plugins by name. The others stand apart, or admit everything: so they do in Kubernetes, what they are about is not
/// served, or they are not there.
static BY_NAME: LazyLock<[Option<&dyn AdmissionPlugin>; Plugin::ALL.len()]> =
    LazyLock::new(|| Plugin::ALL.map(|name| PLUGINS.into_iter().find(|plugin| plugin.name() == name)));

/// The plugins that are on, look at the kind, and handle the request, in their order.
fn asked(review: &Review<'_>) -> impl Iterator<Item = &'static dyn AdmissionPlugin> {
    let named = review.plugins().iter().filter_map(|name| BY_NAME[name as usize]);
    named.filter(|plugin| plugin.handles(review))
}

/// What the plugins before the webhooks add, and refuse.
///
/// # Errors
/// The first refusal.
pub(super) fn mutate(review: &Review<'_>, object: &mut Value) -> Result<(), ApiError> {
    asked(review).try_for_each(|plugin| plugin.mutate(review, object))
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
    asked(review).try_for_each(|plugin| plugin.validate(review, object, warnings))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use kubewright_kinds::{BuiltIn, PluginSet};

    #[test]
    fn plugins_are_asked_in_the_order_of_kubernetes() {
        assert!(PLUGINS.is_sorted_by_key(|plugin| plugin.name()));
        assert_eq!(PluginSet::of(&Plugin::ALL).iter().collect::<Vec<_>>(), Plugin::ALL);
        assert!(Plugin::ALL.is_sorted());
    }

    #[test]
    fn a_plugin_that_some_kind_names_is_one_that_does_something() {
        let here = PLUGINS.iter().map(|plugin| plugin.name());
        let here: BTreeSet<Plugin> = here.filter(|name| !PluginSet::OF_EVERY_KIND.has(*name)).collect();
        let named: BTreeSet<Plugin> = BuiltIn::all().flat_map(|kind| kind.plugins).copied().collect();
        assert_eq!(here, named);
    }
}
