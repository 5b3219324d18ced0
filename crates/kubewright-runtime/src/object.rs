//! Which Rust types are Kubernetes objects.

use std::{
    any::{Any, TypeId},
    collections::BTreeMap,
    fmt::Debug,
    sync::Arc,
};

use k8s_openapi::ClusterResourceScope;
use kube::{Resource, api::ObjectMeta};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, value::RawValue};

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

/// A [`Cached`] object whose type is forgotten. What is done with objects of any kind is done with this, so that a program
/// has the code of it once and not once for each kind.
pub(crate) trait AnyObject: Any + Send + Sync {
    fn metadata(&self) -> &ObjectMeta;

    fn metadata_mut(&mut self) -> &mut ObjectMeta;

    /// The object, for a downcast.
    fn any(&self) -> &dyn Any;

    /// As [`AnyObject::any`].
    fn any_mut(&mut self) -> &mut dyn Any;

    /// As [`AnyObject::any`].
    fn shared(self: Arc<Self>) -> Arc<dyn Any + Send + Sync>;

    /// The length of the object as JSON; 0 for one that cannot be written.
    fn length(&self) -> usize;
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

    fn length(&self) -> usize {
        to_json(self).map_or(0, |text| text.len())
    }
}

/// An object as JSON. All that writes objects goes through this, and all that reads them through [`from_json`]: what serde
/// makes of a type for one form of text is as much code as for another, and for a Pod it is a lot.
pub(crate) fn to_json<K: Serialize>(object: &K) -> serde_json::Result<Vec<u8>> {
    serde_json::to_vec(object)
}

/// An object as a value.
pub(crate) fn to_value<K: Serialize>(object: &K) -> serde_json::Result<Value> {
    serde_json::from_slice(&to_json(object)?)
}

/// Some fields of an object as a value that has no others: those that are not wanted are not decoded.
pub(crate) fn fields_of<K: Serialize>(
    object: &K,
    is_wanted: impl Fn(&str) -> bool,
) -> serde_json::Result<Value> {
    let text = to_json(object)?;
    let fields: BTreeMap<String, &RawValue> = serde_json::from_slice(&text)?;
    let wanted = fields.into_iter().filter(|(field, _)| is_wanted(field));
    wanted.map(|(field, raw)| Ok((field, serde_json::from_str::<Value>(raw.get())?))).collect()
}

/// The object that is written in JSON.
pub(crate) fn from_json<K: DeserializeOwned>(text: &str) -> serde_json::Result<K> {
    serde_json::from_str(text)
}

/// An object of a kind, remembered; `None` for one of another kind.
pub(crate) fn typed<K: Cached>(object: Arc<dyn AnyObject>) -> Option<Arc<K>> {
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
