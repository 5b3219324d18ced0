//! The group `apps`, and replication controllers: workloads that keep pods running
//! (`pkg/apis/apps/validation`, `pkg/registry/apps`).

mod daemon_sets;
mod deployments;
mod replica_sets;
mod stateful_sets;

use serde_json::Value;

use super::at::At;
use super::errors::Errors;
use super::{Again, Rules, selector};

pub(crate) use daemon_sets::{TEMPLATE_GENERATION, rules as daemon_sets};
pub(crate) use deployments::rules as deployments;
pub(crate) use replica_sets::{controllers as replication_controllers, rules as replica_sets};
pub(crate) use stateful_sets::rules as stateful_sets;

/// The rules of controller revisions.
pub(crate) const fn controller_revisions() -> Rules {
    Rules {
        default: |revision| super::fill::absent(revision, "revision", 0),
        validate: |revision| Errors::of(|errors| check_revision(&At::root(revision), errors)),
        validate_update: |new, old| {
            Errors::of(|errors| {
                let (new, old) = (At::root(new), At::root(old));
                errors.non_negative(&new.get("revision"));
                // Bytes to Kubernetes: a null in them is something.
                if new.get("data").value != old.get("data").value {
                    errors.invalid(&new.get("data"), super::errors::IMMUTABLE);
                }
            })
        },
        again: Again::Metadata,
        ..Rules::none()
    }
}

/// How many replicas an object asks for that nobody has written: none, not the default.
fn unwritten_replicas(object: &mut Value) {
    if let Some(spec) = super::fill::object(object, "spec") {
        super::fill::absent(spec, "replicas", 0);
    }
}

fn check_revision(revision: &At<'_>, errors: &mut Errors) {
    errors.non_negative(&revision.get("revision"));
    let data = revision.get("data");
    if !data.is_set() {
        errors.required(&data, "data is mandatory");
    } else if !data.value.is_object() {
        errors.required(&data, "data must be a valid JSON object");
    }
}

/// The selector of a workload: there, good, and asking for something. Says whether it can be used.
fn check_selector(selector: &At<'_>, what: &str, errors: &mut Errors) -> bool {
    if !selector.is_set() {
        errors.required(selector, "");
        return true;
    }
    let before = errors.count();
    selector::check(selector, errors);
    let usable = errors.count() == before;
    if selector::is_everything(selector) {
        selector::invalid(selector, format!("empty selector is invalid for {what}"), errors);
    }
    usable
}

/// The numbers of a status: none is negative, and none of the parts is larger than `replicas`.
fn check_counts(status: &At<'_>, fields: &[&str], parts: &[&str], ready: &str, errors: &mut Errors) {
    for field in fields {
        errors.non_negative(&status.get(field));
    }
    let count = |field: &str| status.get(field).number().unwrap_or_default();
    for field in parts.iter().filter(|field| count(field) > count("replicas")) {
        errors.invalid_as(&status.get(field), count(field), "cannot be greater than status.replicas");
    }
    if count("availableReplicas") > count("readyReplicas") {
        let available = status.get("availableReplicas");
        errors.invalid_as(&available, count("availableReplicas"), format!("cannot be greater than {ready}"));
    }
}

/// A count that never falls.
fn check_collisions(new: &Value, old: &Value, errors: &mut Errors) {
    let of = |object: &Value| object["status"]["collisionCount"].as_i64();
    if let Some(before) = of(old) {
        let now = of(new).unwrap_or_default();
        if now < before {
            errors.push(kubewright_meta::FieldError::invalid(
                "status.collisionCount",
                now,
                "cannot be decremented",
            ));
        }
    }
}
