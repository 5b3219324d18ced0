//! What one JSON value lacks of another, which is desired.

use std::fmt::Write;

use serde_json::{Map, Value};

use crate::{difference, subset::is_subset};

/// How many fields the text names before it says "and so on".
const MOST_FIELDS: usize = 8;
/// How long a value in the text may be.
const LONGEST_VALUE: usize = 80;

/// Difference between an object and what is desired: what is to be changed.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// The change as a JSON merge patch.
    pub patch: Value,
    /// The change for people: `spec.replicas: 2 -> 3; metadata.labels.app: (none) -> "web"`.
    pub text: String,
}

/// What `current` lacks of `wanted`; `None` if it has everything. Where `wanted` is an object, the fields that it does
/// not have are not looked at; a list is wanted as long as it is, its elements as objects are. `null`, an empty object
/// and an empty list are wanted where nothing is, too: servers leave them out.
#[must_use]
pub fn between(wanted: &Value, current: &Value) -> Option<Difference> {
    let mut changes = Changes { path: Vec::new(), count: 0, text: String::new() };
    let patch = changes.patch(wanted, current)?;
    Some(Difference { patch, text: changes.into_text() })
}

struct Changes {
    path: Vec<String>,
    count: usize,
    text: String,
}

impl Changes {
    /// The merge patch that gives `current` what it lacks of `wanted`.
    fn patch(&mut self, wanted: &Value, current: &Value) -> Option<Value> {
        if let (Value::Object(wanted), Value::Object(current)) = (wanted, current) {
            let mut patch = Map::new();
            for (field, wanted) in wanted {
                self.path.push(field.clone());
                if let Some(change) = self.patch(wanted, current.get(field).unwrap_or(&Value::Null)) {
                    patch.insert(field.clone(), change);
                }
                self.path.pop();
            }
            return if patch.is_empty() { None } else { Some(Value::Object(patch)) };
        }
        if is_subset(wanted, current) {
            return None;
        }
        match (wanted, current) {
            // A merge patch replaces lists: what the current elements have besides goes along.
            (Value::Array(wanted), Value::Array(current)) if wanted.len() == current.len() => {
                for (index, (wanted, current)) in wanted.iter().zip(current).enumerate() {
                    self.path.push(index.to_string());
                    self.patch(wanted, current);
                    self.path.pop();
                }
                let merged = wanted.iter().zip(current).map(|(wanted, current)| overlay(wanted, current));
                Some(Value::Array(merged.collect()))
            }
            _ => {
                self.note(wanted, current);
                Some(wanted.clone())
            }
        }
    }

    fn note(&mut self, wanted: &Value, current: &Value) {
        self.count += 1;
        if self.count <= MOST_FIELDS {
            let separator = if self.count > 1 { "; " } else { "" };
            let path = self.path.join(".");
            // Writing to a String does not fail.
            let _ = write!(self.text, "{separator}{path}: {} -> {}", shown(current), shown(wanted));
        }
    }

    fn into_text(mut self) -> String {
        if self.count > MOST_FIELDS {
            let _ = write!(self.text, "; and {} more", self.count - MOST_FIELDS);
        }
        self.text
    }
}

/// `current` with everything that `wanted` has.
#[must_use]
pub fn overlay(wanted: &Value, current: &Value) -> Value {
    match (wanted, current) {
        (Value::Object(wanted), Value::Object(current)) => {
            let mut merged = current.clone();
            for (field, wanted) in wanted {
                let current = current.get(field).unwrap_or(&Value::Null);
                match overlay(wanted, current) {
                    Value::Null => merged.remove(field),
                    value => merged.insert(field.clone(), value),
                };
            }
            Value::Object(merged)
        }
        (Value::Array(wanted), Value::Array(current)) if wanted.len() == current.len() => Value::Array(
            wanted.iter().zip(current).map(|(wanted, current)| overlay(wanted, current)).collect(),
        ),
        (wanted, current) if is_subset(wanted, current) => current.clone(),
        (wanted, _) => wanted.clone(),
    }
}

