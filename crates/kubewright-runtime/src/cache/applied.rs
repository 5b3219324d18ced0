//! What appliers own of objects by server-side apply, and what their last applies left: by this a controller knows without a request
//! that to apply the same again would change nothing.
//!
//! Of the managed fields of an object nothing else is kept: they are half of most objects.

use std::{
    collections::{BTreeMap, BTreeSet},
    hash::{DefaultHasher, Hasher},
    sync::Arc,
};

use arc_swap::ArcSwap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ManagedFieldsEntry;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::Key;

/// What an entry of managed fields says in `operation` when it is that of an apply.
const APPLY: &str = "Apply";

/// Who applies: a field manager, and the part of the object that it applies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Applier {
    pub(crate) manager: Arc<str>,
    pub(crate) subresource: Option<&'static str>,
    /// Whether it is one that a controller replaces: it may be called like that, as who wrote by updates before it applied.
    pub(crate) is_replaced: bool,
}

/// The field managers whose fields are kept: the controllers of a manager, and whom they replace. Clones share them.
#[derive(Clone, Default)]
pub(crate) struct Appliers(Arc<ArcSwap<Managers>>);

#[derive(Clone, Default)]
struct Managers {
    /// The fields of their applies are kept.
    controllers: BTreeSet<Arc<str>>,
    /// Of these it is kept that they own something, by whichever write.
    predecessors: BTreeSet<Arc<str>>,
}

/// What an applier owns of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Owned {
    manager: Arc<str>,
    subresource: Option<Box<str>>,
    is_replaced: bool,
    /// The fields, as `FieldsV1`.
    fields: Box<str>,
}

/// What the last apply left, as hashes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LastApply {
    /// What was asked for.
    pub(crate) asked: u64,
    /// The fields that were owned then.
    pub(crate) fields: u64,
    /// The values that they had.
    pub(crate) values: u64,
    /// The version of the object in which that was last seen to be so.
    pub(crate) version: Option<String>,
}

/// What an applier owns of an object as it is known now.
#[derive(Clone, Debug)]
pub(crate) struct Applied {
    pub(crate) fields: Arc<str>,
    pub(crate) last: Option<LastApply>,
}

/// A number for a text, the same in each process.
pub(crate) fn hash(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(text.as_bytes());
    hasher.finish()
}

impl Appliers {
    /// Keeps the fields of one more, of all objects that come from now on.
    pub(crate) fn add(&self, manager: &str) {
        self.0.rcu(|known| {
            let mut known = Managers::clone(known);
            known.controllers.insert(manager.into());
            known
        });
    }

    /// Keeps whether this manager, whom a controller replaces, owns anything, of all objects that come from now on.
    pub(crate) fn add_predecessor(&self, manager: &str) {
        self.0.rcu(|known| {
            let mut known = Managers::clone(known);
            known.predecessors.insert(manager.into());
            known
        });
    }

    /// What they own of an object with these managed fields.
    pub(crate) fn in_entries(&self, entries: &[ManagedFieldsEntry]) -> Vec<Owned> {
        let owned = |entry: &ManagedFieldsEntry| {
            let (manager, fields) = (entry.manager.as_deref()?, entry.fields_v1.as_ref()?);
            let operation = entry.operation.as_deref();
            self.owned(manager, operation, entry.subresource.as_deref(), || fields.0.to_string())
        };
        entries.iter().filter_map(owned).collect()
    }

