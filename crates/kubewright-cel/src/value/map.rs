//! Maps and objects: JSON objects as they are, or what an expression made.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde_json::{Map as JsonMap, Value as Json};

use super::{Text, Value, json, weight};
use crate::declaration::{DeclType, Shape};
use crate::error::EvaluationError;
use crate::escaping::{escape, unescape};

/// A map, or an object of a schema.
#[derive(Clone, Debug)]
pub enum Map<'a> {
    /// JSON as it is.
    Dynamic(&'a JsonMap<String, Json>),
    /// JSON of which a schema says what it is.
    Declared(&'a JsonMap<String, Json>, &'a DeclType),
    /// Made by an expression; and how much there is in it.
    Values(Arc<BTreeMap<Key<'a>, Value<'a>>>, u64),
    /// The same, where a key that is not there stands for an empty map: the domains of a device's attributes.
    OrEmpty(Arc<BTreeMap<Key<'a>, Value<'a>>>, u64),
}

/// A key of a map.
#[derive(Clone, Debug)]
pub enum Key<'a> {
    /// A boolean.
    Bool(bool),
    /// A signed integer.
    Int(i64),
    /// An unsigned integer.
    Uint(u64),
    /// Text.
    String(Text<'a>),
    /// A number that is not whole.
    Double(f64),
    /// `null`.
    Null,
}

impl Key<'_> {
    fn rank(&self) -> u8 {
        match self {
            Key::Bool(_) => 0,
            Key::Int(_) | Key::Uint(_) | Key::Double(_) => 1,
            Key::String(_) => 2,
            Key::Null => 3,
        }
    }

    /// What is left of the number behind the point.
    fn fraction(&self) -> f64 {
        match self {
            Key::Double(number) => number.fract(),
            _ => 0.0,
        }
    }

    /// The number that it is. `1` and `1u` are the same key.
    fn number(&self) -> i128 {
        match self {
            Key::Bool(truth) => i128::from(*truth),
            Key::Int(number) => i128::from(*number),
            Key::Uint(number) => i128::from(*number),
            Key::Double(number) => *number as i128,
            Key::String(_) | Key::Null => 0,
        }
    }
}

impl PartialEq for Key<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Key<'_> {}

impl PartialOrd for Key<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Key<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Key::String(left), Key::String(right)) => (**left).cmp(&**right),
            _ => {
                let order = self.rank().cmp(&other.rank()).then_with(|| self.number().cmp(&other.number()));
                order.then_with(|| self.fraction().total_cmp(&other.fraction()))
            }
        }
    }
}

impl fmt::Display for Key<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Key::Bool(truth) => truth.fmt(f),
            Key::Int(number) => number.fmt(f),
            Key::Uint(number) => number.fmt(f),
            Key::String(text) => f.write_str(text),
            Key::Double(number) => number.fmt(f),
            Key::Null => f.write_str("null"),
        }
    }
}

impl<'a> Key<'a> {
    /// The key that a value is, where it can be one; a whole `double` is the number that it equals.
    pub(crate) fn of(value: &Value<'a>) -> Option<Self> {
        Some(match value {
            Value::Bool(truth) => Key::Bool(*truth),
            Value::Int(number) => Key::Int(*number),
            Value::Uint(number) => Key::Uint(*number),
            Value::String(text) => Key::String(text.clone()),
            Value::Double(number) => Key::Double(*number),
            Value::Null => Key::Null,
            _ => return None,
        })
    }

    pub(crate) fn to_value(&self) -> Value<'a> {
        match self {
            Key::Bool(truth) => Value::Bool(*truth),
            Key::Int(number) => Value::Int(*number),
            Key::Uint(number) => Value::Uint(*number),
            Key::String(text) => Value::String(text.clone()),
            Key::Double(number) => Value::Double(*number),
            Key::Null => Value::Null,
        }
    }
}

impl<'a> Map<'a> {
    /// A map of values.
    #[must_use]
    pub fn new(entries: BTreeMap<Key<'a>, Value<'a>>) -> Self {
        let weight = weight::sum(entries.values());
        Map::Values(Arc::new(entries), weight)
    }

    /// The same for a map in which a key that is not there stands for an empty map.
    #[must_use]
    pub(crate) fn or_empty(entries: BTreeMap<Key<'a>, Value<'a>>) -> Self {
        let weight = weight::sum(entries.values());
        Map::OrEmpty(Arc::new(entries), weight)
    }

