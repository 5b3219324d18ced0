//! Kinds that are served in two versions over one collection: events (core and `events.k8s.io`, stored as core) and
//! horizontal pod autoscalers (`autoscaling/v1` and `v2`, stored as `v2`).
//!
//! Nothing is lost on the way there and back: what `autoscaling/v1` has no field for goes through annotations.

pub(crate) mod autoscalers;
pub mod events;
