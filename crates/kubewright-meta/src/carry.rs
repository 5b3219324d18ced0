//! Carrying a change of one form of a value over to another form, which has more in it.
//!
//! A handler sees an object through a Rust type, which may not know every field of it; a spoke of a conversion sees a hub
//! that has more than it can hold. In both cases what was changed is the difference of two values of the poorer form, and
//! what the richer one has besides must stay.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// `rich` with what changed from `before` to `after`, two values that are as `rich` but for what they cannot express.
///
/// `null` is the same as nothing. Elements of lists are found again by their place, or by their name or value where
/// elements came or went.
#[must_use]
pub fn carry(rich: &Value, before: &Value, after: &Value) -> Value {
    if before == after {
        return rich.clone();
    }
    match (rich, before, after) {
        (Value::Object(rich), Value::Object(before), Value::Object(after)) => {
            Value::Object(fields(rich, before, after))
        }
        (Value::Array(rich), Value::Array(before), Value::Array(after)) if rich.len() == before.len() => {
            Value::Array(elements(rich, before, after))
        }
        _ => after.clone(),
    }
}

fn fields(
    rich: &Map<String, Value>,
    before: &Map<String, Value>,
    after: &Map<String, Value>,
) -> Map<String, Value> {
    let present =
        |map: &Map<String, Value>, field: &str| map.get(field).is_some_and(|value| !value.is_null());
    let mut carried = rich.clone();
    for field in before.keys().filter(|field| present(before, field) && !present(after, field)) {
        carried.remove(field);
    }
    for (field, after) in after.iter().filter(|(_, after)| !after.is_null()) {
        let before = before.get(field).unwrap_or(&Value::Null);
        if before == after {
            continue;
        }
        let value = match rich.get(field) {
            Some(rich) => carry(rich, before, after),
            None => after.clone(),
        };
        carried.insert(field.clone(), value);
    }
    carried
}

fn elements(rich: &[Value], before: &[Value], after: &[Value]) -> Vec<Value> {
    if before.len() == after.len() && before.iter().zip(after).all(|(before, after)| same(before, after)) {
        let all = rich.iter().zip(before).zip(after);
        return all.map(|((rich, before), after)| carry(rich, before, after)).collect();
    }
    let mut known: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (place, element) in before.iter().enumerate().rev() {
        known.entry(identity(element)).or_default().push(place);
    }
    let find = |element: &Value| known.get_mut(&identity(element)).and_then(Vec::pop);
    let places: Vec<_> = after.iter().map(find).collect();
    let found = after.iter().zip(places);
    found
        .map(|(after, place)| match place {
            Some(place) => carry(&rich[place], &before[place], after),
            None => after.clone(),
        })
        .collect()
}

/// Whether one element may have become the other, where no element came or went.
fn same(before: &Value, after: &Value) -> bool {
    before.get("name") == after.get("name")
}

/// By what an element is found again: its name, or all of it.
fn identity(element: &Value) -> String {
    match element.get("name") {
        Some(Value::String(name)) => name.clone(),
        _ => element.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn what_a_type_does_not_know_stays() {
        let rich = json!({"spec": {"size": 1, "unknown": true}, "other": [1]});
        let before = json!({"spec": {"size": 1, "gone": null}});
        let after = json!({"spec": {"size": 2, "gone": null, "new": "n"}});
        assert_eq!(
            carry(&rich, &before, &after),
            json!({"spec": {"size": 2, "unknown": true, "new": "n"}, "other": [1]})
        );
    }

    #[test]
    fn what_the_type_fills_in_by_itself_is_no_change() {
        let (rich, seen) = (json!({"spec": {}}), json!({"spec": {"replicas": 1}, "status": null}));
        assert_eq!(carry(&rich, &seen, &seen), rich);
        let after = json!({"spec": {"replicas": 1, "a": 1}});
        assert_eq!(carry(&rich, &seen, &after), json!({"spec": {"a": 1}}));
    }

    #[test]
    fn what_is_none_afterwards_is_removed() {
        let rich = json!({"a": 1, "b": 2, "c": 3});
        let before = json!({"a": 1, "b": 2});
        assert_eq!(carry(&rich, &before, &json!({"a": null})), json!({"c": 3}));
    }

    #[test]
    fn elements_keep_what_is_not_known_of_them_when_others_come_and_go() {
        let rich = json!([{"name": "a", "x": 1}, {"name": "b", "x": 2}, {"port": 3, "x": 3}]);
        let before = json!([{"name": "a"}, {"name": "b"}, {"port": 3}]);
        let after = json!([{"name": "new"}, {"name": "b", "y": 1}, {"port": 3}, {"port": 3}]);
        assert_eq!(
            carry(&rich, &before, &after),
            json!([{"name": "new"}, {"name": "b", "x": 2, "y": 1}, {"port": 3, "x": 3}, {"port": 3}])
        );
        let changed = json!([{"name": "a", "z": 0}, {"name": "b"}, {"port": 4}]);
        assert_eq!(
            carry(&rich, &before, &changed),
            json!([{"name": "a", "x": 1, "z": 0}, {"name": "b", "x": 2}, {"port": 4, "x": 3}])
        );
    }

    /// Values without `null` (which is nothing) and with names that repeat.
    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![any::<bool>().prop_map(Value::from), (0_i64..4).prop_map(Value::from)];
        leaf.prop_recursive(4, 32, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
                prop::collection::btree_map("[a-c]|name", inner, 0..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn where_nothing_is_unknown_the_outcome_is_what_was_wanted(before in value(), after in value()) {
            prop_assert_eq!(carry(&before, &before, &after), after);
        }

        #[test]
        fn a_value_that_nobody_changed_stays_as_it_is(rich in value(), seen in value()) {
            prop_assert_eq!(carry(&rich, &seen, &seen), rich);
        }
    }
}
