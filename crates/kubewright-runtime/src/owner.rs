//! Owner references: who made an object, and goes with it.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::{Resource, api::ObjectMeta};

use crate::{Cached, Error, Key, Object};

/// An object that can own others. Implemented for every [`Object`].
pub trait Owner: Send + Sync {
    /// The reference that marks the owner as the controller of an object.
    ///
    /// # Errors
    /// When the owner was never stored: it lacks a name or a uid.
    fn controller_reference(&self) -> Result<OwnerReference, Error>;

    /// The owner's namespace; `None` when its kind is cluster-scoped.
    fn namespace(&self) -> Option<&str>;
}

impl<K: Object> Owner for K {
    fn controller_reference(&self) -> Result<OwnerReference, Error> {
        let reference = self.controller_owner_ref(&()).ok_or_else(|| {
            Error::new(format!(
                "a {} without name and uid cannot own anything: it was never stored",
                K::kind(&())
            ))
        })?;
        Ok(OwnerReference { block_owner_deletion: Some(true), ..reference })
    }

    fn namespace(&self) -> Option<&str> {
        if K::is_namespaced() { self.meta().namespace.as_deref() } else { None }
    }
}

/// The reference that makes `owner` the controller of an object: `controller` and `blockOwnerDeletion` are true, as in
/// `metav1.NewControllerRef`. An owner that was never stored gives a reference with an empty uid, which no API server
/// accepts; [`Owner::controller_reference`] tells it apart.
#[must_use]
pub fn controller_reference<K: Object>(owner: &K) -> OwnerReference {
    let meta = owner.meta();
    OwnerReference {
        api_version: K::api_version(&()).into_owned(),
        kind: K::kind(&()).into_owned(),
        name: meta.name.clone().unwrap_or_default(),
        uid: meta.uid.clone().unwrap_or_default(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    }
}

/// The reference that makes `owner` the controller of `desired`.
pub(crate) fn reference<K: Cached>(
    kind: &K::DynamicType,
    desired: &K,
    owner: &(dyn Owner + Sync),
) -> Result<OwnerReference, Error> {
    let reference = owner.controller_reference()?;
    // A namespaced owner is looked for in the namespace of its dependent; elsewhere it counts as gone, and the
    // dependent would be collected (`validateOwner` in controller-runtime's controllerutil).
    if owner.namespace().is_some() && owner.namespace() != desired.meta().namespace.as_deref() {
        return Err(Error::terminal(format!(
            "{} {} cannot own a {} outside of its namespace",
            reference.kind,
            reference.name,
            K::kind(kind)
        )));
    }
    Ok(reference)
}

/// An error if `current` has another controller than `owners` say.
pub(crate) fn expect_controller<K: Cached>(
    kind: &K::DynamicType,
    current: &K,
    owners: &[OwnerReference],
) -> Result<(), Error> {
    let Some(other) = controller_of(current.meta()) else { return Ok(()) };
    let controller = owners.iter().find(|owner| owner.controller == Some(true) && owner.uid != other.uid);
    controller.map_or(Ok(()), |wanted| {
        Err(Error::new(format!(
            "{} {} is controlled by {} {}, not by {} {}",
            K::kind(kind),
            Key::of(current),
            other.kind,
            other.name,
            wanted.kind,
            wanted.name
        )))
    })
}

/// The owner reference that says which object controls this one.
#[must_use]
pub fn controller_of(meta: &ObjectMeta) -> Option<&OwnerReference> {
    meta.owner_references.iter().flatten().find(|reference| reference.controller == Some(true))
}

/// Whether `owner` is the controller of `object`, by uid (`metav1.IsControlledBy`).
#[must_use]
pub fn is_controlled_by<C: Resource, O: Resource>(object: &C, owner: &O) -> bool {
    let uid = owner.meta().uid.as_deref();
    uid.is_some() && controller_of(object.meta()).map(|reference| reference.uid.as_str()) == uid
}

/// The key of the object of kind `O` that controls an object with this metadata, if one does. The version of the
/// reference does not matter, only group and kind, so that an owner stays one when its kind gets a new version.
pub(crate) fn controller_key<O: Object>(meta: &ObjectMeta) -> Option<Key> {
    let reference = controller_of(meta)?;
    let group = reference.api_version.split_once('/').map_or("", |(group, _)| group);
    if reference.kind != O::kind(&()) || group != O::group(&()) {
        return None;
    }
    let namespace = if O::is_namespaced() { meta.namespace.clone() } else { None };
    Some(Key::new(namespace, &reference.name))
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::{
        apps::v1::{Deployment, ReplicaSet},
        core::v1::{Node, Pod},
    };

    use super::*;

    fn stored<K: Object + Default>(name: &str, uid: &str) -> K {
        let mut object = K::default();
        object.meta_mut().name = Some(name.into());
        object.meta_mut().uid = Some(uid.into());
        object
    }

    fn child(reference: OwnerReference) -> Pod {
        let mut pod = stored::<Pod>("pod", "u-pod");
        pod.metadata.namespace = Some("default".into());
        pod.metadata.owner_references = Some(vec![reference]);
        pod
    }

    /// RT-07.
    #[test]
    fn the_reference_of_a_controller_says_that_it_controls_and_holds_up_its_deletion() {
        let reference =
            kubewright_objects::to_value(&controller_reference(&stored::<ReplicaSet>("web", "u1")));
        assert_eq!(
            reference.expect("it is plain data"),
            serde_json::json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "u1",
                               "controller": true, "blockOwnerDeletion": true})
        );
    }

    #[test]
    fn control_is_told_by_uid() {
        let owner: ReplicaSet = stored("web", "u1");
        let pod = child(controller_reference(&owner));
        assert!(is_controlled_by(&pod, &owner));
        assert!(!is_controlled_by(&pod, &stored::<ReplicaSet>("web", "u2")));
        assert!(!is_controlled_by(&pod, &ReplicaSet::default()));
    }

    #[test]
    fn the_controllers_key_is_found_by_group_and_kind() {
        let pod = child(controller_reference(&stored::<ReplicaSet>("web", "u1")));
        assert_eq!(controller_key::<ReplicaSet>(&pod.metadata), Some(Key::namespaced("default", "web")));
        assert_eq!(controller_key::<Deployment>(&pod.metadata), None);
        let pod = child(controller_reference(&stored::<Node>("n1", "u1")));
        assert_eq!(controller_key::<Node>(&pod.metadata), Some(Key::cluster_scoped("n1")));
    }

    #[test]
    fn an_owner_that_only_owns_does_not_control() {
        let owner: ReplicaSet = stored("web", "u1");
        let pod = child(OwnerReference { controller: None, ..controller_reference(&owner) });
        assert!(!is_controlled_by(&pod, &owner));
        assert_eq!(controller_key::<ReplicaSet>(&pod.metadata), None);
    }

    #[test]
    fn an_object_that_was_never_stored_owns_nothing() {
        assert!(Owner::controller_reference(&ReplicaSet::default()).is_err());
    }
}
