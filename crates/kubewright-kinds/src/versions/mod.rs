//! The versions of a resource, for [`kubewright_schema::fields`].

#[cfg(test)]
mod laws;

use kubewright_schema::Node;
use kubewright_schema::fields::{Set, Version, Versions};
use serde_json::Value;

use super::{Custom, Kind, Kinds};

/// The versions of a resource that are served, seen from one of them.
#[derive(Clone, Copy)]
pub struct ServedVersions<'a> {
    /// All kinds.
    pub kinds: &'a Kinds,
    /// The version that is written.
    pub kind: &'a Kind,
}

impl Versions for ServedVersions<'_> {
    fn written(&self) -> &dyn Version {
        self.kind
    }

    fn get(&self, api_version: &str) -> Option<&dyn Version> {
        if api_version == self.kind.api_version() {
            return Some(self.kind);
        }
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let kind = self.kinds.get(group, version, &self.kind.plural)?;
        (kind.collection == self.kind.collection).then_some(&**kind as &dyn Version)
    }

    fn has_lost(&self, api_version: &str) -> bool {
        let version = api_version.split_once('/').map_or(api_version, |(_, version)| version);
        let knows = |custom: &Custom| custom.versions.schema(version).is_some();
        self.get(api_version).is_none() && self.kind.custom.as_ref().is_some_and(|custom| !knows(custom))
    }

    fn convert(&self, from: &dyn Version, to: &dyn Version, object: &Value) -> Value {
        let mut object = object.clone();
        if from.version() == to.version() && from.group() == to.group() {
            return object;
        }
        if !to.is_custom() {
            from.to_storage(&mut object);
            to.to_served(&mut object);
        }
        if let Value::Object(map) = &mut object {
            map.insert("kind".into(), to.kind().into());
            map.insert("apiVersion".into(), to.api_version().into());
        }
        object
    }
}

impl Version for Kind {
    fn to_storage(&self, object: &mut Value) {
        self.to_storage(object);
    }

    fn to_served(&self, object: &mut Value) {
        self.to_served(object);
    }

    fn root(&self) -> &Node {
        self.schema().root()
    }

    fn is_custom(&self) -> bool {
        self.custom.is_some()
    }

    fn blank(&self) -> &Value {
        self.blank()
    }

    fn left_alone(&self, subresource: &str) -> Option<&Set> {
        self.ownership.left_alone(subresource)
    }
}
