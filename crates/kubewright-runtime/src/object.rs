//! Which Rust types are Kubernetes objects.

use std::{any::TypeId, fmt::Debug};

use k8s_openapi::ClusterResourceScope;
use kube::Resource;
use serde::{Serialize, de::DeserializeOwned};

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
