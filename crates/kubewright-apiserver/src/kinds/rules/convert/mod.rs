//! Kinds that are served in two versions over one collection: events (core and `events.k8s.io`, stored as core) and
//! horizontal pod autoscalers (`autoscaling/v1` and `v2`, stored as `v2`).
//!
//! Nothing is lost on the way there and back: what `autoscaling/v1` has no field for goes through annotations.

mod autoscalers;
mod events;

use serde_json::Value;

/// The `apiVersion` in which a built-in resource of several versions is stored.
#[must_use]
pub fn storage_api_version(group: &str, plural: &str) -> Option<&'static str> {
    match (group, plural) {
        ("" | "events.k8s.io", "events") => Some("v1"),
        ("autoscaling", "horizontalpodautoscalers") => Some("autoscaling/v2"),
        _ => None,
    }
}

/// Turns an object of a served version into the stored one. Other kinds are left as they are.
pub fn to_storage(group: &str, version: &str, plural: &str, object: &mut Value) {
    match (group, version, plural) {
        ("events.k8s.io", "v1", "events") => events::to_core(object),
        ("autoscaling", "v1", "horizontalpodautoscalers") => autoscalers::to_v2(object),
        _ => {}
    }
}

/// Turns a stored object into one of a served version. Other kinds are left as they are.
pub fn from_storage(group: &str, version: &str, plural: &str, object: &mut Value) {
    match (group, version, plural) {
        ("events.k8s.io", "v1", "events") => events::from_core(object),
        ("autoscaling", "v1", "horizontalpodautoscalers") => autoscalers::from_v2(object),
        _ => {}
    }
}
