//! The versions of a definition: how an object that is stored in one of them is read in another.
//!
//! The rules are those of kube-apiserver's storage codec (`apiextensions-apiserver/pkg/apiserver/customresource_handler.go`,
//! `crdConversionRESTOptionsGetter`): what is stored is pruned and defaulted by today's schema of its own version; what is
//! converted is pruned by the schema of the version that it is wanted in, and gets no defaults of it.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kubewright_schema::Schema;
use serde_json::Value;

use super::super::conversion::Webhook;
use super::{list, storage_version, text, versions};
use crate::selector::Selectable;

/// All versions of a definition, served or not.
#[derive(Clone, Debug, Default)]
pub struct Versions {
    group: String,
    storage: String,
    all: BTreeMap<String, Version>,
    uniform: bool,
    unreadable: Option<String>,
    webhook: Option<Webhook>,
}

#[derive(Clone, Debug)]
struct Version {
    schema: Schema,
    /// The fields that selectors may name. It stands for the schema too: when that changes, this is another one, so that
    /// objects whose tags hold it are known to have been read by the schema of today.
    selectable: Arc<Selectable>,
}

/// What has to be done with stored bytes before they are an object of the version asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// Nothing.
    AsStored,
    /// They only have to say another version.
    Renamed,
    /// The object has to be decoded and made again ([`Versions::read`]).
    Remade,
}

impl Versions {
    /// The versions of a definition. What stays as it was `before` is taken over. `stored` are the versions in which there
    /// are objects.
    #[must_use]
    pub fn of(definition: &Value, before: Option<&Self>, stored: &BTreeSet<String>) -> Self {
        let namespaced = text(&definition["spec"], "scope") == "Namespaced";
        let mut all: BTreeMap<String, Version> = BTreeMap::new();
        for version in versions(definition) {
            let name = text(version, "name");
            let source = &version["schema"]["openAPIV3Schema"];
            let fields = || list(version, "selectableFields").map(selectable_path);
            let known = before.and_then(|before| before.all.get(name));
            let known = known.filter(|known| known.selectable.names().iter().cloned().eq(fields()));
            let version = match known.filter(|known| known.schema.is_of(source)) {
                Some(known) => known.clone(),
                None => {
                    let twin = all.values().find(|other| other.schema.is_of(source));
                    let schema = twin.map(|twin| twin.schema.clone());
                    Version {
                        schema: schema.unwrap_or_else(|| Schema::custom(source)),
                        selectable: Arc::new(Selectable::custom(fields(), namespaced)),
                    }
                }
            };
            all.insert(name.to_owned(), version);
        }
        let mut schemas = all.values().map(|version| &version.schema);
        let first = schemas.next();
        let uniform = schemas.all(|other| first.is_some_and(|first| first.is_same(other)));
        let group = text(&definition["spec"], "group").to_owned();
        let unreadable =
            stored.iter().find(|one| !all.contains_key(*one)).map(|one| format!("{group}/{one}"));
        let storage = storage_version(definition).unwrap_or_default().to_owned();
        Self { group, storage, all, uniform, unreadable, webhook: Webhook::of(definition) }
    }

    /// The schema of a version.
    #[must_use]
    pub fn schema(&self, version: &str) -> Option<&Schema> {
        self.all.get(version).map(|version| &version.schema)
    }

    /// The version that objects are stored in.
    #[must_use]
    pub fn storage(&self) -> &str {
        &self.storage
    }

    /// The `apiVersion` of objects that nobody can read any more, since the definition no longer has their version.
    #[must_use]
    pub fn unreadable(&self) -> Option<&str> {
        self.unreadable.as_deref()
    }

    /// The webhook that converts between them. Without one, objects differ by the version that they say, and nothing else.
    #[must_use]
    pub fn webhook(&self) -> Option<&Webhook> {
        self.webhook.as_ref()
    }

    /// The fields by which the tags of stored objects tell them apart: those of the version that is stored.
    #[must_use]
    pub fn selectable(&self) -> Arc<Selectable> {
        self.all.get(&self.storage).map(|version| Arc::clone(&version.selectable)).unwrap_or_default()
    }

    /// Whether an object that is stored in a version was judged by the schema that this version has today, when these were
    /// the fields that its tag told.
    #[must_use]
    pub fn is_current(&self, stored: &str, judged: &Arc<Selectable>) -> bool {
        self.all.get(stored).is_some_and(|version| Arc::ptr_eq(&version.selectable, judged))
    }

    /// What has to be done with an object that is stored in one version and wanted in another; `as_read` when its bytes are
    /// what the schema of today reads of them.
    #[must_use]
    pub fn reading(&self, stored: &str, wanted: &str, as_read: bool) -> Reading {
        match (as_read, stored == wanted) {
            (true, true) => Reading::AsStored,
            (true, false) if self.uniform => Reading::Renamed,
            _ => Reading::Remade,
        }
    }

    /// Makes an object that was stored, in the version that it says, one of the version `wanted`.
    pub fn read(&self, wanted: &str, as_read: bool, object: &mut Value) {
        let stored = version_of(object).to_owned();
        if let (false, Some(schema)) = (as_read, self.schema(&stored)) {
            schema.conform(object);
            schema.default(object);
        }
        if stored != wanted {
            self.rename(wanted, object);
        }
    }

    /// Makes an object one of the version that is stored. What it lacks by the defaults of that version is not stored with
    /// it: it gets those of the day on which it is read.
    pub fn store(&self, object: &mut Value) {
        if version_of(object) != self.storage || self.webhook.is_some() {
            self.rename(&self.storage, object);
        }
    }

    /// Prunes an object of a version that is about to be stored and was not pruned since it was changed. Returns whether kube-apiserver would
    /// store what goes: it prunes what it decodes, and what it converts to the version that is stored, by the schema of that one.
    pub fn prune(&self, version: &str, object: &mut Value) -> bool {
        let is_stored = version == self.storage;
        let schema = self.schema(version).filter(|_| is_stored || self.uniform);
        schema.is_some_and(|schema| schema.prune(object)) && is_stored
    }

    /// What will be read of an object that is about to be stored; borrowed where that is the object itself.
    #[must_use]
    pub fn as_read<'a>(&self, stored: &'a Value) -> Cow<'a, Value> {
        match self.schema(&self.storage) {
            Some(schema) if !schema.is_defaulted(stored) => {
                let mut read = stored.clone();
                schema.default(&mut read);
                Cow::Owned(read)
            }
            _ => Cow::Borrowed(stored),
        }
    }

    fn rename(&self, wanted: &str, object: &mut Value) {
        if let Some(object) = object.as_object_mut() {
            object.insert("apiVersion".into(), format!("{}/{wanted}", self.group).into());
        }
        if !self.uniform {
            self.fit(wanted, object);
        }
    }

    /// Prunes what was converted by the schema of its new version.
    pub fn fit(&self, wanted: &str, object: &mut Value) {
        if let Some(schema) = self.schema(wanted) {
            schema.conform(object);
        }
    }
}

/// The path of one of `selectableFields`, without the leading dot.
pub(super) fn selectable_path(field: &Value) -> String {
    text(field, "jsonPath").trim_start_matches('.').to_owned()
}

/// The version that an object says, without its group.
fn version_of(object: &Value) -> &str {
    text(object, "apiVersion").rsplit('/').next().unwrap_or_default()
}
