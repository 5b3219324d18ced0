//! A place in an object, with its path: what a check looks at, and what its errors name.

use std::cell::Cell;
use std::sync::LazyLock;

use serde_json::{Map, Value};

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
pub(crate) fn checked<E>(check: impl Fn() -> Vec<E>) -> Vec<E> {
    let quiet = Quiet::new();
    let passed = check().is_empty();
    drop(quiet);
    if passed { Vec::new() } else { check() }
}

/// A value inside an object and the path that leads to it. What is not there is `null`.
#[derive(Clone, Debug)]
pub(crate) struct At<'a> {
    /// The value; `null` when there is none.
    pub value: &'a Value,
    /// The path as errors show it, such as `spec.ports[0].name`.
    pub path: String,
}

impl<'a> At<'a> {
    /// The object itself.
    pub(crate) fn root(value: &'a Value) -> Self {
        Self { value, path: String::new() }
    }

    /// A value that errors call `path`, wherever it comes from.
    pub(crate) fn named(path: impl Into<String>, value: &'a Value) -> Self {
        Self { value, path: path.into() }
    }

    /// The field of that name.
    pub(crate) fn get(&self, field: &str) -> At<'a> {
        let value = self.value.get(field).unwrap_or(&ABSENT);
        if !paths_are_told() {
            return At { value, path: String::new() };
        }
        let path = if self.path.is_empty() { field.to_owned() } else { format!("{}.{field}", self.path) };
        At { value, path }
    }

    /// The fields one below the other, such as `["spec", "template"]`.
    pub(crate) fn dig(&self, fields: &[&str]) -> At<'a> {
        fields.iter().fold(self.clone(), |at, field| at.get(field))
    }

    /// The entry of a map: its path ends in `[key]`.
    pub(crate) fn entry(&self, key: &str) -> At<'a> {
        let path = if paths_are_told() { format!("{}[{key}]", self.path) } else { String::new() };
        At { value: self.value.get(key).unwrap_or(&ABSENT), path }
    }

    /// The items of a list; none when it is no list.
    pub(crate) fn items(&self) -> impl Iterator<Item = At<'a>> + use<'a> {
        let path = self.path.clone();
        let items: &'a [Value] = self.value.as_array().map_or(&[], Vec::as_slice);
        let told = paths_are_told();
        items.iter().enumerate().map(move |(index, value)| At {
            value,
            path: if told { format!("{path}[{index}]") } else { String::new() },
        })
    }

    /// The entries of a map, by key; none when it is no map.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (&'a str, At<'a>)> + use<'a> {
        let path = self.path.clone();
        let entries: &'a Map<String, Value> = self.value.as_object().unwrap_or(&NO_ENTRIES);
        let told = paths_are_told();
        entries.iter().map(move |(key, value)| {
            let path = if told { format!("{path}[{key}]") } else { String::new() };
            (key.as_str(), At { value, path })
        })
    }

    /// Its text; empty when it is none.
    pub(crate) fn text(&self) -> &'a str {
        self.value.as_str().unwrap_or_default()
    }

    /// Its whole number, when it is one.
    pub(crate) fn number(&self) -> Option<i64> {
        self.value.as_i64()
    }

    /// Whether it is `true`.
    pub(crate) fn is_true(&self) -> bool {
        self.value == &Value::Bool(true)
    }

    /// Whether there is a value.
    pub(crate) fn is_set(&self) -> bool {
        !self.value.is_null()
    }

    /// Whether there is nothing in it: no value, an empty text, list or map.
    pub(crate) fn is_empty(&self) -> bool {
        match self.value {
            Value::Null => true,
            Value::String(text) => text.is_empty(),
            Value::Array(items) => items.is_empty(),
            Value::Object(fields) => fields.is_empty(),
            Value::Bool(_) | Value::Number(_) => false,
        }
    }

    /// How many items or entries it has.
    pub(crate) fn len(&self) -> usize {
        match self.value {
            Value::Array(items) => items.len(),
            Value::Object(fields) => fields.len(),
            _ => 0,
        }
    }

    /// Whether it equals another as Kubernetes compares (`apimachinery/pkg/api/equality.Semantic`): no value and an
    /// empty list are the same.
    pub(crate) fn same(&self, other: &At<'_>) -> bool {
        same(self.value, other.value)
    }

    /// As [`At::same`], where texts and maps may be empty or not there at all.
    pub(crate) fn same_or_empty(&self, other: &At<'_>) -> bool {
        (self.is_empty() && other.is_empty()) || self.same(other)
    }
}

/// See [`At::same`].
pub(crate) fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Null, other) | (other, Value::Null) => {
            other.is_null() || other.as_array().is_some_and(Vec::is_empty)
        }
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            let within = |inner: &Map<String, Value>, outer: &Map<String, Value>| {
                inner.iter().all(|(key, value)| same(value, outer.get(key).unwrap_or(&ABSENT)))
            };
            within(one, other) && within(other, one)
        }
        (one, other) => one == other,
    }
}
