//! What was read of a cluster, and what was not.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

use crate::object::{Id, Object};

/// What was read of a cluster at one time.
#[derive(Clone, Debug)]
pub struct Picture {
    /// When, by the clock of who asks.
    pub(crate) now: Timestamp,
    pub(crate) target: Id,
    pub(crate) objects: Vec<Object>,
    /// Group, kind and namespace of what was listed whole: an object that is not there does not exist.
    pub(crate) whole: BTreeSet<(String, String, String)>,
    /// What was looked for by its name and does not exist.
    pub(crate) absent: BTreeSet<Id>,
    pub(crate) unread: Vec<Unread>,
    /// Requests of the server's log that were refused for want of rights.
    pub(crate) refused: Vec<Value>,
    /// What the operator says of its reconciles (`/debug/reconciles`).
    pub(crate) reconciles: Option<Value>,
}

/// Something that could not be read.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Unread {
    /// What: `secrets in shop`.
    pub what: String,
    /// Why, as the server says it.
    pub why: String,
}

impl Picture {
    pub(crate) fn new(now: Timestamp, target: Id) -> Self {
        Self {
            now,
            target,
            objects: Vec::new(),
            whole: BTreeSet::new(),
            absent: BTreeSet::new(),
            unread: Vec::new(),
            refused: Vec::new(),
            reconciles: None,
        }
    }

    /// With what the operator of the object says of its reconciles: the answer of its `/debug/reconciles`.
    #[must_use]
    pub fn with_reconciles(mut self, reconciles: Value) -> Self {
        self.reconciles = Some(reconciles);
        self
    }

    pub(crate) fn add(&mut self, object: Object) {
        if !self.has(&object.id()) {
            self.objects.push(object);
        }
    }

    pub(crate) fn has(&self, id: &Id) -> bool {
        self.get(&id.group, &id.kind, &id.namespace, &id.name).is_some()
    }

    pub(crate) fn target(&self) -> Option<&Object> {
        let Id { group, kind, namespace, name } = &self.target;
        self.get(group, kind, namespace, name)
    }

    pub(crate) fn all<'a>(&'a self, group: &'a str, kind: &'a str) -> impl Iterator<Item = &'a Object> {
        self.objects.iter().filter(move |one| one.kind() == kind && one.group() == group)
    }

    /// Those of a kind in a namespace.
    pub(crate) fn within<'a>(
        &'a self,
        group: &'a str,
        kind: &'a str,
        namespace: &'a str,
    ) -> impl Iterator<Item = &'a Object> {
        self.all(group, kind).filter(move |one| one.namespace() == namespace)
    }

    pub(crate) fn get(&self, group: &str, kind: &str, namespace: &str, name: &str) -> Option<&Object> {
        self.objects.iter().find(|one| {
            one.name() == name && one.kind() == kind && one.namespace() == namespace && one.group() == group
        })
    }

    /// Whether an object is known not to exist; not when it could not be read.
    pub(crate) fn is_absent(&self, id: &Id) -> bool {
        let place = (id.group.clone(), id.kind.clone(), id.namespace.clone());
        !self.has(id) && (self.absent.contains(id) || self.whole.contains(&place))
    }

    /// Whether all objects of a kind in a namespace (or in the cluster) are here.
    pub(crate) fn is_whole(&self, group: &str, kind: &str, namespace: &str) -> bool {
        self.whole.contains(&(group.to_owned(), kind.to_owned(), namespace.to_owned()))
    }

    /// The objects that an object controls or owns.
    pub(crate) fn owned_by<'a>(&'a self, owner: &'a Object) -> impl Iterator<Item = &'a Object> {
        self.objects.iter().filter(move |one| one.is_owned_by(owner))
    }

    /// The events about an object, the latest first.
    pub(crate) fn events(&self, object: &Object) -> Vec<&Object> {
        let about = |event: &&Object| {
            let uid = event.text("/involvedObject/uid");
            event.text("/involvedObject/kind") == object.kind()
                && event.text("/involvedObject/name") == object.name()
                && (uid.is_empty() || uid == object.uid())
        };
        let mut all: Vec<&Object> = self.all("", "Event").filter(about).collect();
        all.sort_by_key(|event| std::cmp::Reverse(time_of(event)));
        all
    }

    /// The latest event about an object for one of these reasons.
    pub(crate) fn event<'a>(&'a self, object: &Object, reasons: &[&str]) -> Option<&'a Object> {
        self.events(object).into_iter().find(|event| reasons.contains(&event.text("/reason")))
    }
}

/// When an event was the last time.
fn time_of(event: &Object) -> Option<Timestamp> {
    ["/series/lastObservedTime", "/lastTimestamp", "/eventTime", "/metadata/creationTimestamp"]
        .into_iter()
        .filter_map(|pointer| event.time(pointer))
        .max()
}
