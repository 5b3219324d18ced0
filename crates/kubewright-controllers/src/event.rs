//! Events that a plan decides on, and that are recorded when it is carried out.

use kubewright_runtime::{Context, EventType, Object};

/// An event to be recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NewEvent {
    pub(crate) kind: EventType,
    pub(crate) reason: &'static str,
    pub(crate) note: String,
}

impl NewEvent {
    pub(crate) fn normal(reason: &'static str, note: impl Into<String>) -> Self {
        Self { kind: EventType::Normal, reason, note: note.into() }
    }

    pub(crate) fn warning(reason: &'static str, note: impl Into<String>) -> Self {
        Self { kind: EventType::Warning, reason, note: note.into() }
    }

    /// Records it about an object.
    pub(crate) fn record<K: Object>(&self, ctx: &Context, object: &K) {
        ctx.event(object, self.kind, self.reason, &self.note);
    }
}
