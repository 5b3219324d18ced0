//! Whether one JSON value has every field of another.
//!
//! Servers leave out what is empty: `null`, an empty text or list and an object of nothing are in a value that has nothing there. Items of
//! lists are compared one by one, and may have more fields. A number is the same however it is written.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

/// Fields of the metadata that are the server's, whatever is asked for.
const SERVERS: [&str; 5] = ["resourceVersion", "generation", "managedFields", "creationTimestamp", "uid"];

/// Whether `actual` has everything that `wanted` has.
#[must_use]
pub fn is_subset(wanted: &Value, actual: &Value) -> bool {
    match (wanted, actual) {
        (Value::Object(wanted), Value::Object(actual)) => {
            wanted.iter().all(|(field, wanted)| is_subset(wanted, actual.get(field).unwrap_or(&Value::Null)))
        }
        (Value::Array(wanted), Value::Array(actual)) => {
            wanted.len() == actual.len()
                && wanted.iter().zip(actual).all(|(wanted, actual)| is_subset(wanted, actual))
        }
        (wanted, Value::Null) => is_nothing(wanted),
        (Value::Number(wanted), Value::Number(actual)) => {
            wanted == actual || wanted.as_f64() == actual.as_f64() && (wanted.is_f64() || actual.is_f64())
        }
        (wanted, actual) => wanted == actual,
    }
}

/// Whether a server leaves it out: nothing, an empty text or list, or an object of nothing.
#[must_use]
pub fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.values().all(is_nothing),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

/// As [`is_subset`], of the JSON text of a Kubernetes object, of which nothing is decoded for it. What the server writes into
/// the metadata does not count. A text that is no object has nothing.
#[must_use]
pub fn is_in(wanted: &Value, object: &str) -> bool {
    let mut decoder = serde_json::Deserializer::from_str(object);
    wanted.is_object() && Compare { wanted, depth: Depth::Root }.deserialize(&mut decoder).unwrap_or(false)
}

/// As [`is_subset`], of the JSON text of any value; a text that is none has nothing.
#[must_use]
pub fn is_in_value(wanted: &Value, text: &str) -> bool {
    let mut decoder = serde_json::Deserializer::from_str(text);
    Compare { wanted, depth: Depth::Below }.deserialize(&mut decoder).unwrap_or(false)
}

/// Where in an object something is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Depth {
    Root,
    Metadata,
    Below,
}

impl Depth {
    fn of(self, field: &str) -> Self {
        if self == Self::Root && field == "metadata" { Self::Metadata } else { Self::Below }
    }

    fn counts(self, field: &str) -> bool {
        self != Self::Metadata || !SERVERS.contains(&field)
    }
}

/// Compares what a decoder reads with what is wanted there.
struct Compare<'a> {
    wanted: &'a Value,
    depth: Depth,
}

impl<'de> DeserializeSeed<'de> for Compare<'_> {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<bool, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Compare<'_> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E: Error>(self) -> Result<bool, E> {
        Ok(is_nothing(self.wanted))
    }

    fn visit_bool<E: Error>(self, actual: bool) -> Result<bool, E> {
        Ok(self.wanted.as_bool() == Some(actual))
    }

    fn visit_u64<E: Error>(self, actual: u64) -> Result<bool, E> {
        Ok(is_subset(self.wanted, &actual.into()))
    }

    fn visit_i64<E: Error>(self, actual: i64) -> Result<bool, E> {
        Ok(is_subset(self.wanted, &actual.into()))
    }

    fn visit_f64<E: Error>(self, actual: f64) -> Result<bool, E> {
        Ok(is_subset(self.wanted, &actual.into()))
    }

    fn visit_str<E: Error>(self, actual: &str) -> Result<bool, E> {
        Ok(self.wanted.as_str() == Some(actual))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<bool, A::Error> {
        let mut wanted = self.wanted.as_array().map(|wanted| wanted.iter());
        let mut is_subset = wanted.is_some();
        while is_subset && let Some(wanted) = wanted.as_mut().and_then(Iterator::next) {
            is_subset = items.next_element_seed(Compare { wanted, depth: Depth::Below })?.unwrap_or_default();
        }
        while items.next_element::<IgnoredAny>()?.is_some() {
            is_subset = false;
        }
        Ok(is_subset)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<bool, A::Error> {
        let (depth, Some(wanted)) = (self.depth, self.wanted.as_object()) else {
            while fields.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
            return Ok(false);
        };
        // Those that may not be left out, and have not been read.
        let mut missing =
            wanted.iter().filter(|(field, value)| depth.counts(field) && !is_nothing(value)).count();
        let mut is_subset = true;
        while let Some(found) = fields.next_key_seed(Find(wanted))? {
            let found = found.filter(|(field, _)| is_subset && depth.counts(field));
            let Some((field, wanted)) = found else {
                fields.next_value::<IgnoredAny>()?;
                continue;
            };
            is_subset = fields.next_value_seed(Compare { wanted, depth: depth.of(field) })?;
            // No server says a field twice. One that is said more often than fields are missing must not end in a panic.
            match missing.checked_sub(usize::from(!is_nothing(wanted))) {
                Some(left) => missing = left,
                None => is_subset = false,
            }
        }
        Ok(is_subset && missing == 0)
    }
}

/// Finds the field of an object that a decoder reads the name of.
struct Find<'a>(&'a Map<String, Value>);

