//! Which samples have converged, and what the others wait for.

use std::collections::BTreeMap;

use crate::change::{Change, Id, condition};

/// The samples that have not converged, and those that have.
#[derive(Debug)]
pub(crate) struct Progress {
    samples: BTreeMap<Id, Awaited>,
}

/// What is waited for.
#[derive(Debug)]
struct Awaited {
    /// The type of the condition that is to be true.
    condition: &'static str,
    /// What it lacks; nothing once it has converged.
    reason: Option<String>,
}

impl Progress {
    /// None of `samples` has converged. Each does when its operator says that its condition of this type is true.
    pub(crate) fn new(samples: impl IntoIterator<Item = (Id, &'static str)>) -> Self {
        let unseen = samples.into_iter().map(|(id, condition)| {
            (id, Awaited { condition, reason: Some("it was not seen yet".to_owned()) })
        });
        Self { samples: unseen.collect() }
    }

    /// Takes note of a change; of what is no sample too.
    pub(crate) fn observe(&mut self, change: &Change) {
        if let Some(sample) = self.samples.get_mut(&change.id()) {
            sample.reason = waits_for(change, sample.condition);
        }
    }

    pub(crate) fn is_done(&self) -> bool {
        self.samples.values().all(|sample| sample.reason.is_none())
    }

    /// Each sample that has not converged, with what it waits for, in one line.
    pub(crate) fn reasons(&self) -> String {
        let waiting =
            self.samples.iter().filter_map(|(id, sample)| Some(format!("{id}: {}", sample.reason.as_ref()?)));
        waiting.collect::<Vec<_>>().join("; ")
    }
}

/// What an object lacks that has converged: an operator's word on the spec as it is now. `None` when it lacks nothing.
fn waits_for(change: &Change, type_: &str) -> Option<String> {
    let object = &change.object;
    if change.gone {
        return Some("it was deleted".to_owned());
    }
    let observed = object.data.pointer("/status/observedGeneration").and_then(serde_json::Value::as_i64);
    if observed != object.metadata.generation {
        return Some("its operator has not reported on it".to_owned());
    }
    let Some(found) = condition(object, type_) else {
        return Some(format!("it has no condition {type_}"));
    };
    if found["status"] == "True" {
        return None;
    }
    let word = |key: &str| found[key].as_str().unwrap_or_default();
    Some(format!("condition {type_} is {} ({}: {})", word("status"), word("reason"), word("message")))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn sample(status: &Value) -> Change {
        let object =
            json!({"metadata": {"name": "x", "namespace": "default", "generation": 2}, "status": status});
        let object = kubewright_objects::from_value(object).expect("an object");
        Change { kind: "whitelist".to_owned(), object, gone: false }
    }

    fn status(generation: i64, available: &str) -> Value {
        let condition =
            json!({"type": "Available", "status": available, "reason": "R", "message": "so and so"});
        json!({"observedGeneration": generation, "conditions": [condition]})
    }

    fn after(changes: &[Change]) -> Progress {
        let mut progress = Progress::new([(sample(&Value::Null).id(), "Available")]);
        changes.iter().for_each(|change| progress.observe(change));
        progress
    }

    #[test]
    fn a_sample_has_converged_when_its_operator_says_so_of_the_spec_as_it_is_now() {
        assert!(after(&[sample(&status(2, "True"))]).is_done());
        assert!(!after(&[sample(&status(1, "True"))]).is_done());
        assert!(!after(&[]).is_done());
        assert!(Progress::new([]).is_done());
    }

    #[test]
    fn the_reason_names_the_sample_and_the_condition() {
        let progress = after(&[sample(&status(2, "False"))]);
        assert_eq!(progress.reasons(), "whitelist default/x: condition Available is False (R: so and so)");
        let progress = after(&[sample(&Value::Null)]);
        assert_eq!(progress.reasons(), "whitelist default/x: its operator has not reported on it");
    }

    #[test]
    fn a_sample_that_is_deleted_has_not_converged() {
        let progress = after(&[Change { gone: true, ..sample(&status(2, "True")) }]);
        assert_eq!(progress.reasons(), "whitelist default/x: it was deleted");
    }

    #[test]
    fn a_sample_that_was_ready_and_is_not_any_more_is_waited_for_again() {
        assert!(!after(&[sample(&status(2, "True")), sample(&status(2, "False"))]).is_done());
    }

    #[test]
    fn other_objects_do_not_count() {
        let mut other = sample(&status(2, "True"));
        other.object.metadata.name = Some("y".to_owned());
        assert!(!after(&[other]).is_done());
    }
}
