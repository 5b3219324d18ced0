//! A place in an object, with its path: what a check looks at, and what its errors name.

use std::cell::Cell;
use std::sync::LazyLock;

use serde_json::{Map, Value};

use crate::cost;

static ABSENT: Value = Value::Null;
static NO_ENTRIES: LazyLock<Map<String, Value>> = LazyLock::new(Map::new);

thread_local! {
    /// Whether places know their paths: they need not, as long as nothing is wrong.
    static PATHS: Cell<bool> = const { Cell::new(true) };
}

fn paths_are_told() -> bool {
    PATHS.with(Cell::get)
}

/// Puts back what was, also when a check panics.
struct Quiet(bool);

impl Quiet {
    fn new() -> Self {
        Self(PATHS.replace(false))
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        PATHS.set(self.0);
    }
}

/// What a check finds. It is made without paths first, which most objects pass, and which allocates no texts; only where
/// something is wrong it is made again to tell where.
pub fn checked<E>(check: impl Fn() -> Vec<E>) -> Vec<E> {
    let quiet = Quiet::new();
    let passed = check().is_empty();
    drop(quiet);
    if passed { Vec::new() } else { check() }
}

/// A value inside an object and the path that leads to it. What is not there is `null`.
#[derive(Clone, Debug)]
pub struct At<'a> {
    /// The value; `null` when there is none.
    pub value: &'a Value,
    /// The path as errors show it, such as `spec.ports[0].name`.
    pub path: String,
}

impl<'a> At<'a> {
    /// The object itself.
    #[inline]
    pub fn root(value: &'a Value) -> Self {
        Self { value, path: String::new() }
    }

    /// A value that errors call `path`, wherever it comes from.
    pub fn named(path: impl Into<String>, value: &'a Value) -> Self {
        Self { value, path: path.into() }
    }

    /// The field of that name.
    #[inline]
    pub fn get(&self, field: &str) -> At<'a> {
        cost::step();
        let value = self.value.get(field).unwrap_or(&ABSENT);
        if !paths_are_told() {
            return At { value, path: String::new() };
        }
        let path = if self.path.is_empty() { field.to_owned() } else { format!("{}.{field}", self.path) };
        At { value, path }
    }

    /// The fields one below the other, such as `["spec", "template"]`.
    #[inline]
    pub fn dig(&self, fields: &[&str]) -> At<'a> {
        fields.iter().fold(self.clone(), |at, field| at.get(field))
    }

    /// The entry of a map: its path ends in `[key]`.
    pub fn entry(&self, key: &str) -> At<'a> {
        let path = if paths_are_told() { format!("{}[{key}]", self.path) } else { String::new() };
        At { value: self.value.get(key).unwrap_or(&ABSENT), path }
    }

    /// The items of a list; none when it is no list.
    pub fn items(&self) -> impl Iterator<Item = At<'a>> + use<'a> {
        let path = self.path.clone();
        let items: &'a [Value] = self.value.as_array().map_or(&[], Vec::as_slice);
        let told = paths_are_told();
        items.iter().enumerate().map(move |(index, value)| At {
            value,
            path: if told { format!("{path}[{index}]") } else { String::new() },
        })
    }

    /// The entries of a map, by key; none when it is no map.
    pub fn entries(&self) -> impl Iterator<Item = (&'a str, At<'a>)> + use<'a> {
        let path = self.path.clone();
        let entries: &'a Map<String, Value> = self.value.as_object().unwrap_or(&NO_ENTRIES);
        let told = paths_are_told();
        entries.iter().map(move |(key, value)| {
            let path = if told { format!("{path}[{key}]") } else { String::new() };
            (key.as_str(), At { value, path })
        })
    }

    /// Its text; empty when it is none.
    #[inline]
    pub fn text(&self) -> &'a str {
        self.value.as_str().unwrap_or_default()
    }

    /// Its whole number, when it is one.
    #[inline]
    pub fn number(&self) -> Option<i64> {
        self.value.as_i64()
    }

    /// Whether it is `true`.
    #[inline]
    pub fn is_true(&self) -> bool {
        self.value == &Value::Bool(true)
    }

    /// Whether there is a value.
    #[inline]
    pub fn is_set(&self) -> bool {
        !self.value.is_null()
    }

    /// Whether there is nothing in it: no value, an empty text, list or map.
    #[inline]
    pub fn is_empty(&self) -> bool {
        match self.value {
            Value::Null => true,
            Value::String(text) => text.is_empty(),
            Value::Array(items) => items.is_empty(),
            Value::Object(fields) => fields.is_empty(),
            Value::Bool(_) | Value::Number(_) => false,
        }
    }

    /// How many items or entries it has.
    #[inline]
    pub fn len(&self) -> usize {
        match self.value {
            Value::Array(items) => items.len(),
            Value::Object(fields) => fields.len(),
            _ => 0,
        }
    }

    /// Whether it equals another as Kubernetes compares (`apimachinery/pkg/api/equality.Semantic`): no value and an
    /// empty list are the same.
    pub fn same(&self, other: &At<'_>) -> bool {
        same(self.value, other.value)
    }

    /// As [`At::same`], where texts and maps may be empty or not there at all.
    pub fn same_or_empty(&self, other: &At<'_>) -> bool {
        (self.is_empty() && other.is_empty()) || self.same(other)
    }
}

