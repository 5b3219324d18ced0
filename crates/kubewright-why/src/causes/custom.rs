//! Objects of custom kinds: what their operator says of them, and whether it says anything.

use crate::cause::Cause;
use crate::causes::{Around, operators};
use crate::object::{Condition, Object};
use crate::picture::Picture;
use crate::report::Finding;
use crate::text::{ago, one_line};

/// Conditions that are good when they are true.
const GOOD: [&str; 12] = [
    "Ready",
    "Available",
    "Synced",
    "Reconciled",
    "Healthy",
    "Succeeded",
    "Complete",
    "Established",
    "Initialized",
    "Progressing",
    "Valid",
    "Accepted",
];
/// Conditions that are bad when they are true.
const BAD: [&str; 6] = ["Stalled", "Failed", "Degraded", "Error", "ReconcileError", "Failure"];

pub(super) fn find(around: &Around<'_>) -> Vec<Finding> {
    let Around { picture, object, .. } = *around;
    let mut found: Vec<Finding> =
        if object.is_deleting() { Vec::new() } else { conditions(object).into_iter().collect() };
    let behind = generation_behind(picture, object);
    let silent = behind.is_some() || status_missing(picture, object).is_some();
    found.extend(behind.or_else(|| status_missing(picture, object)));
    if silent || object.is_deleting() || !found.is_empty() {
        found.extend(operators::find(picture, object));
    }
    found.extend(operators::reconciles(picture, object));
    found
}

/// The definition of the object's kind, where something is wrong with it.
pub(super) fn needs<'a>(picture: &'a Picture, object: &'a Object) -> Vec<&'a Object> {
    operators::definition(picture, object).into_iter().collect()
}

fn is_bad(condition: &Condition<'_>) -> bool {
    match condition.status {
        "True" => BAD.contains(&condition.kind),
        "False" => {
            GOOD.contains(&condition.kind)
                || condition.kind.ends_with("Ready")
                || condition.kind.ends_with("Available")
        }
        "Unknown" => condition.kind == "Ready",
        _ => false,
    }
}

/// Conditions that say what is wrong; `Progressing=False` only where nothing says that it is ready.
fn conditions(object: &Object) -> Option<Finding> {
    let is_fine =
        object.condition_is("Ready", "True").is_some() || object.condition_is("Available", "True").is_some();
    let bad: Vec<Condition<'_>> =
        object.conditions().filter(is_bad).filter(|one| !(is_fine && one.kind == "Progressing")).collect();
    let first = bad.iter().find(|one| !one.message.is_empty()).or_else(|| bad.first())?;
    let mut said = format!("{} is {}", first.kind, first.status);
    if !first.reason.is_empty() {
        said += &format!(" ({})", first.reason);
    }
    if !first.message.is_empty() {
        said += &format!(": {}", one_line(first.message));
    }
    let next = "the operator says so: do what its message says, or look at the objects below and at its log";
    Some(Finding::new(Cause::ConditionFalse, said, next).all(bad.iter().map(Condition::line)))
}

fn generation_behind(picture: &Picture, object: &Object) -> Option<Finding> {
    let latest = object.number("/metadata/generation");
    let of_status = object.at("/status/observedGeneration").as_i64();
    let of_conditions = object.conditions().filter_map(|one| one.observed_generation).max();
    let seen = of_status.or(of_conditions).filter(|seen| *seen < latest)?;
    let message = format!(
        "its status is that of generation {seen}, the latest is {latest}: the operator has not reconciled the change"
    );
    let finding = Finding::new(Cause::GenerationBehind, message, "see that the operator runs, and its log");
    Some(finding.all(last_writer(picture, object)))
}

/// An object without a status, of a kind that has one.
fn status_missing(picture: &Picture, object: &Object) -> Option<Finding> {
    let definition = operators::definition(picture, object)?;
    let version = object.text("/apiVersion").rsplit('/').next().unwrap_or_default();
    let has_status = definition
        .list("/spec/versions")
        .any(|one| one["name"] == version && one["subresources"]["status"].is_object());
    let is_empty = object.at("/status").as_object().is_none_or(serde_json::Map::is_empty);
    (has_status && is_empty && !object.is_deleting()).then(|| {
        let since =
            object.time("/metadata/creationTimestamp").map(|time| ago(time, picture.now)).unwrap_or_default();
        Finding::new(
            Cause::StatusMissing,
            format!("it has no status, {since} after it was created: no operator has reconciled it"),
            "see that the operator runs, and watches this namespace",
        )
    })
}

/// Who wrote the status last.
fn last_writer(picture: &Picture, object: &Object) -> Option<String> {
    let entry = object.managers().find(|entry| entry["subresource"] == "status")?;
    let manager = entry["manager"].as_str()?;
    let time = entry["time"].as_str()?.parse().ok()?;
    Some(format!("{manager} wrote the status {} ago", ago(time, picture.now)))
}
