//! Events of `events.k8s.io/v1`: what goes on is one event with a series.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::{
    api::events::v1::{Event, EventSeries},
    apimachinery::pkg::apis::meta::v1::MicroTime,
};
use kube::api::ObjectMeta;
use kubewright_meta::events::{Remembered, shortened};
use serde_json::{Value, json};

use super::Happened;

/// Repetitions within this time become one event with a count (`finishTime` in
/// `k8s.io/client-go/tools/events/event_broadcaster.go`).
pub(super) const ENDS_AFTER: Duration = Duration::from_secs(6 * 60);

/// What was done, when nobody says it: the API requires something.
const ACTION: &str = "Reconcile";

/// A new event.
pub(super) fn event(source: &str, namespace: &str, event: &Remembered, happened: Happened) -> Event {
    // More than once: those before could not be written.
    let series = (event.count > 1)
        .then_some(EventSeries { count: event.count, last_observed_time: MicroTime(happened.at) });
    Event {
        action: Some(happened.event.action.unwrap_or_else(|| ACTION.to_owned())),
        event_time: Some(MicroTime(event.first)),
        metadata: ObjectMeta {
            namespace: Some(namespace.to_owned()),
            name: Some(event.name.clone()),
            ..ObjectMeta::default()
        },
        note: Some(shortened(&event.note)),
        reason: Some(event.key.reason.clone()),
        regarding: Some(happened.regarding),
        related: happened.event.related,
        reporting_controller: Some(source.to_owned()),
        reporting_instance: Some(source.to_owned()),
        series,
        type_: Some(event.key.event_type.to_string()),
        ..Event::default()
    }
}

/// That it happened once more. Nothing else of such an event can be changed (`ValidateEventUpdate` in
/// `k8s.io/kubernetes/pkg/apis/core/validation/events.go`).
pub(super) fn count(event: &Remembered, at: Timestamp) -> Value {
    json!({"series": {"count": event.count, "lastObservedTime": MicroTime(at)}})
}
