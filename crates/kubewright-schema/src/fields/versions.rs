//! What field ownership has to know of a resource and its versions; who has kinds tells it.

use kubewright_meta::TypeNames;
use serde_json::Value;

use super::set::Set;
use crate::Node;

/// A version of a resource.
pub trait Version: TypeNames + Sync {
    /// The root of its schema.
    fn root(&self) -> &Node;
    /// Whether it comes from a CustomResourceDefinition.
    fn is_custom(&self) -> bool;
    /// An object that nobody has written anything to.
    fn blank(&self) -> &Value;
    /// Turns an object of this version into a stored one, where both are of built-in kinds.
    fn to_storage(&self, object: &mut Value);
    /// Turns a stored object into one of this version, where both are of built-in kinds.
    fn to_served(&self, object: &mut Value);
    /// The fields that a write to the object (the empty subresource) or to a subresource leaves alone: it can neither own
    /// them nor take them from others.
    fn left_alone(&self, subresource: &str) -> Option<&Set>;
    /// Whether the owners stay as they were where nobody can say what a write has changed: since v1.37.
    fn keeps_owners(&self) -> bool;
}

/// The versions of a resource, seen from one of them.
pub trait Versions: Sync {
    /// The version that is written.
    fn written(&self) -> &dyn Version;
    /// The version of that name; `None` when there is no such version (any more).
    fn get(&self, api_version: &str) -> Option<&dyn Version>;
    /// Whether the resource is a custom one whose definition no longer has that version, so that nothing can be converted
    /// to it.
    fn has_lost(&self, api_version: &str) -> bool;
    /// An object of one version in another one.
    fn convert(&self, from: &dyn Version, to: &dyn Version, object: &Value) -> Value;
}
