//! What objects and Events say.

use k8s_openapi::api::events::v1::Event;
use kube::api::{Api, ListParams};
use kubewright_runtime::Object;
use serde::Deserialize;
use serde_json::Value;

use crate::Cluster;

/// A condition of an object's status, of whatever kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Condition {
    /// Its name.
    #[serde(rename = "type")]
    pub type_: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// Why, in one word.
    pub reason: String,
    /// Why, for people.
    pub message: String,
    /// The generation of the object that it is about, where it says so.
    pub observed_generation: Option<i64>,
}

impl Condition {
    /// Whether it is `True`.
    #[must_use]
    pub fn is_true(&self) -> bool {
        self.status == "True"
    }
}

impl Cluster {
    /// The condition `type_` of the object `name`, if it has it.
    ///
    /// # Panics
    /// When the object is not there; with its history.
    pub async fn condition<K: Object>(&self, name: &str, type_: &str) -> Option<Condition> {
        let object = kubewright_objects::to_value(&self.get::<K>(name).await).unwrap_or_default();
        let conditions = object.pointer("/status/conditions").and_then(Value::as_array);
        let found = conditions?.iter().find(|condition| condition["type"] == type_)?;
        kubewright_objects::from_value::<Condition>(found).ok()
    }

    /// The Events about an object, oldest first.
    ///
    /// # Panics
    /// When the API server does not say.
    pub async fn events_of(&self, object: &impl Object) -> Vec<Event> {
        let uid = object.meta().uid.as_deref();
        let found = Api::<Event>::all(self.client()).list(&ListParams::default()).await;
        let mut events = found.unwrap_or_else(|error| panic!("list events: {error}")).items;
        events.retain(|event| {
            event.regarding.as_ref().is_some_and(|regarding| regarding.uid.as_deref() == uid)
        });
        events.sort_by_key(|event| {
            let first = event.deprecated_first_timestamp.as_ref().map(|time| time.0);
            event.event_time.as_ref().map(|time| time.0).or(first)
        });
        events
    }
}