impl<'de, 'a> DeserializeSeed<'de> for Find<'a> {
    type Value = Option<(&'a String, &'a Value)>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'a> Visitor<'_> for Find<'a> {
    type Value = Option<(&'a String, &'a Value)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a field")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<Self::Value, E> {
        Ok(self.0.get_key_value(name))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            prop::bool::ANY.prop_map(Value::from),
            (-1..3).prop_map(Value::from),
            Just(Value::from(1.0)),
            Just(Value::from(0.5)),
            "[ab\\n\"]".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 24, 3, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
                prop::collection::btree_map("[a-c]|metadata|uid", inner, 0..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    fn object() -> impl Strategy<Value = Value> {
        prop::collection::btree_map("[a-c]", value(), 0..4)
            .prop_map(|map| Value::Object(map.into_iter().collect()))
    }

    proptest! {
        #[test]
        fn a_text_is_compared_as_its_value_is(wanted in object(), actual in object()) {
            prop_assert_eq!(is_in(&wanted, &actual.to_string()), is_subset(&wanted, &actual));
            prop_assert_eq!(is_in_value(&wanted, &actual.to_string()), is_subset(&wanted, &actual));
            prop_assert!(is_in(&actual, &actual.to_string()));
        }

        #[test]
        fn what_is_added_does_not_count_and_what_is_taken_away_does(
            wanted in object(), field in "[a-c]", more in value(),
        ) {
            let (mut with, mut without) = (wanted.clone(), wanted.clone());
            let had = wanted.get(&field).is_some_and(|value| !is_nothing(value));
            with[format!("{field}{field}")] = more;
            without.as_object_mut().and_then(|fields| fields.remove(&field));
            prop_assert!(is_in(&wanted, &with.to_string()));
            prop_assert_eq!(is_in(&wanted, &without.to_string()), !had);
        }
    }

    #[test]
    fn lists_have_the_same_items_which_may_have_more() {
        let wanted = json!({"list": [{"name": "a"}, {"name": "b"}]});
        let is_in = |list: Value| is_in(&wanted, &json!({"list": list}).to_string());
        assert!(is_in(json!([{"name": "a", "default": 1}, {"name": "b"}])));
        assert!(!is_in(json!([{"name": "a"}])));
        assert!(!is_in(json!([{"name": "b"}, {"name": "a"}])));
        assert!(!is_in(json!([{"name": "a"}, {"name": "b"}, {"name": "injected"}])));
    }

    #[test]
    fn metadata_that_the_server_writes_does_not_count_where_it_is_the_objects() {
        let wanted =
            json!({"metadata": {"name": "a", "resourceVersion": "1"}, "spec": {"metadata": {"uid": "1"}}});
        assert!(is_in(&wanted, r#"{"metadata": {"name": "a"}, "spec": {"metadata": {"uid": "1"}}}"#));
        assert!(!is_in(&wanted, r#"{"metadata": {"name": "a"}, "spec": {"metadata": {"uid": "2"}}}"#));
    }

    #[test]
    fn a_text_that_is_no_object_has_nothing() {
        for text in ["", "7", "[]", "{", r#"{"a": 1"#, r#"{"a": 1} more"#] {
            assert!(!is_in(&json!({"a": 2}), text), "{text}");
        }
    }

    #[test]
    fn a_text_that_repeats_a_field_too_often_has_not_what_is_wanted() {
        let wanted = json!({"a": 1, "b": 2});
        for text in [r#"{"a":1,"a":1,"a":1}"#, r#"{"a":1,"b":2,"b":2}"#] {
            assert!(!is_in_value(&wanted, text), "{text}");
        }
    }
}