    /// As [`Appliers::in_entries`], of managed fields as JSON. Of such that cannot be read nothing is known.
    pub(super) fn in_text(&self, managed_fields: &str) -> Vec<Owned> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Entry<'a> {
            manager: Option<String>,
            operation: Option<String>,
            subresource: Option<String>,
            #[serde(borrow, rename = "fieldsV1")]
            fields: Option<&'a RawValue>,
        }
        if !self.may_be_in(managed_fields) {
            return Vec::new();
        }
        let entries: Vec<Entry<'_>> = serde_json::from_str(managed_fields).unwrap_or_default();
        let owned = |entry: &Entry<'_>| {
            let (manager, fields) = (entry.manager.as_deref()?, entry.fields?);
            let text =
                || serde_json::from_str::<serde_json::Value>(fields.get()).unwrap_or_default().to_string();
            self.owned(manager, entry.operation.as_deref(), entry.subresource.as_deref(), text)
        };
        entries.iter().filter_map(owned).collect()
    }

    fn owned(
        &self,
        manager: &str,
        operation: Option<&str>,
        subresource: Option<&str>,
        fields: impl FnOnce() -> String,
    ) -> Option<Owned> {
        let known = self.0.load();
        let subresource = subresource.filter(|part| !part.is_empty()).map(Into::into);
        if let Some(manager) = known.controllers.get(manager).filter(|_| operation == Some(APPLY)) {
            let (manager, fields) = (manager.clone(), fields().into());
            return Some(Owned { manager, subresource, is_replaced: false, fields });
        }
        let manager = known.predecessors.get(manager)?.clone();
        Some(Owned { manager, subresource, is_replaced: true, fields: "".into() })
    }

    /// Whether managed fields, as JSON, may have something to keep: most have not, and are not read then.
    fn may_be_in(&self, managed_fields: &str) -> bool {
        managed_fields.contains(APPLY)
            || self.0.load().predecessors.iter().any(|manager| managed_fields.contains(&**manager))
    }
}

/// What is known of applies to the objects of one kind.
#[derive(Debug, Default)]
pub(super) struct AppliedFields(BTreeMap<Key, Known>);

#[derive(Debug)]
struct Known {
    /// The version of the object of which this is known.
    version: Option<String>,
    appliers: Vec<(Applier, Applied)>,
}

impl Owned {
    /// The fields, as `FieldsV1`.
    pub(crate) fn fields(&self) -> &str {
        &self.fields
    }

    pub(crate) fn is_of(&self, applier: &Applier) -> bool {
        (&self.manager, self.subresource.as_deref(), self.is_replaced)
            == (&applier.manager, applier.subresource, applier.is_replaced)
    }
}

impl AppliedFields {
    /// An object of this version is known from now on, of which appliers own this.
    pub(super) fn note(&mut self, key: &Key, version: Option<&str>, owned: Vec<Owned>) {
        if owned.is_empty() {
            self.0.remove(key);
            return;
        }
        let known =
            self.0.entry(key.clone()).or_insert_with(|| Known { version: None, appliers: Vec::new() });
        known.version = version.map(str::to_owned);
        known.appliers.retain(|(applier, _)| owned.iter().any(|owned| owned.is_of(applier)));
        for owned in owned {
            match known.appliers.iter_mut().find(|(applier, _)| owned.is_of(applier)) {
                Some((_, applied)) if *applied.fields == *owned.fields => {}
                Some((_, applied)) => applied.fields = owned.fields.into(),
                None => {
                    let subresource = match owned.subresource.as_deref() {
                        None => None,
                        Some("status") => Some("status"),
                        // Nobody applies another part.
                        Some(_) => continue,
                    };
                    let Owned { manager, is_replaced, .. } = owned;
                    let applier = Applier { manager, subresource, is_replaced };
                    known.appliers.push((applier, Applied { fields: owned.fields.into(), last: None }));
                }
            }
        }
    }

    /// What an applier owns of an object in this version, if that is the one that is known.
    pub(super) fn get(&self, key: &Key, version: Option<&str>, applier: &Applier) -> Option<Applied> {
        let known = self.0.get(key).filter(|known| known.version.as_deref() == version)?;
        let (_, applied) = known.appliers.iter().find(|(other, _)| other == applier)?;
        Some(applied.clone())
    }

    /// Remembers what an apply left.
    pub(super) fn remember(&mut self, key: &Key, applier: &Applier, last: LastApply) {
        let appliers = self.0.get_mut(key).into_iter().flat_map(|known| &mut known.appliers);
        if let Some((_, applied)) = appliers.into_iter().find(|(other, _)| other == applier) {
            applied.last = Some(last);
        }
    }

