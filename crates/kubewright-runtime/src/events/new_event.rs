//! What is told of an object.

use k8s_openapi::api::core::v1::ObjectReference;

use super::EventType;
use crate::Object;

/// An Event that is to be recorded by [`Context::record`](crate::Context::record).
///
/// ```
/// # use k8s_openapi::api::{apps::v1::Deployment, core::v1::ConfigMap};
/// # use kubewright_runtime::{Context, EventType, NewEvent};
/// # fn example(ctx: &Context, site: &ConfigMap, deployment: &Deployment) {
/// let scaled = NewEvent::new(EventType::Normal, "Scaled", "from 1 to 3 replicas");
/// ctx.record(site, scaled.action("Scale").related(deployment));
/// # }
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct NewEvent {
    pub(super) event_type: EventType,
    pub(super) reason: String,
    pub(super) note: String,
    pub(super) action: Option<String>,
    pub(super) related: Option<ObjectReference>,
}

impl NewEvent {
    /// An Event of this type, for this reason (a CamelCase word for programs, of at most 128 bytes), with this note for people, which is
    /// cut after 1024 bytes as the API takes no more.
    #[must_use]
    pub fn new(event_type: EventType, reason: impl Into<String>, note: impl Into<String>) -> Self {
        Self { event_type, reason: reason.into(), note: note.into(), action: None, related: None }
    }

    /// What the controller did, or tried to do: a CamelCase word of at most 128 bytes. Unless it is said, `Reconcile` in
    /// `events.k8s.io`, which requires one, and nothing in the core API.
    #[must_use]
    pub fn action(mut self, action: impl Into<String>) -> Self {
        self.action = Some(action.into());
        self
    }

    /// Which second object it is about: the one that was made, or that stands in the way.
    #[must_use]
    pub fn related<K: Object>(mut self, object: &K) -> Self {
        self.related = Some(object.object_ref(&()));
        self
    }
}
