//! Which events of a collection a watch shows, and as what.

use std::sync::Arc;

use bytes::Bytes;
use kubewright_kinds::{Kind, Kinds, Summary, encode};
use kubewright_store::{Entry, Event, Happening};

use super::{Lines, under_version};
use crate::request::{Call, ListOptions};

/// The objects that a watch is about.
pub(super) struct Selection {
    kind: Arc<Kind>,
    /// `namespace/`; empty for all.
    pub(super) prefix: String,
    options: ListOptions,
}

impl Selection {
    pub(super) fn new(call: Call<'_>, options: &ListOptions) -> Self {
        let prefix = if call.namespace.is_empty() { String::new() } else { format!("{}/", call.namespace) };
        Self { kind: Arc::clone(call.kind), prefix, options: options.clone() }
    }

    /// The kind of the objects, in the version asked for.
    pub(super) fn kind(&self) -> &Kind {
        &self.kind
    }

    /// From now on objects are shown as their definition has them now. (kube-apiserver ends the watches of a definition that
    /// changes.)
    pub(super) fn renew(&mut self, kinds: &Kinds) {
        let kind = &self.kind;
        if let Some(now) =
            kinds.get(&kind.group, &kind.version, &kind.plural).filter(|_| kind.custom.is_some())
        {
            self.kind = Arc::clone(now);
        }
    }

    fn matches(&self, entry: &Entry<Summary>) -> bool {
        entry.key.starts_with(&self.prefix) && self.options.matches(&self.kind, entry)
    }

    /// Writes an event as this watch sees it: an object that comes into the selection is added, one that leaves it is
    /// deleted (its last state inside, under the new version), whatever happened to it as a whole.
    pub(super) fn show(&self, event: &Event<Summary>, lines: &mut Lines) {
        let before = event.previous.as_deref().filter(|entry| self.matches(entry));
        let deleted = matches!(event.happening, Happening::Deleted);
        let after = !deleted && self.matches(&event.entry);
        match (before, after) {
            (None, true) => lines.entry("ADDED", &self.kind, &event.entry),
            (Some(_), true) => lines.entry("MODIFIED", &self.kind, &event.entry),
            (Some(_), false) if deleted => lines.entry("DELETED", &self.kind, &event.entry),
            (Some(before), false) => lines.event("DELETED", self.last_seen(before, event)),
            (None, false) => {}
        }
    }

    fn last_seen(&self, before: &Entry<Summary>, event: &Event<Summary>) -> Bytes {
        let value = encode::value(&self.kind, before);
        encode::bytes(&self.kind, &under_version(value, event.entry.revision))
    }
}