/// See [`At::same`]. Each value is looked at once: the second look at a map is for what only it has.
pub fn same(one: &Value, other: &Value) -> bool {
    cost::step();
    match (one, other) {
        (Value::Null, other) | (other, Value::Null) => {
            other.is_null() || other.as_array().is_some_and(Vec::is_empty)
        }
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => same_members(one, other, |_| true),
        (one, other) => one == other,
    }
}

/// The value as all have it that are [`same`]: what is nothing is not there.
pub fn canonical(value: &Value) -> Value {
    match value {
        Value::Array(items) if items.is_empty() => Value::Null,
        Value::Array(items) => Value::Array(items.iter().map(canonical).collect()),
        Value::Object(members) => {
            let kept = members.iter().filter(|(key, value)| !(is_map(key) && has_no_entry(value)));
            let members = kept.map(|(key, value)| (key.clone(), canonical(value)));
            Value::Object(members.filter(|(_, value)| !value.is_null()).collect())
        }
        scalar => scalar.clone(),
    }
}

/// Whether members of that name are maps that stay until they are written, although they have no entries: these are as good as none.
/// (Runtime classes, slices and claims have structs of two of these names; nothing compares the one so, and the other cannot be empty.)
fn is_map(key: &str) -> bool {
    matches!(key, "labels" | "annotations" | "nodeSelector" | "overhead")
}

fn has_no_entry(value: &Value) -> bool {
    value.is_null() || value.as_object().is_some_and(Map::is_empty)
}

/// Whether the members that count are the same in both, as [`At::same`] has it.
pub fn same_members(
    one: &Map<String, Value>,
    other: &Map<String, Value>,
    counts: impl Fn(&str) -> bool,
) -> bool {
    let mut here = one.iter().filter(|(key, _)| counts(key));
    let mut there_alone = other.iter().filter(|(key, _)| counts(key) && !one.contains_key(*key));
    let same = |key: &str, one: &Value, other: &Value| {
        same(one, other) || (is_map(key) && has_no_entry(one) && has_no_entry(other))
    };
    here.all(|(key, value)| same(key, value, other.get(key).unwrap_or(&ABSENT)))
        && there_alone.all(|(key, value)| same(key, &ABSENT, value))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    /// The definition, with no thought of what it costs: all of either map is in the other.
    fn defined(one: &Value, other: &Value) -> bool {
        let is_nothing = |value: &Value| value.is_null() || *value == json!([]);
        match (one, other) {
            (Value::Null, other) | (other, Value::Null) => is_nothing(other),
            (Value::Array(one), Value::Array(other)) => {
                one.len() == other.len() && one.iter().zip(other).all(|(one, other)| defined(one, other))
            }
            (Value::Object(one), Value::Object(other)) => {
                let within = |inner: &Map<String, Value>, outer: &Map<String, Value>| {
                    inner.iter().all(|(key, value)| defined(value, outer.get(key).unwrap_or(&ABSENT)))
                };
                within(one, other) && within(other, one)
            }
            (one, other) => one == other,
        }
    }

    /// Few names and values, so that two of them are often nearly the same.
    fn small() -> impl Strategy<Value = Value> {
        let leaf =
            prop_oneof![Just(Value::Null), Just(json!(1)), Just(json!("")), Just(json!([])), Just(json!({}))];
        leaf.prop_recursive(3, 12, 3, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..3).prop_map(Value::Array),
                prop::collection::btree_map("[ab]", inner, 0..3)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    #[test]
    fn labels_without_entries_are_as_good_as_none_and_other_objects_are_not() {
        let (with, without) = (json!({"labels": {}, "a": 1}), json!({"a": 1}));
        assert!(same(&with, &without) && canonical(&with) == canonical(&without));
        assert!(!same(&json!({"emptyDir": {}}), &json!({})));
    }

    proptest! {
        #[test]
        fn values_are_the_same_by_definition(one in small(), other in small()) {
            prop_assert_eq!(same(&one, &other), defined(&one, &other));
            prop_assert_eq!(same(&other, &one), same(&one, &other));
            prop_assert!(same(&one, &one));
            prop_assert_eq!(canonical(&one) == canonical(&other), same(&one, &other));
        }
    }
}