    pub(super) fn forget(&mut self, key: &Key) {
        self.0.remove(key);
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn managed_fields() -> Value {
        json!([
            {"manager": "web", "operation": "Update", "fieldsV1": {"f:data": {"f:c": {}}}},
            {"manager": "web", "operation": "Apply", "fieldsV1": {"f:data": {"f:b": {}, "f:a": {}}}},
            {"manager": "web", "operation": "Apply", "subresource": "status", "fieldsV1": {"f:status": {}}},
            {"manager": "kubectl", "operation": "Apply", "fieldsV1": {"f:data": {}}},
        ])
    }

    fn web(subresource: Option<&'static str>) -> Applier {
        Applier { manager: "web".into(), subresource, is_replaced: false }
    }

    #[test]
    fn only_what_own_applies_own_is_kept_whichever_way_it_comes() {
        let appliers = Appliers::default();
        assert!(appliers.in_text(&managed_fields().to_string()).is_empty());
        appliers.add("web");
        let from_text = appliers.in_text(&managed_fields().to_string());
        let entries: Vec<ManagedFieldsEntry> =
            kubewright_objects::from_value(managed_fields()).expect("managed fields");
        assert_eq!(appliers.in_entries(&entries), from_text);
        let told: Vec<_> =
            from_text.iter().map(|owned| (owned.subresource.as_deref(), &*owned.fields)).collect();
        assert_eq!(
            told,
            [(None, r#"{"f:data":{"f:a":{},"f:b":{}}}"#), (Some("status"), r#"{"f:status":{}}"#)]
        );
        assert!(appliers.in_text("no list").is_empty());
    }

    #[test]
    fn of_a_predecessor_it_is_kept_that_it_owns_something_whichever_way_it_wrote() {
        let appliers = Appliers::default();
        appliers.add("new");
        appliers.add_predecessor("web");
        let owned = appliers.in_text(&managed_fields().to_string());
        let parts: Vec<_> = owned.iter().map(|owned| owned.subresource.as_deref()).collect();
        assert_eq!(parts, [None, None, Some("status")]);
        assert!(owned.iter().all(|owned| owned.fields.is_empty()));
        let (key, mut applied) = (Key::namespaced("default", "a"), AppliedFields::default());
        applied.note(&key, Some("1"), owned);
        let replaced = Applier { is_replaced: true, ..web(None) };
        assert!(applied.get(&key, Some("1"), &replaced).is_some());
        assert!(applied.get(&key, Some("1"), &web(None)).is_none());
    }

    #[test]
    fn who_updates_and_applies_under_one_name_is_known_as_both() {
        let appliers = Appliers::default();
        appliers.add("web");
        appliers.add_predecessor("web");
        let (key, mut applied) = (Key::namespaced("default", "a"), AppliedFields::default());
        applied.note(&key, Some("1"), appliers.in_text(&managed_fields().to_string()));
        let own = applied.get(&key, Some("1"), &web(None)).expect("it applied");
        assert_eq!(&*own.fields, r#"{"f:data":{"f:a":{},"f:b":{}}}"#);
        let replaced = Applier { is_replaced: true, ..web(None) };
        assert!(applied.get(&key, Some("1"), &replaced).is_some(), "and updated");
        let replaced = Applier { is_replaced: true, ..web(Some("status")) };
        assert!(applied.get(&key, Some("1"), &replaced).is_none(), "it applied the status alone");
    }

    #[test]
    fn what_an_apply_left_is_known_until_the_applier_owns_nothing_or_the_object_ends() {
        let appliers = Appliers::default();
        appliers.add("web");
        let owned = || appliers.in_text(&managed_fields().to_string());
        let (key, mut applied) = (Key::namespaced("default", "a"), AppliedFields::default());
        applied.note(&key, Some("1"), owned());
        assert!(applied.get(&key, Some("1"), &web(None)).is_some_and(|applied| applied.last.is_none()));
        assert!(applied.get(&key, Some("2"), &web(None)).is_none(), "of another version nothing is known");
        let last = LastApply { asked: 1, fields: 2, values: 3, version: None };
        applied.remember(&key, &web(None), last.clone());
        applied.note(&key, Some("2"), owned());
        assert_eq!(applied.get(&key, Some("2"), &web(None)).and_then(|applied| applied.last), Some(last));
        assert!(
            applied.get(&key, Some("2"), &web(Some("status"))).is_some_and(|applied| applied.last.is_none())
        );
        let mut others = owned();
        others.remove(0);
        applied.note(&key, Some("3"), others);
        assert!(applied.get(&key, Some("3"), &web(None)).is_none());
        applied.note(&key, Some("4"), Vec::new());
        assert_eq!(applied.len(), 0);
        applied.note(&key, Some("5"), owned());
        applied.forget(&key);
        assert_eq!(applied.len(), 0);
    }
}
