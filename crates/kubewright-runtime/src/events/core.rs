//! Events of the core API, as client-go's `tools/record` writes them: the built-in controllers of Kubernetes do.

use jiff::Timestamp;
use k8s_openapi::{
    api::core::v1::{Event, EventSource},
    apimachinery::pkg::apis::meta::v1::Time,
};
use kube::api::ObjectMeta;
use kubewright_meta::events::{Remembered, shortened};
use serde_json::{Value, json};

use super::Happened;

/// A new event.
pub(super) fn event(source: &str, namespace: &str, event: &Remembered, happened: Happened) -> Event {
    Event {
        action: happened.event.action,
        count: Some(event.count),
        first_timestamp: Some(Time(event.first)),
        involved_object: happened.regarding,
        last_timestamp: Some(Time(happened.at)),
        message: Some(shortened(&event.note)),
        metadata: ObjectMeta {
            namespace: Some(namespace.to_owned()),
            name: Some(event.name.clone()),
            ..ObjectMeta::default()
        },
        reason: Some(event.key.reason.clone()),
        related: happened.event.related,
        reporting_component: Some(source.to_owned()),
        source: Some(EventSource { component: Some(source.to_owned()), host: None }),
        type_: Some(event.key.event_type.to_string()),
        ..Event::default()
    }
}

/// That it happened once more.
pub(super) fn count(event: &Remembered, at: Timestamp) -> Value {
    json!({
        "count": event.count,
        "lastTimestamp": Time(at),
        "message": shortened(&event.note),
    })
}