fn shown(value: &Value) -> String {
    if value.is_null() { "(none)".to_owned() } else { difference::shown(value, LONGEST_VALUE) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    /// JSON merge patch (RFC 7386).
    fn merge(target: &mut Value, patch: &Value) {
        let Value::Object(patch) = patch else {
            *target = patch.clone();
            return;
        };
        if !target.is_object() {
            *target = json!({});
        }
        for (field, patch) in patch {
            if patch.is_null() {
                target.as_object_mut().and_then(|target| target.remove(field));
            } else {
                merge(&mut target[field.as_str()], patch);
            }
        }
    }

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![Just(Value::Null), (0..3).prop_map(Value::from), "[ab]".prop_map(Value::from)];
        leaf.prop_recursive(4, 24, 3, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
                prop::collection::btree_map("[a-c]", inner, 0..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    fn object() -> impl Strategy<Value = Value> {
        prop::collection::btree_map("[a-c]", value(), 0..4)
            .prop_map(|map| Value::Object(map.into_iter().collect()))
    }

    /// Whether everything that `before` has beside `wanted` is still in `after`.
    fn keeps(before: &Value, wanted: &Value, after: &Value) -> bool {
        match (before, wanted) {
            (Value::Object(before), Value::Object(wanted)) => before.iter().all(|(field, before)| {
                let after = after.get(field).unwrap_or(&Value::Null);
                wanted.get(field).map_or(before == after, |wanted| keeps(before, wanted, after))
            }),
            (Value::Array(before), Value::Array(wanted)) if before.len() == wanted.len() => {
                (0..before.len()).all(|i| keeps(&before[i], &wanted[i], after.get(i).unwrap_or(&Value::Null)))
            }
            _ => true,
        }
    }

    proptest! {
        #[test]
        fn the_patch_gives_all_that_is_wanted_and_takes_nothing_else(wanted in object(), current in object()) {
            let mut patched = current.clone();
            if let Some(difference) = between(&wanted, &current) {
                merge(&mut patched, &difference.patch);
                prop_assert_ne!(&patched, &current, "a patch that changes nothing: {}", difference.text);
                prop_assert!(!difference.text.is_empty());
            }
            prop_assert_eq!(between(&wanted, &patched), None, "{}", patched);
            prop_assert!(keeps(&current, &wanted, &patched), "{}", patched);
        }

        #[test]
        fn a_value_lacks_nothing_of_itself(value in object()) {
            prop_assert_eq!(between(&value, &value), None);
        }
    }

    #[test]
    fn what_the_server_defaulted_is_no_difference() {
        let wanted =
            json!({"spec": {"containers": [{"name": "web", "image": "nginx"}], "securityContext": {}}});
        let current = json!({"spec": {
            "containers": [{"name": "web", "image": "nginx", "imagePullPolicy": "Always"}],
            "restartPolicy": "Always",
        }});
        assert_eq!(between(&wanted, &current), None);
    }

    #[test]
    fn a_changed_element_keeps_what_the_server_defaulted_beside_it() {
        let wanted = json!({"spec": {"replicas": 3, "containers": [{"name": "web", "image": "nginx:2"}]}});
        let current = json!({"spec": {
            "replicas": 3,
            "containers": [{"name": "web", "image": "nginx:1", "imagePullPolicy": "Always"}],
        }});
        let difference = between(&wanted, &current);
        assert_eq!(
            difference,
            Some(Difference {
                patch: json!({"spec": {
                    "containers": [{"name": "web", "image": "nginx:2", "imagePullPolicy": "Always"}],
                }}),
                text: r#"spec.containers.0.image: "nginx:1" -> "nginx:2""#.into(),
            })
        );
    }

    #[test]
    fn the_text_of_a_big_difference_stays_short() {
        let big = "x".repeat(10_000);
        let wanted: Map<String, Value> = (0..1000).map(|i| (format!("f{i:04}"), json!(big))).collect();
        let text =
            between(&Value::Object(wanted), &json!({})).map(|difference| difference.text).unwrap_or_default();
        assert!(text.len() < 2000, "{}", text.len());
        assert!(text.ends_with("and 992 more"), "{text}");
    }
}
