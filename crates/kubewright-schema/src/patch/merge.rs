//! RFC 7386 merge patches, as `evanphx/json-patch` v4 applies them: its one difference is that nulls inside the
//! objects of a list are dropped too, unless the list takes the place of an object.

use kubewright_meta::cost;
use serde_json::{Map, Value};

/// Merges the members of a patch into `target`, which becomes an object if it is none.
pub fn apply(target: &mut Value, patch: &Map<String, Value>) {
    match target {
        Value::Object(target) => merge(target, patch),
        _ => *target = without_nulls(&Value::Object(patch.clone())),
    }
}

fn merge(target: &mut Map<String, Value>, patch: &Map<String, Value>) {
    for (key, value) in patch {
        cost::step();
        if value.is_null() {
            target.remove(key);
            continue;
        }
        match (target.get_mut(key), value) {
            (Some(Value::Object(old)), Value::Object(new)) => merge(old, new),
            (Some(old @ Value::Object(_)), _) => *old = value.clone(),
            _ => {
                target.insert(key.clone(), without_nulls(value));
            }
        }
    }
}

/// The value without members that are null; null items of lists stay.
pub(super) fn without_nulls(value: &Value) -> Value {
    cost::step();
    match value {
        Value::Object(members) => {
            let kept = members.iter().filter(|(_, member)| !member.is_null());
            Value::Object(kept.map(|(key, member)| (key.clone(), without_nulls(member))).collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(without_nulls).collect()),
        scalar => scalar.clone(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn merged(target: Value, patch: Value) -> Value {
        let mut target = target;
        let Value::Object(patch) = patch else { panic!("a patch is an object") };
        apply(&mut target, &patch);
        target
    }

    #[test]
    fn members_are_set_merged_and_removed() {
        let target = json!({"a": "b", "c": {"d": "e", "f": "g"}});
        assert_eq!(merged(target, json!({"a": "z", "c": {"f": null}})), json!({"a": "z", "c": {"d": "e"}}));
        assert_eq!(merged(json!({"a": 1}), json!({"nope": null})), json!({"a": 1}));
        assert_eq!(merged(json!({"a": 1}), json!({})), json!({"a": 1}));
    }

    #[test]
    fn lists_are_replaced_whole() {
        assert_eq!(merged(json!({"a": [1, 2]}), json!({"a": [3]})), json!({"a": [3]}));
        assert_eq!(merged(json!({"a": {"b": 1}}), json!({"a": [3]})), json!({"a": [3]}));
        assert_eq!(merged(json!({"a": [3]}), json!({"a": {"b": null, "c": 1}})), json!({"a": {"c": 1}}));
    }

    #[test]
    fn nulls_in_new_lists_are_dropped_from_objects_only() {
        assert_eq!(merged(json!({}), json!({"a": [null, {"b": null}]})), json!({"a": [null, {}]}));
        assert_eq!(merged(json!({"a": {}}), json!({"a": [{"b": null}]})), json!({"a": [{"b": null}]}));
    }

    /// The smallest merge patch that makes `new` of `old`.
    fn difference(old: &Map<String, Value>, new: &Map<String, Value>) -> Map<String, Value> {
        let mut patch = Map::new();
        for key in old.keys().filter(|key| !new.contains_key(*key)) {
            patch.insert(key.clone(), Value::Null);
        }
        for (key, value) in new {
            match (old.get(key), value) {
                (Some(before), _) if before == value => {}
                (Some(Value::Object(before)), Value::Object(after)) => {
                    patch.insert(key.clone(), Value::Object(difference(before, after)));
                }
                _ => {
                    patch.insert(key.clone(), value.clone());
                }
            }
        }
        patch
    }

    /// Documents without null, over few keys so that two of them share some.
    fn document() -> impl Strategy<Value = Map<String, Value>> {
        let leaf = prop_oneof![any::<bool>().prop_map(Value::from), any::<u8>().prop_map(Value::from)];
        let value = leaf.prop_recursive(4, 32, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
                prop::collection::btree_map("[a-d]", inner, 0..4)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        });
        prop::collection::btree_map("[a-d]", value, 0..5).prop_map(|members| members.into_iter().collect())
    }

    proptest! {
        #[test]
        fn applying_the_difference_gives_the_new_document(old in document(), new in document()) {
            let mut target = Value::Object(old.clone());
            apply(&mut target, &difference(&old, &new));
            prop_assert_eq!(target, Value::Object(new));
        }

        #[test]
        fn applying_twice_is_applying_once(old in document(), patch in document()) {
            let mut once = Value::Object(old);
            apply(&mut once, &patch);
            let mut twice = once.clone();
            apply(&mut twice, &patch);
            prop_assert_eq!(twice, once);
        }
    }
}
