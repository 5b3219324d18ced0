//! Which volume suits a claim (`component-helpers/storage/volume/pv_helpers.go`).

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::{ParseExpressionError, Selector, SelectorExt};

use kubewright_meta::quantity::billionths;

/// The annotation that named the class before `spec.storageClassName` did.
const OLD_CLASS: &str = "volume.beta.kubernetes.io/storage-class";

static NO_LABELS: BTreeMap<String, String> = BTreeMap::new();

/// The value of an annotation.
#[must_use]
pub fn annotation<'a>(meta: &'a ObjectMeta, name: &str) -> Option<&'a str> {
    meta.annotations.as_ref()?.get(name).map(String::as_str)
}

/// The class of a claim; `None` when it names none, which is not the same as naming the empty one.
#[must_use]
pub fn named_class(claim: &PersistentVolumeClaim) -> Option<&str> {
    let old = annotation(&claim.metadata, OLD_CLASS);
    old.or_else(|| claim.spec.as_ref().and_then(|spec| spec.storage_class_name.as_deref()))
}

/// The class of a claim; empty without.
#[must_use]
pub fn class_of_claim(claim: &PersistentVolumeClaim) -> &str {
    named_class(claim).unwrap_or_default()
}

/// The class of a volume; empty without.
#[must_use]
pub fn class_of_volume(volume: &PersistentVolume) -> &str {
    let old = annotation(&volume.metadata, OLD_CLASS);
    old.or_else(|| volume.spec.as_ref().and_then(|spec| spec.storage_class_name.as_deref()))
        .unwrap_or_default()
}

/// Whether the volume is reserved for this claim, or bound to it.
#[must_use]
pub fn is_bound_to(volume: &PersistentVolume, claim: &PersistentVolumeClaim) -> bool {
    let reference = volume.spec.as_ref().and_then(|spec| spec.claim_ref.as_ref());
    reference.is_some_and(|reference| {
        let uid = reference.uid.as_ref().filter(|uid| !uid.is_empty());
        reference.name == claim.metadata.name
            && reference.namespace == claim.metadata.namespace
            && uid.is_none_or(|uid| Some(uid) == claim.metadata.uid.as_ref())
    })
}

/// Whether the volume is what the claim asks for, whoever has it and whatever its class.
#[must_use]
pub fn suits(volume: &PersistentVolume, claim: &PersistentVolumeClaim) -> bool {
    volume.metadata.deletion_timestamp.is_none()
        && size(volume) >= requested(claim)
        && !modes_differ(volume, claim)
        && !attributes_differ(volume, claim)
        && has_access_modes(volume, claim)
}

/// Whether nobody has the volume, and it is of the claim's class and one of those that `selector`, the claim's, selects.
#[must_use]
pub fn is_free_for(
    volume: &PersistentVolume,
    claim: &PersistentVolumeClaim,
    selector: Option<&Selector>,
) -> bool {
    let labels = volume.metadata.labels.as_ref().unwrap_or(&NO_LABELS);
    volume.spec.as_ref().is_some_and(|spec| spec.claim_ref.is_none())
        && volume.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Available")
        && class_of_volume(volume) == class_of_claim(claim)
        && selector.is_none_or(|selector| selector.matches(labels))
}

/// `spec.selector` of a claim.
///
/// # Errors
/// It makes no sense; no volume is for such a claim.
pub fn selector_of(claim: &PersistentVolumeClaim) -> Result<Option<Selector>, ParseExpressionError> {
    claim.spec.as_ref().and_then(|spec| spec.selector.clone()).map(Selector::try_from).transpose()
}

/// Whether one wants blocks and the other gives files.
#[must_use]
pub fn modes_differ(volume: &PersistentVolume, claim: &PersistentVolumeClaim) -> bool {
    let volume = volume.spec.as_ref().and_then(|spec| spec.volume_mode.as_deref());
    let claim = claim.spec.as_ref().and_then(|spec| spec.volume_mode.as_deref());
    volume.unwrap_or("Filesystem") != claim.unwrap_or("Filesystem")
}

/// Whether they name different classes of attributes.
#[must_use]
pub fn attributes_differ(volume: &PersistentVolume, claim: &PersistentVolumeClaim) -> bool {
    let volume = volume.spec.as_ref().and_then(|spec| spec.volume_attributes_class_name.as_deref());
    let claim = claim.spec.as_ref().and_then(|spec| spec.volume_attributes_class_name.as_deref());
    volume.unwrap_or_default() != claim.unwrap_or_default()
}

/// How the volume can be used.
#[must_use]
pub fn access_modes(volume: &PersistentVolume) -> &[String] {
    volume.spec.as_ref().and_then(|spec| spec.access_modes.as_deref()).unwrap_or_default()
}

/// Whether the volume can be used in every way that the claim asks for.
#[must_use]
pub fn has_access_modes(volume: &PersistentVolume, claim: &PersistentVolumeClaim) -> bool {
    let wanted = claim.spec.iter().flat_map(|spec| spec.access_modes.iter().flatten());
    wanted.into_iter().all(|mode| access_modes(volume).contains(mode))
}

/// How large the volume is, in billionths of a byte.
#[must_use]
pub fn size(volume: &PersistentVolume) -> i128 {
    let capacity = volume.spec.as_ref().and_then(|spec| spec.capacity.as_ref()?.get("storage"));
    capacity.and_then(|quantity| billionths(&quantity.0)).unwrap_or_default()
}

/// How much the claim asks for, in billionths of a byte.
#[must_use]
pub fn requested(claim: &PersistentVolumeClaim) -> i128 {
    let requests = claim.spec.as_ref().and_then(|spec| spec.resources.as_ref()?.requests.as_ref());
    requests.and_then(|requests| billionths(&requests.get("storage")?.0)).unwrap_or_default()
}
