//! Whether a write did what it was to do: an answer that has something else is news to who wrote.

use serde_json::Value;

use crate::{
    Object,
    object::{fields_of, to_value},
};

/// What a write is to make of an object.
#[derive(Clone, Copy)]
pub(crate) enum Wish<'a, K> {
    /// This.
    Whole(&'a K),
    /// One that has these fields, and not those that are null (a merge patch or an apply).
    Part(&'a Value),
    /// That is said in a way that is not looked into.
    Unsaid,
}

impl<K: Object> Wish<'_, K> {
    /// Whether an answer has all that was wished for; what the server added does not count.
    pub(crate) fn is_fulfilled(&self, answer: &K) -> bool {
        let fulfilled = |wish: &Value| {
            let is_asked_for = |field: &str| wish.get(field).is_some();
            fields_of(answer, is_asked_for).is_ok_and(|answer| has_object(wish, &answer, &["metadata"]))
        };
        match self {
            Self::Whole(object) => to_value(*object).is_ok_and(|wish| fulfilled(&wish)),
            Self::Part(patch) => fulfilled(patch),
            Self::Unsaid => false,
        }
    }
}

/// Fields of the metadata that are the server's, whatever is asked for.
const ITS_OWN: [&str; 5] = ["resourceVersion", "generation", "managedFields", "creationTimestamp", "uid"];

fn has_object(wish: &Value, answer: &Value, metadata: &[&str]) -> bool {
    let (Value::Object(wish), Value::Object(answer)) = (wish, answer) else { return has(wish, answer) };
    wish.iter().all(|(field, wish)| match answer.get(field) {
        None => is_nothing(wish),
        Some(answer) if metadata.contains(&field.as_str()) => has_metadata(wish, answer),
        Some(answer) => has(wish, answer),
    })
}

fn has_metadata(wish: &Value, answer: &Value) -> bool {
    let Value::Object(fields) = wish else { return has(wish, answer) };
    fields
        .iter()
        .filter(|(field, _)| !ITS_OWN.contains(&field.as_str()))
        .all(|(field, wish)| has(wish, &answer[field]))
}

/// Whether `answer` has every field of `wish`: items of lists one by one.
fn has(wish: &Value, answer: &Value) -> bool {
    match (wish, answer) {
        (Value::Object(_), Value::Object(_)) => has_object(wish, answer, &[]),
        (Value::Array(wish), Value::Array(answer)) => {
            wish.len() == answer.len() && wish.iter().zip(answer).all(|(wish, answer)| has(wish, answer))
        }
        (wish, Value::Null) => is_nothing(wish),
        (wish, answer) => wish == answer,
    }
}

/// Whether it is left out of an object that has it: nothing, or a list or map of nothing.
fn is_nothing(wish: &Value) -> bool {
    match wish {
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
        serde_json::from_value(value).expect("a ConfigMap")
    }

    #[test]
    fn what_the_server_adds_does_not_count() {
        let stored =
            map(json!({"metadata": {"name": "a", "uid": "1", "resourceVersion": "7", "labels": {"x": "y"}},
            "data": {"a": "1", "b": "2"}}));
        assert!(Wish::Part(&json!({"data": {"a": "1"}})).is_fulfilled(&stored));
        assert!(
            Wish::Part(&json!({"metadata": {"resourceVersion": "6"}, "data": {"a": "1"}}))
                .is_fulfilled(&stored)
        );
        assert!(Wish::Part(&json!({"data": {"c": null}, "binaryData": {}})).is_fulfilled(&stored));
        assert!(
            Wish::Whole(&map(json!({"metadata": {"name": "a"}, "data": {"b": "2"}}))).is_fulfilled(&stored)
        );
    }

    #[test]
    fn what_the_server_made_of_it_counts() {
        let stored = map(json!({"metadata": {"name": "a"}, "data": {"a": "1"}}));
        assert!(!Wish::Part(&json!({"data": {"a": "2"}})).is_fulfilled(&stored));
        assert!(!Wish::Part(&json!({"data": {"b": "2"}})).is_fulfilled(&stored));
        assert!(!Wish::Part(&json!({"data": {"a": null}})).is_fulfilled(&stored));
        assert!(!Wish::Part(&json!({"status": {"dropped": true}})).is_fulfilled(&stored));
        assert!(
            !Wish::Whole(&map(json!({"metadata": {"name": "a"}, "data": {"a": "2"}}))).is_fulfilled(&stored)
        );
        assert!(!Wish::Unsaid.is_fulfilled(&stored));
    }

    #[test]
    fn lists_have_the_same_items_which_may_have_more() {
        let wish = json!([{"name": "a"}, {"name": "b"}]);
        assert!(has(&wish, &json!([{"name": "a", "default": 1}, {"name": "b"}])));
        assert!(!has(&wish, &json!([{"name": "a"}])));
        assert!(!has(&wish, &json!([{"name": "a"}, {"name": "b"}, {"name": "injected"}])));
    }
}
