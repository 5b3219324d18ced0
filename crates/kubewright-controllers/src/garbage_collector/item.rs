//! The objects that the collector is asked about, as queue keys, and which changes are worth asking.

use kube::api::ObjectMeta;
use kube::core::{ApiResource, DynamicObject, PartialObjectMeta};
use kubewright_runtime::{Change, Key};

/// The metadata of an object of any kind.
pub(super) type Meta = PartialObjectMeta<DynamicObject>;

/// The finalizer of an object that waits until its dependents are gone.
pub(super) const FOREGROUND: &str = "foregroundDeletion";
/// The finalizer of an object that waits until its dependents no longer name it as their owner.
pub(super) const ORPHAN: &str = "orphan";

/// One object, from its birth to its end.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Item {
    pub(super) group: String,
    pub(super) kind: String,
    /// Of an owner the namespace of its dependent: whether its kind has namespaces is for the catalog to say.
    pub(super) namespace: Option<String>,
    pub(super) name: String,
    pub(super) uid: String,
}

impl Item {
    /// The object with this metadata.
    pub(super) fn of(kind: &ApiResource, meta: &ObjectMeta) -> Self {
        Self {
            group: kind.group.clone(),
            kind: kind.kind.clone(),
            namespace: meta.namespace.clone(),
            name: meta.name.clone().unwrap_or_default(),
            uid: meta.uid.clone().unwrap_or_default(),
        }
    }

    /// The owners that an object names.
    pub(super) fn owners(meta: &ObjectMeta) -> impl Iterator<Item = Self> + '_ {
        meta.owner_references.iter().flatten().map(|reference| Self {
            group: group(&reference.api_version).to_owned(),
            kind: reference.kind.clone(),
            namespace: meta.namespace.clone(),
            name: reference.name.clone(),
            uid: reference.uid.clone(),
        })
    }

    /// The queue key that [`Item::parse`] reads. No part has a slash: the API server allows none.
    pub(super) fn key(&self) -> Key {
        let name = format!("{}/{}/{}/{}", self.group, self.kind, self.name, self.uid);
        Key::new(self.namespace.clone(), name)
    }

    /// The object that a key of [`Item::key`] stands for.
    pub(super) fn parse(key: &Key) -> Option<Self> {
        let mut parts = key.name.splitn(4, '/').map(str::to_owned);
        Some(Self {
            group: parts.next()?,
            kind: parts.next()?,
            namespace: key.namespace.clone(),
            name: parts.next()?,
            uid: parts.next()?,
        })
    }
}

/// The group of an `apiVersion`.
fn group(api_version: &str) -> &str {
    api_version.split_once('/').map_or("", |(group, _)| group)
}

/// Whether the object is being deleted and waits with this finalizer.
pub(super) fn waits_with(meta: &ObjectMeta, finalizer: &str) -> bool {
    meta.deletion_timestamp.is_some() && meta.finalizers.iter().flatten().any(|has| has == finalizer)
}

/// The objects to look at after a change: the object itself if the collector might have to do something about it, and
/// the owners that may have waited for it. Most changes, of a status say, concern it not at all.
pub(super) fn concerned(kind: &ApiResource, change: &Change<Meta>) -> Vec<Key> {
    match change {
        Change::Created(new) => {
            let relevant = has_owners(&new.metadata) || new.metadata.deletion_timestamp.is_some();
            relevant.then(|| Item::of(kind, &new.metadata).key()).into_iter().collect()
        }
        Change::Updated { old, new } => {
            let (old, new) = (&old.metadata, &new.metadata);
            let owners_changed = old.owner_references != new.owner_references;
            let same = !owners_changed
                && old.uid == new.uid
                && old.deletion_timestamp.is_some() == new.deletion_timestamp.is_some()
                && old.finalizers == new.finalizers;
            if same {
                return Vec::new();
            }
            let mut keys = vec![Item::of(kind, new).key()];
            if owners_changed {
                keys.extend(Item::owners(old).map(|owner| owner.key()));
            }
            keys
        }
        Change::Deleted(last) => {
            let mut keys = vec![Item::of(kind, &last.metadata).key()];
            keys.extend(Item::owners(&last.metadata).map(|owner| owner.key()));
            keys
        }
    }
}

fn has_owners(meta: &ObjectMeta) -> bool {
    meta.owner_references.as_ref().is_some_and(|owners| !owners.is_empty())
}

#[cfg(test)]
pub(super) mod tests {
    use std::sync::Arc;

    use serde_json::{Value, json};

    use super::*;
    use crate::discovery::tests::served;

    /// An object with this metadata.
    pub(in super::super) fn meta(metadata: impl Into<Value>) -> Arc<Meta> {
        let metadata = metadata.into();
        Arc::new(kubewright_objects::from_value(json!({"metadata": metadata})).expect("metadata"))
    }

    fn child(owner: &str) -> Value {
        json!({"name": "child", "namespace": "shop", "uid": "c",
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": owner}]})
    }

    fn keys(change: &Change<Meta>) -> Vec<String> {
        concerned(&served("v1", "ConfigMap", true).resource, change).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_key_says_which_object() {
        let item = Item {
            group: "apps".into(),
            kind: "Deployment".into(),
            namespace: Some("shop".into()),
            name: "web".into(),
            uid: "u".into(),
        };
        assert_eq!(Item::parse(&item.key()), Some(item));
        assert_eq!(Item::parse(&Key::cluster_scoped("nonsense")), None);
    }

    #[test]
    fn objects_without_owners_are_looked_at_only_when_they_go() {
        let free = meta(json!({"name": "free", "namespace": "shop", "uid": "f"}));
        assert!(keys(&Change::Created(Arc::clone(&free))).is_empty());
        assert_eq!(keys(&Change::Deleted(free)), ["shop//ConfigMap/free/f"]);
        let going = json!({"name": "going", "namespace": "shop", "uid": "g", "finalizers": ["orphan"],
            "deletionTimestamp": "2026-01-01T00:00:00Z"});
        assert_eq!(keys(&Change::Created(meta(going))), ["shop//ConfigMap/going/g"]);
    }

    #[test]
    fn a_change_of_anything_else_is_of_no_concern() {
        let mut labelled = child("u");
        labelled["labels"] = json!({"a": "b"});
        assert!(keys(&Change::Updated { old: meta(child("u")), new: meta(labelled) }).is_empty());
    }

    #[test]
    fn an_owner_that_is_no_longer_named_or_whose_dependent_is_gone_is_looked_at() {
        let both = ["shop//ConfigMap/child/c", "shop/apps/Deployment/web/u"];
        assert_eq!(keys(&Change::Updated { old: meta(child("u")), new: meta(child("other")) }), both);
        assert_eq!(keys(&Change::Deleted(meta(child("u")))), both);
    }
}
