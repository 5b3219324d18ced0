//! Whether a write did what it was to do: an answer that has something else is news to who wrote.

use serde_json::Value;

use crate::{
    Object,
    object::{fields_of, to_value},
};

/// What a write is to make of an object.
#[derive(Clone, Copy)]
pub(crate) enum Intent<'a, K> {
    /// This.
    Whole(&'a K),
    /// One that has these fields, and not those that are null (a merge patch or an apply).
    Part(&'a Value),
    /// That is said in a way that is not looked into.
    Unsaid,
}

impl<K: Object> Intent<'_, K> {
    /// Whether an answer has all that was wished for; what the server added does not count.
    pub(crate) fn is_fulfilled(&self, answer: &K) -> bool {
        let fulfilled = |intent: &Value| {
            let is_asked_for = |field: &str| intent.get(field).is_some();
            fields_of(answer, is_asked_for).is_ok_and(|answer| has_object(intent, &answer, &["metadata"]))
        };
        match self {
            Self::Whole(object) => to_value(*object).is_ok_and(|intent| fulfilled(&intent)),
            Self::Part(patch) => fulfilled(patch),
            Self::Unsaid => false,
        }
    }
}

/// Fields of the metadata that are the server's, whatever is asked for.
const ITS_OWN: [&str; 5] = ["resourceVersion", "generation", "managedFields", "creationTimestamp", "uid"];

fn has_object(intent: &Value, answer: &Value, metadata: &[&str]) -> bool {
    let (Value::Object(intent), Value::Object(answer)) = (intent, answer) else { return has(intent, answer) };
    intent.iter().all(|(field, intent)| match answer.get(field) {
        None => is_nothing(intent),
        Some(answer) if metadata.contains(&field.as_str()) => has_metadata(intent, answer),
        Some(answer) => has(intent, answer),
    })
}

fn has_metadata(intent: &Value, answer: &Value) -> bool {
    let Value::Object(fields) = intent else { return has(intent, answer) };
    fields
        .iter()
        .filter(|(field, _)| !ITS_OWN.contains(&field.as_str()))
        .all(|(field, intent)| has(intent, &answer[field]))
}

/// Whether `answer` has every field of `intent`: items of lists one by one.
fn has(intent: &Value, answer: &Value) -> bool {
    match (intent, answer) {
        (Value::Object(_), Value::Object(_)) => has_object(intent, answer, &[]),
        (Value::Array(intent), Value::Array(answer)) => {
            intent.len() == answer.len()
                && intent.iter().zip(answer).all(|(intent, answer)| has(intent, answer))
        }
        (intent, Value::Null) => is_nothing(intent),
        (intent, answer) => intent == answer,
    }
}

/// Whether it is left out of an object that has it: nothing, or a list or map of nothing.
fn is_nothing(intent: &Value) -> bool {
    match intent {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.values().all(is_nothing),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;
    use serde_json::json;

    use super::*;

    fn map(value: Value) -> ConfigMap {
        kubewright_objects::from_value(value).expect("a ConfigMap")
    }

    #[test]
    fn what_the_server_adds_does_not_count() {
        let stored =
            map(json!({"metadata": {"name": "a", "uid": "1", "resourceVersion": "7", "labels": {"x": "y"}},
            "data": {"a": "1", "b": "2"}}));
        assert!(Intent::Part(&json!({"data": {"a": "1"}})).is_fulfilled(&stored));
        assert!(
            Intent::Part(&json!({"metadata": {"resourceVersion": "6"}, "data": {"a": "1"}}))
                .is_fulfilled(&stored)
        );
        assert!(Intent::Part(&json!({"data": {"c": null}, "binaryData": {}})).is_fulfilled(&stored));
        assert!(
            Intent::Whole(&map(json!({"metadata": {"name": "a"}, "data": {"b": "2"}}))).is_fulfilled(&stored)
        );
    }

    #[test]
    fn what_the_server_made_of_it_counts() {
        let stored = map(json!({"metadata": {"name": "a"}, "data": {"a": "1"}}));
        assert!(!Intent::Part(&json!({"data": {"a": "2"}})).is_fulfilled(&stored));
        assert!(!Intent::Part(&json!({"data": {"b": "2"}})).is_fulfilled(&stored));
        assert!(!Intent::Part(&json!({"data": {"a": null}})).is_fulfilled(&stored));
        assert!(!Intent::Part(&json!({"status": {"dropped": true}})).is_fulfilled(&stored));
        assert!(
            !Intent::Whole(&map(json!({"metadata": {"name": "a"}, "data": {"a": "2"}})))
                .is_fulfilled(&stored)
        );
        assert!(!Intent::Unsaid.is_fulfilled(&stored));
    }

    #[test]
    fn lists_have_the_same_items_which_may_have_more() {
        let intent = json!([{"name": "a"}, {"name": "b"}]);
        assert!(has(&intent, &json!([{"name": "a", "default": 1}, {"name": "b"}])));
        assert!(!has(&intent, &json!([{"name": "a"}])));
        assert!(!has(&intent, &json!([{"name": "a"}, {"name": "b"}, {"name": "injected"}])));
    }
}