    /// How many entries it has.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Map::Dynamic(entries) | Map::Declared(entries, _) => entries.len(),
            Map::Values(entries, _) | Map::OrEmpty(entries, _) => entries.len(),
        }
    }

    /// Whether it has no entries.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The value of a field, or of a key that is text. Fields of objects are named as expressions name them (escaped).
    ///
    /// # Errors
    ///
    /// If its JSON is not what it was declared to be.
    pub fn field(&self, name: &str) -> Result<Option<Value<'a>>, EvaluationError> {
        match self {
            Map::Dynamic(entries) => Ok(entries.get(name).map(json::dynamic)),
            Map::Declared(entries, declaration) => declared_field(entries, declaration, name),
            Map::Values(entries, _) => Ok(entries.get(&Key::String(Text::Borrowed(name))).cloned()),
            Map::OrEmpty(entries, _) => {
                let found = entries.get(&Key::String(Text::Borrowed(name))).cloned();
                Ok(Some(found.unwrap_or_else(empty)))
            }
        }
    }

    /// The value of a key.
    ///
    /// # Errors
    ///
    /// If its JSON is not what it was declared to be, or the key is of a type that the map cannot have.
    pub fn get(&self, key: &Value<'_>) -> Result<Option<Value<'a>>, EvaluationError> {
        match (self, key) {
            (_, Value::String(name)) => self.field(name),
            (Map::Values(entries, _), key) => match Key::of(key) {
                Some(key) => Ok(entries.get(&key).cloned()),
                None => Ok(None),
            },
            (Map::OrEmpty(..), _) => Ok(Some(empty())),
            (Map::Declared(..), _) => Err(EvaluationError::no_such_overload()),
            (Map::Dynamic(_), _) => Ok(None),
        }
    }

    /// Whether it has a key, whatever stands for those that it does not have.
    ///
    /// # Errors
    ///
    /// As [`Map::get`].
    pub fn has(&self, key: &Value<'_>) -> Result<bool, EvaluationError> {
        match self {
            Map::OrEmpty(entries, _) => Ok(Key::of(key).is_some_and(|key| entries.contains_key(&key))),
            _ => self.get(key).map(|found| found.is_some()),
        }
    }

    /// The keys, sorted. Of an object of a schema, those that the schema has.
    #[must_use]
    pub fn keys(&self) -> Vec<Value<'a>> {
        match self {
            Map::Dynamic(entries) => entries.keys().map(|key| Value::String(key.as_str().into())).collect(),
            Map::Declared(entries, declaration) => match declaration.shape() {
                Shape::Object(object) => {
                    let known = entries.keys().filter(|key| object.fields.contains_key(key.as_str()));
                    known.map(|key| Value::String(escaped_name(key))).collect()
                }
                _ => entries.keys().map(|key| Value::String(key.as_str().into())).collect(),
            },
            Map::Values(entries, _) | Map::OrEmpty(entries, _) => entries.keys().map(Key::to_value).collect(),
        }
    }
}

fn empty<'a>() -> Value<'a> {
    Value::Map(Map::new(BTreeMap::new()))
}

fn escaped_name(name: &str) -> Text<'_> {
    match escape(name) {
        Some(std::borrow::Cow::Owned(escaped)) => Text::from(escaped),
        _ => Text::Borrowed(name),
    }
}

/// The field of an object or entry of a map that a schema describes. A field that is `null` counts as absent.
fn declared_field<'a>(
    entries: &'a JsonMap<String, Json>,
    declaration: &'a DeclType,
    name: &str,
) -> Result<Option<Value<'a>>, EvaluationError> {
    match declaration.shape() {
        Shape::Object(object) => {
            let Some(key) = unescape(name) else { return Ok(None) };
            let Some(json) = entries.get(key.as_ref()).filter(|json| !json.is_null()) else {
                return Ok(None);
            };
            let Some(field) = object.fields.get(key.as_ref()) else { return Ok(None) };
            json::declared(json, field.declaration()).map(Some)
        }
        Shape::Map(values) => entries.get(name).map(|json| json::declared(json, values)).transpose(),
        _ => Ok(None),
    }
}
