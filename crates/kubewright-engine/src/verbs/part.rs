//! The parts of an object that can be written apart from each other, and what a write of one leaves as it is.

use kubewright_kinds::rules::Generation;
use kubewright_kinds::{Kind, Role};
use kubewright_meta::object;
use serde_json::Value;

use super::member::{Member, copy_metadata};
use crate::Engine;
use crate::request::type_of_body;

/// The part of an object that a write may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// All but status (where status is a subresource).
    Main,
    /// `status` alone.
    Status,
    /// One member alone: what the smaller subresources change.
    Member(Member),
    /// Whatever the server itself has changed, such as the node of a pod that is bound.
    Trusted,
}

impl Part {
    /// The subresource by which it is written; empty for the object itself.
    #[must_use]
    pub fn subresource(self) -> &'static str {
        match self {
            Self::Main | Self::Trusted => "",
            Self::Status => "status",
            Self::Member(Member::Approval) => "approval",
            Self::Member(Member::Finalizers) => "finalize",
            Self::Member(Member::EphemeralContainers) => "ephemeralcontainers",
            Self::Member(Member::Containers) => "resize",
        }
    }
}

/// What the server owns is carried over; what the part does not hold stays as it is.
pub(super) fn prepare(kind: &Kind, part: Part, next: &mut Value, current: &Value) {
    match part {
        Part::Main => {
            carry_metadata(next, current);
            if kind.has_status() {
                object::copy_member(next, current, "status");
            }
            kind.rules.prepare_update(next, current);
        }
        Part::Status => {
            let written = std::mem::replace(next, current.clone());
            object::copy_member(next, &written, "status");
            object::copy_meta(next, &written, "managedFields");
            let fields = kind.behaviour.metadata_of_status_writes;
            copy_metadata(next, &written, fields);
            // Only these take over metadata as a whole.
            let is_whole = kind.custom.is_some()
                || matches!(kind.behaviour.role, Role::FlowSchema | Role::PriorityLevel);
            if !is_whole {
                copy_metadata(next, &written, &["uid"]);
            }
            if kind.custom.is_none() {
                copy_marks(kind, next, &written, current);
            } else if next.get("status").is_some_and(Value::is_null) && current.get("status").is_none() {
                // What is applied keeps its nulls. No status is as good as none before (`WithRatcheting`), and is not read back.
                kind.schema().default(next);
            }
            if type_of_body::says_other(kind, &written) {
                // It was not pruned as one of this kind.
                kind.schema().conform(next);
            }
            kind.rules.prepare_status(next, current);
        }
        Part::Trusted => {}
        Part::Member(member) => kind.rules.within(|| member.prepare(next, current)),
    }
}

/// What a write to the status says of metadata that no kind resets.
fn copy_marks(kind: &Kind, next: &mut Value, written: &Value, current: &Value) {
    for field in ["generateName", "selfLink"] {
        object::copy_meta(next, written, field);
    }
    let given = |field: &str| written["metadata"].get(field).is_some_and(|value| !value.is_null());
    if given("deletionGracePeriodSeconds") {
        object::copy_meta(next, written, "deletionGracePeriodSeconds");
    }
    let resets = kind.behaviour.metadata_of_status_writes.is_empty();
    // That a pod is to go is never said by its status.
    let resets = resets || kind.behaviour.role == Role::Pod;
    if !resets && given("deletionTimestamp") && object::meta_text(current, "deletionTimestamp").is_empty() {
        object::copy_meta(next, written, "deletionTimestamp");
    }
}

/// Writes down the time where the kind tells one that the client left out.
pub(super) fn stamp(engine: &Engine, kind: &Kind, object: &mut Value, old: Option<&Value>) {
    let now = object::time(engine.world().clock.now());
    kind.rules.stamp(object, old, now.as_str().unwrap_or_default());
}

/// What only the server sets in metadata. A uid that the client gives stays, to be compared, and a link to itself, which is not stored.
fn carry_metadata(next: &mut Value, current: &Value) {
    for field in ["creationTimestamp", "resourceVersion", "generation"] {
        object::copy_meta(next, current, field);
    }
    for field in ["uid", "deletionGracePeriodSeconds"] {
        if next["metadata"].get(field).is_none_or(Value::is_null) {
            object::copy_meta(next, current, field);
        }
    }
    if !object::meta_text(current, "deletionTimestamp").is_empty() {
        object::copy_meta(next, current, "deletionTimestamp");
    }
}

/// Raises the generation where the write has changed what is wanted.
pub(super) fn raise_generation(kind: &Kind, part: Part, next: &mut Value, current: &Value) {
    // Where status is not written apart, it is content like any other.
    let raised = |status_counts: bool| {
        kind.rules.generation.raised(next, current)
            || (status_counts
                && matches!(kind.rules.generation, Generation::Content | Generation::AsGiven)
                && next.get("status") != current.get("status"))
    };
    if !matches!(part, Part::Status | Part::Trusted) && raised(!kind.has_status()) {
        object::set_meta(next, "generation", Some((object::generation(current) + 1).into()));
    }
}
