//! One thing that happened in the cluster.

use std::fmt;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::DynamicObject;
use serde_json::Value;

/// An object that was seen to be so, or to be gone.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    /// The kind in small letters, as it is told: `deployment`.
    pub(crate) kind: String,
    /// Its state, the last one if it is gone.
    pub(crate) object: DynamicObject,
    pub(crate) gone: bool,
}

/// Which object, for telling it: `deployment default/web`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Id {
    pub(crate) kind: String,
    pub(crate) namespace: Option<String>,
    pub(crate) name: String,
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.namespace {
            Some(namespace) => write!(f, "{} {namespace}/{}", self.kind, self.name),
            None => write!(f, "{} {}", self.kind, self.name),
        }
    }
}

impl Change {
    pub(crate) fn id(&self) -> Id {
        let metadata = &self.object.metadata;
        let name = metadata.name.clone().unwrap_or_default();
        Id { kind: self.kind.clone(), namespace: metadata.namespace.clone(), name }
    }

    /// The object that controls this one.
    pub(crate) fn controller(&self) -> Option<&OwnerReference> {
        let owners = self.object.metadata.owner_references.as_deref().unwrap_or_default();
        owners.iter().find(|owner| owner.controller == Some(true))
    }
}

/// The condition `type_` in `.status.conditions`.
pub(crate) fn condition<'a>(object: &'a DynamicObject, type_: &str) -> Option<&'a Value> {
    let conditions = object.data.pointer("/status/conditions")?.as_array()?;
    conditions.iter().find(|condition| condition["type"] == type_)
}

/// Whether the condition `type_` holds.
pub(crate) fn holds(object: &DynamicObject, type_: &str) -> bool {
    condition(object, type_).is_some_and(|condition| condition["status"] == "True")
}
