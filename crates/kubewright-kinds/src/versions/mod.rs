//! The versions of a resource, for [`kubewright_schema::fields`].

mod conversions;
#[cfg(test)]
mod laws;

pub use self::conversions::{Conversions, Wanted};

use kubewright_schema::Node;
use kubewright_schema::fields::{Set, Version, Versions};
use serde_json::Value;

use super::{Custom, Kind, Kinds};

/// The versions of a resource that its definition has, served or not, seen from one that is served.
#[derive(Clone, Copy)]
pub struct KnownVersions<'a> {
    /// All kinds.
    pub kinds: &'a Kinds,
    /// The version that is written.
    pub kind: &'a Kind,
    /// What a webhook has converted, where one converts.
    pub conversions: &'a Conversions,
}

impl KnownVersions<'_> {
    /// An object of a custom kind in another version: without a webhook it only says another one.
    fn convert_custom(&self, from: &dyn Version, to: &dyn Version, object: &Value) -> Value {
        let asks = self.kind.custom.as_ref().is_some_and(|custom| custom.versions.webhook().is_some());
        if asks {
            let written: &dyn Version = self.kind;
            let is_written = |version: &dyn Version| version.version() == written.version();
            if !is_written(from) && !is_written(to) {
                // By way of the version that is written (`newCRDVersionConverter`).
                return self.convert(written, to, &self.convert(from, written, object));
            }
            if let Some(known) = self.conversions.of(object, &to.api_version()) {
                return known;
            }
        }
        let mut object = object.clone();
        set_type(&mut object, to);
        object
    }
}

fn set_type(object: &mut Value, of: &dyn Version) {
    if let Value::Object(map) = object {
        map.insert("kind".into(), of.kind().into());
        map.insert("apiVersion".into(), of.api_version().into());
    }
}

impl Versions for KnownVersions<'_> {
    fn written(&self) -> &dyn Version {
        self.kind
    }

    fn get(&self, api_version: &str) -> Option<&dyn Version> {
        if api_version == self.kind.api_version() {
            return Some(self.kind);
        }
        if let Some(custom) = &self.kind.custom
            && let Some(unserved) = custom.unserved.iter().find(|kind| kind.api_version() == api_version)
        {
            return Some(unserved);
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
        if from.version() == to.version() && from.group() == to.group() {
            return object.clone();
        }
        if to.is_custom() {
            return self.convert_custom(from, to, object);
        }
        let mut object = object.clone();
        from.to_storage(&mut object);
        to.to_served(&mut object);
        set_type(&mut object, to);
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

    fn keeps_owners(&self) -> bool {
        self.kubernetes() >= kubewright_spec::Version::V1_37
    }
}
