//! At rest a status is about what its object is now.
//!
//! Judged: `status.observedGeneration` of an object whose status an operator writes; where there is none, those of its conditions, if
//! all of them are older than the object. Not judged: objects that are being deleted. The rule is that of the API conventions of
//! Kubernetes (typical status properties).

use serde_json::Value;

use super::evidence::{Evidence, is_operator};

pub(super) fn judge(evidence: &Evidence) -> Option<String> {
    evidence.recording.objects().values().find_map(|last| {
        let object = last.object();
        let observed = observed(&object["status"])?;
        let generation = object["metadata"]["generation"].as_i64()?;
        let is_going = object["metadata"]["deletionTimestamp"].is_string();
        if is_going || observed >= generation {
            return None;
        }
        let writer = reporter(evidence, &last.collection, &last.key)?;
        Some(format!(
            "all is at rest, and {writer} has left {} {} with a status of generation {observed}; it is generation {generation}",
            last.collection, last.key
        ))
    })
}

/// The generation that a status is about.
fn observed(status: &Value) -> Option<i64> {
    let of = |value: &Value| value["observedGeneration"].as_i64();
    let of_conditions = || status["conditions"].as_array()?.iter().filter_map(of).max();
    of(status).or_else(of_conditions)
}

/// The operator that has changed the status of an object last.
fn reporter(evidence: &Evidence, collection: &str, key: &str) -> Option<String> {
    let mut before = Value::Null;
    let mut by = None;
    for write in evidence.writes().iter().filter(|one| *one.collection == *collection && *one.key == *key) {
        let status = write.object()["status"].take();
        if is_operator(&write.by.user) && status != before {
            by = Some(write.by.user.clone());
        }
        before = status;
    }
    by
}

#[cfg(test)]
mod tests {
    use kubewright_cluster::recording::Did;
    use serde_json::json;

    use super::super::evidence::stories::{OPERATOR, Story, TEST};
    use super::*;

    const ORDER: &str = "shop.example/orders default/a";

    #[expect(clippy::needless_pass_by_value, reason = "as it is written down")]
    fn judged(user: &str, status: Value, more: Value) -> Option<String> {
        let mut metadata = json!({"generation": 2});
        if let (Some(metadata), Some(more)) = (metadata.as_object_mut(), more.as_object()) {
            metadata.extend(more.clone());
        }
        let story =
            Story::default().write(0.0, TEST, Did::Create, ORDER, json!({"metadata": {"generation": 1}}));
        let object = json!({"metadata": metadata, "status": status});
        judge(&story.write(1.0, user, Did::Update, ORDER, object).evidence())
    }

    #[test]
    fn a_status_that_stays_behind_is_found() {
        let of_conditions = json!({"conditions": [{"type": "Ready", "observedGeneration": 1}]});
        for status in [json!({"observedGeneration": 1}), of_conditions] {
            let found = judged(OPERATOR, status, json!({})).expect("found");
            assert!(found.ends_with("a status of generation 1; it is generation 2"), "{found}");
        }
    }

    #[test]
    fn a_status_of_now_and_one_that_says_no_generation_are_not() {
        let one_of_two = json!({"conditions": [{"type": "Ready", "observedGeneration": 2}, {"type": "Old", "observedGeneration": 1}]});
        for status in [json!({"observedGeneration": 2}), json!({"ready": true}), one_of_two] {
            assert_eq!(judged(OPERATOR, status, json!({})), None);
        }
    }

    #[test]
    fn what_others_report_and_what_is_going_is_not_judged() {
        let behind = json!({"observedGeneration": 1});
        assert_eq!(judged(TEST, behind.clone(), json!({})), None);
        assert_eq!(judged(OPERATOR, behind, json!({"deletionTimestamp": "2026-01-01T00:00:00Z"})), None);
    }
}
