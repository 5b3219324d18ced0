//! Who owns the claims of a StatefulSet's pods, so that the garbage collector keeps or removes them as
//! `spec.persistentVolumeClaimRetentionPolicy` says (`pkg/controller/statefulset/stateful_set_utils.go`).

use k8s_openapi::api::apps::v1::{StatefulSet, StatefulSetSpec};
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kubewright_objects::optional;
use kubewright_runtime::{Object, owner};

use super::ordinals;

/// What becomes of claims.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Policy {
    /// They go with the set.
    deleted_with_set: bool,
    /// They go with their pod, when that is one too many.
    deleted_with_pod: bool,
}

impl Policy {
    fn of(set: &StatefulSet) -> Self {
        let policy = optional::<StatefulSetSpec>(&set.spec)
            .and_then(|spec| spec.persistent_volume_claim_retention_policy.as_ref());
        let deletes = |when: Option<&String>| when.is_some_and(|when| when == "Delete");
        Self {
            deleted_with_set: deletes(policy.and_then(|policy| policy.when_deleted.as_ref())),
            deleted_with_pod: deletes(policy.and_then(|policy| policy.when_scaled.as_ref())),
        }
    }

    /// Whether the set, and whether the pod, should own the claims of `pod`.
    fn owners(self, set: &StatefulSet, pod: &Pod) -> (bool, bool) {
        let ordinal = ordinals::of(pod.metadata.name.as_deref());
        let is_surplus = !ordinal.is_some_and(|ordinal| ordinals::wanted(set).contains(&ordinal));
        let by_pod = self.deleted_with_pod && is_surplus;
        (self.deleted_with_set && !by_pod, by_pod)
    }
}

/// Whether the claim waits for the end of an earlier pod of this name: then the pod cannot have it, and it will go
/// (`PodClaimIsStale`).
pub(super) fn is_stale(set: &StatefulSet, pod: &Pod, claim: &PersistentVolumeClaim) -> bool {
    Policy::of(set).deleted_with_pod && names_another(claim, pod)
}

/// Whether somebody else controls the claim although it should be the set's or the pod's to say when it goes
/// (`hasUnexpectedController`).
pub(super) fn has_foreign_controller(set: &StatefulSet, pod: &Pod, claim: &PersistentVolumeClaim) -> bool {
    let Policy { deleted_with_set, deleted_with_pod } = Policy::of(set);
    (deleted_with_set || deleted_with_pod)
        && references(claim).iter().any(|reference| {
            if names(reference, set) {
                reference.uid != uid(set)
            } else if names(reference, pod) {
                reference.uid != uid(pod)
            } else {
                reference.controller == Some(true)
            }
        })
}

/// The claim with the owners that it should have; `None` when it has them (`isClaimOwnerUpToDate`,
/// `updateClaimOwnerRefForSetAndPod`).
pub(super) fn corrected(
    set: &StatefulSet,
    pod: &Pod,
    claim: &PersistentVolumeClaim,
) -> Option<PersistentVolumeClaim> {
    if is_up_to_date(set, pod, claim) {
        return None;
    }
    let foreign = has_foreign_controller(set, pod, claim);
    let mut claim = claim.clone();
    let owners = claim.metadata.owner_references.get_or_insert_default();
    owners.retain(|reference| !names(reference, set) && !names(reference, pod));
    if !foreign {
        let (by_set, by_pod) = Policy::of(set).owners(set, pod);
        owners.extend(by_set.then(|| owner::controller_reference(set)));
        owners.extend(by_pod.then(|| owner::controller_reference(pod)));
    }
    Some(claim)
}

fn is_up_to_date(set: &StatefulSet, pod: &Pod, claim: &PersistentVolumeClaim) -> bool {
    // Somebody before this set or pod used the claim, and the collector is about to see to it.
    if names_another(claim, set) || names_another(claim, pod) {
        return true;
    }
    let owned = |by: &str| references(claim).iter().any(|reference| reference.uid == by);
    let (by_set, by_pod) = (owned(uid(set)), owned(uid(pod)));
    if has_foreign_controller(set, pod, claim) {
        return !by_set && !by_pod;
    }
    let ours = |reference: &&OwnerReference| reference.uid == uid(set) || reference.uid == uid(pod);
    references(claim).iter().filter(ours).all(|reference| reference.controller == Some(true))
        && (by_set, by_pod) == Policy::of(set).owners(set, pod)
}

