//! Which Rust types are Kubernetes objects.

use std::{
    any::{Any, TypeId},
    fmt::Debug,
    sync::Arc,
};

use k8s_openapi::{ClusterResourceScope, apimachinery::pkg::apis::meta::v1::OwnerReference};
use kube::{Resource, api::ObjectMeta};
use serde::{Serialize, de::DeserializeOwned};

use crate::json::{from_json, to_json};

/// A Kubernetes object whose kind is known at compile time: every type of k8s-openapi and every
/// `#[derive(CustomResource)]`. Implemented for all of them; not to be implemented by hand.
pub trait Object:
    Resource<DynamicType = (), Scope: 'static>
    + Clone
    + Debug
    + Serialize
    + DeserializeOwned
    + Send
    + Sync
    + 'static
{
    /// Whether objects of this kind live in namespaces.
    #[must_use]
    fn is_namespaced() -> bool {
        TypeId::of::<Self::Scope>() != TypeId::of::<ClusterResourceScope>()
    }
}

impl<K> Object for K where
    K: Resource<DynamicType = (), Scope: 'static>
        + Clone
        + Debug
        + Serialize
        + DeserializeOwned
        + Send
        + Sync
        + 'static
{
}

/// An object that a cache can hold: an [`Object`], or one whose kind is known only at run time
/// ([`kube::api::DynamicObject`], [`kube::api::PartialObjectMeta`]).
pub trait Cached:
    Resource<DynamicType: Clone> + Clone + Debug + Serialize + DeserializeOwned + Send + Sync + 'static
{
}

impl<K> Cached for K where
    K: Resource<DynamicType: Clone> + Clone + Debug + Serialize + DeserializeOwned + Send + Sync + 'static
{
}

/// Identity of an object, the version that it is in, and its owners.
#[derive(Clone, Copy, Debug)]
pub struct Head<'a> {
    /// Its namespace; none of a cluster-scoped object.
    pub namespace: Option<&'a str>,
    /// Its name; empty if it has none yet.
    pub name: &'a str,
    /// Its uid; empty if it has none yet.
    pub uid: &'a str,
    /// Its resource version.
    pub resource_version: Option<&'a str>,
    /// Its owners.
    pub owners: Owners<'a>,
}

/// Owners of an object.
#[derive(Clone, Copy, Debug)]
pub enum Owners<'a> {
    /// As its metadata names them.
    References(&'a [OwnerReference]),
    /// Their uids alone, with [`Owners::END`] behind each.
    Uids(&'a str),
}

impl<'a> Head<'a> {
    /// The head of an object with this metadata.
    #[must_use]
    pub fn of(meta: &'a ObjectMeta) -> Self {
        Self {
            namespace: meta.namespace.as_deref(),
            name: meta.name.as_deref().unwrap_or_default(),
            uid: meta.uid.as_deref().unwrap_or_default(),
            resource_version: meta.resource_version.as_deref(),
            owners: Owners::References(meta.owner_references.as_deref().unwrap_or_default()),
        }
    }
}

impl<'a> Owners<'a> {
    /// What stands behind each uid.
    pub const END: char = '\0';

    /// Their uids.
    pub fn uids(self) -> impl Iterator<Item = &'a str> {
        let (references, uids) = match self {
            Self::References(references) => (references, ""),
            Self::Uids(uids) => (&[][..], uids),
        };
        references.iter().map(|owner| owner.uid.as_str()).chain(uids.split_terminator(Self::END))
    }
}

/// An object in the form in which a cache keeps it: as a value, or in less room.
pub trait Kept: Send + Sync + 'static {
    /// Its head.
    fn head(&self) -> Head<'_>;

    /// The object as a value.
    fn value(self: Arc<Self>) -> Arc<dyn AnyObject>;

    /// Of which order the memory is that it takes, in bytes. Of a value: the length of its JSON and the size of its type, without what
    /// the lists and maps in it take besides.
    fn footprint(&self) -> usize;
}

/// A [`Cached`] object whose type is forgotten. What is done with objects of any kind is done with this, so that a program
/// has the code of it once and not once for each kind.
pub trait AnyObject: Kept + Any {
    /// The object's metadata.
    fn metadata(&self) -> &ObjectMeta;

    /// As [`AnyObject::metadata`], to change it.
    fn metadata_mut(&mut self) -> &mut ObjectMeta;

    /// The object, for a downcast.
    fn any(&self) -> &dyn Any;

    /// As [`AnyObject::any`].
    fn any_mut(&mut self) -> &mut dyn Any;

    /// As [`AnyObject::any`].
    fn shared(self: Arc<Self>) -> Arc<dyn Any + Send + Sync>;
}

impl<K: Cached> Kept for K {
    fn head(&self) -> Head<'_> {
        Head::of(self.meta())
    }

    fn value(self: Arc<Self>) -> Arc<dyn AnyObject> {
        self
    }

    fn footprint(&self) -> usize {
        to_json(self).map_or(0, |text| text.len()) + size_of::<K>()
    }
}

impl<K: Cached> AnyObject for K {
    fn metadata(&self) -> &ObjectMeta {
        self.meta()
    }

    fn metadata_mut(&mut self) -> &mut ObjectMeta {
        self.meta_mut()
    }

    fn any(&self) -> &dyn Any {
        self
    }

    fn any_mut(&mut self) -> &mut dyn Any {
        self
    }

    fn shared(self: Arc<Self>) -> Arc<dyn Any + Send + Sync> {
        self
    }
}

/// What is done to an object before it is kept.
pub type Reduce<'a> = &'a dyn Fn(&mut dyn AnyObject);

/// Reads an object from its JSON, reduces it and forgets its type.
///
/// # Errors
/// As [`from_json`].
pub fn decode<K: Cached>(text: &str, reduce: Reduce<'_>) -> serde_json::Result<Arc<dyn AnyObject>> {
    Ok(erase(from_json::<K>(text)?, reduce))
}

/// As [`decode`], of an object that will be kept: it takes no more room than it needs, and longer to make.
///
/// # Errors
/// As [`from_json`].
pub fn decode_compact<K: Cached>(text: &str, reduce: Reduce<'_>) -> serde_json::Result<Arc<dyn AnyObject>> {
    let mut object = from_json::<K>(text)?;
    reduce(&mut object);
    // A decoder grows each list as it reads, and leaves room for four where there is one: of what a Pod takes it is more than
    // a quarter. A copy has room for what there is.
    Ok(Arc::new(object.clone()))
}

/// Reduces an object and forgets its type.
pub fn erase<K: Cached>(mut object: K, reduce: Reduce<'_>) -> Arc<dyn AnyObject> {
    reduce(&mut object);
    Arc::new(object)
}

/// An object of a kind, remembered; `None` for one of another kind.
#[must_use]
pub fn typed<K: Cached>(object: Arc<dyn AnyObject>) -> Option<Arc<K>> {
    object.shared().downcast().ok()
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::{ConfigMap, Node};

    use super::*;

    #[test]
    fn the_scope_of_a_kind_is_known() {
        assert!(ConfigMap::is_namespaced());
        assert!(!Node::is_namespaced());
    }
}