fn references(claim: &PersistentVolumeClaim) -> &[OwnerReference] {
    claim.metadata.owner_references.as_deref().unwrap_or_default()
}

fn uid<K: Object>(object: &K) -> &str {
    object.meta().uid.as_deref().unwrap_or_default()
}

/// Whether the reference is to an object of this kind and name, this or an earlier one.
fn names<K: Object>(reference: &OwnerReference, object: &K) -> bool {
    reference.api_version == K::api_version(&())
        && reference.kind == K::kind(&())
        && object.meta().name.as_deref() == Some(&reference.name)
}

/// Whether the claim names an owner of this kind and name that is not this object (`hasStaleOwnerRef`).
fn names_another<K: Object>(claim: &PersistentVolumeClaim, object: &K) -> bool {
    let named = references(claim).iter().find(|reference| names(reference, object));
    named.is_some_and(|reference| reference.uid != uid(object))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::member;
    use super::super::tests::{revision_of, stateful_set, with_claims};
    use super::*;

    fn set(when_deleted: &str, when_scaled: &str) -> StatefulSet {
        with_claims(stateful_set(2), &json!({"whenDeleted": when_deleted, "whenScaled": when_scaled}))
    }

    fn pod(ordinal: i32) -> Pod {
        let mut pod = member::new(&stateful_set(2), &revision_of("web-1", "web:1"), ordinal);
        pod.metadata.uid = Some(format!("uid-web-{ordinal}"));
        pod
    }

    fn claim(owners: &[OwnerReference]) -> PersistentVolumeClaim {
        let mut claim = PersistentVolumeClaim::default();
        claim.metadata.owner_references = Some(owners.to_vec());
        claim
    }

    /// The kinds of the owners that a claim without owners gets.
    fn owners(when_deleted: &str, when_scaled: &str, ordinal: i32) -> Vec<String> {
        let (set, pod) = (set(when_deleted, when_scaled), pod(ordinal));
        let Some(corrected) = corrected(&set, &pod, &claim(&[])) else { return Vec::new() };
        assert!(is_up_to_date(&set, &pod, &corrected), "once is enough");
        references(&corrected).iter().map(|owner| owner.kind.clone()).collect()
    }

    #[test]
    fn the_policy_says_who_owns_the_claims_of_wanted_and_surplus_pods() {
        for (when_deleted, when_scaled, wanted, surplus) in [
            ("Retain", "Retain", &[][..], &[][..]),
            ("Delete", "Retain", &["StatefulSet"], &["StatefulSet"]),
            ("Retain", "Delete", &[], &["Pod"]),
            ("Delete", "Delete", &["StatefulSet"], &["Pod"]),
        ] {
            assert_eq!(owners(when_deleted, when_scaled, 0), wanted, "{when_deleted} {when_scaled}");
            assert_eq!(
                owners(when_deleted, when_scaled, 2),
                surplus,
                "{when_deleted} {when_scaled}, surplus"
            );
        }
    }

    #[test]
    fn a_change_of_policy_takes_owners_away_again() {
        let set = set("Retain", "Retain");
        let owned = claim(&[owner::controller_reference(&set)]);
        let corrected = corrected(&set, &pod(0), &owned).expect("a correction");
        assert!(references(&corrected).is_empty());
    }

    #[test]
    fn a_claim_that_somebody_else_controls_is_left_to_them() {
        let mut theirs = owner::controller_reference(&set("Delete", "Delete"));
        (theirs.kind, theirs.uid) = ("Database".into(), "uid-theirs".into());
        let (set, pod) = (set("Delete", "Delete"), pod(0));
        assert!(has_foreign_controller(&set, &pod, &claim(std::slice::from_ref(&theirs))));
        assert_eq!(corrected(&set, &pod, &claim(std::slice::from_ref(&theirs))), None);
        let both = claim(&[theirs.clone(), owner::controller_reference(&set)]);
        assert_eq!(references(&corrected(&set, &pod, &both).expect("a correction")), [theirs]);
    }

    #[test]
    fn a_claim_of_an_earlier_pod_of_the_name_is_stale_and_left_alone() {
        let (set, pod) = (set("Retain", "Delete"), pod(1));
        let mut earlier = owner::controller_reference(&pod);
        earlier.uid = "uid-earlier".into();
        let claim = claim(&[earlier]);
        assert!(is_stale(&set, &pod, &claim) && corrected(&set, &pod, &claim).is_none());
        assert!(!is_stale(&stateful_set(2), &pod, &claim));
    }
}
