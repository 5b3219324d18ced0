//! What is equal, and what comes before what.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value as Json;

use super::{Key, List, Map, Value};
use crate::declaration::{ListKind, Shape};
use crate::error::EvaluationError;
use crate::escaping::escape;

type Outcome = Result<bool, EvaluationError>;

/// Whether two values are equal: numbers by what they are, values of different kinds are not.
pub(crate) fn equal(left: &Value<'_>, right: &Value<'_>) -> Outcome {
    Ok(match (left, right) {
        (Value::Null, Value::Null) => true,
        (Value::Null, _) | (_, Value::Null) => false,
        (
            Value::Int(_) | Value::Uint(_) | Value::Double(_),
            Value::Int(_) | Value::Uint(_) | Value::Double(_),
        ) => compare(left, right).is_ok_and(|order| order == Ordering::Equal),
        (Value::Bool(left), Value::Bool(right)) => left == right,
        (Value::String(left), Value::String(right)) => **left == **right,
        (Value::Bytes(left), Value::Bytes(right)) => left == right,
        (Value::Timestamp(left), Value::Timestamp(right)) => left.cmp(right) == Ordering::Equal,
        (Value::Duration(left), Value::Duration(right)) => left == right,
        (Value::List(left), Value::List(right)) => return equal_lists(left, right),
        (Value::Map(left), Value::Map(right)) => return equal_maps(left, right),
        (Value::List(List { kind: Some(_), .. }) | Value::Map(Map::Declared(..)), _) => {
            return Err(EvaluationError::no_such_overload());
        }
        (Value::Object(left), Value::Object(right)) => {
            if left.type_name != right.type_name || left.fields.len() != right.fields.len() {
                return Ok(false);
            }
            for (name, value) in &left.fields {
                let Some((_, other)) = right.fields.iter().find(|(other, _)| other == name) else {
                    return Ok(false);
                };
                if !equal(value, other)? {
                    return Ok(false);
                }
            }
            true
        }
        (Value::Optional(None), Value::Optional(None)) => true,
        (Value::Optional(Some(left)), Value::Optional(Some(right))) => return equal(left, right),
        (Value::Type(left), Value::Type(right)) => left.name() == right.name(),
        (Value::Opaque(left), Value::Opaque(right)) => left.equals(right)?,
        (Value::Hidden(left), Value::Hidden(right)) => left == right,
        _ => false,
    })
}

fn equal_lists(left: &List<'_>, right: &List<'_>) -> Outcome {
    if left.len() != right.len() {
        return Ok(false);
    }
    match left.kind {
        Some(ListKind::Set) => equal_sets(left, right),
        Some(ListKind::Map(keys)) => equal_map_lists(left, right, keys),
        Some(ListKind::Atomic) | None => {
            for (left, right) in left.iter().zip(right.iter()) {
                if !equal(&left?, &right?)? {
                    return Ok(false);
                }
            }
            Ok(true)
        }
    }
}

/// Items of a set are scalars.
fn scalar(value: &Value<'_>) -> Option<String> {
    Some(match value {
        Value::Timestamp(time) => format!("t{time}"),
        Value::Duration(duration) => format!("d{duration}"),
        Value::Double(number) => format!("f{number}"),
        Value::Bytes(bytes) => format!("x{bytes:?}"),
        other => {
            let key = Key::of(other)?;
            let kind = match key {
                Key::Bool(_) => 'b',
                Key::Int(_) | Key::Uint(_) | Key::Double(_) => 'i',
                Key::String(_) => 's',
                Key::Null => 'n',
            };
            format!("{kind}{key}")
        }
    })
}

fn equal_sets(left: &List<'_>, right: &List<'_>) -> Outcome {
    let items: BTreeSet<Option<String>> = left.values()?.iter().map(scalar).collect();
    for item in right.iter() {
        if !items.contains(&scalar(&item?)) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// What an item of a list of maps is known by. Keys are looked up by their escaped names, as kube-apiserver does.
pub(crate) fn map_key(item: &Value<'_>, keys: &[String]) -> String {
    let json = match item {
        Value::Map(Map::Dynamic(entries) | Map::Declared(entries, _)) => Some(entries),
        _ => None,
    };
    let values = keys.iter().map(|key| {
        let name = escape(key).unwrap_or(key.as_str().into());
        json.and_then(|entries| entries.get(name.as_ref())).unwrap_or(&Json::Null)
    });
    values.map(|value| value.to_string() + ",").collect()
}

fn equal_map_lists(left: &List<'_>, right: &List<'_>, keys: &[String]) -> Outcome {
    let mut items = BTreeMap::new();
    for item in left.iter() {
        let item = item?;
        items.insert(map_key(&item, keys), item);
    }
    for item in right.iter() {
        let item = item?;
        let Some(other) = items.get(&map_key(&item, keys)) else { return Ok(false) };
        if !equal(other, &item)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn equal_maps(left: &Map<'_>, right: &Map<'_>) -> Outcome {
    if left.len() != right.len() {
        return Ok(false);
    }
    if let Map::Declared(entries, declaration) = left
        && let Shape::Object(object) = declaration.shape()
    {
        let unknown = entries.iter().filter(|(name, _)| !object.fields.contains_key(*name));
        for (name, json) in unknown {
            let (Map::Declared(others, _) | Map::Dynamic(others)) = right else {
                return Err(EvaluationError::no_such_overload());
            };
            if others.get(name).is_some_and(|other| other != json) {
                return Ok(false);
            }
        }
    }
    for key in left.keys() {
        let same = match (left.get(&key)?, right.get(&key)?) {
            (Some(left), Some(right)) => equal(&left, &right)?,
            (None, None) => true,
            _ => false,
        };
        if !same {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Which of two values of an ordered kind comes first.
pub(crate) fn compare(left: &Value<'_>, right: &Value<'_>) -> Result<Ordering, EvaluationError> {
    Ok(match (left, right) {
        (Value::Int(left), Value::Int(right)) => left.cmp(right),
        (Value::Uint(left), Value::Uint(right)) => left.cmp(right),
        (Value::Int(left), Value::Uint(right)) => i128::from(*left).cmp(&i128::from(*right)),
        (Value::Uint(left), Value::Int(right)) => i128::from(*left).cmp(&i128::from(*right)),
        (Value::Double(left), Value::Double(right)) => left.partial_cmp(right).ok_or_else(not_a_number)?,
        (Value::Double(left), Value::Int(right)) => compare_double(*left, i128::from(*right))?,
        (Value::Double(left), Value::Uint(right)) => compare_double(*left, i128::from(*right))?,
        (Value::Int(left), Value::Double(right)) => compare_double(*right, i128::from(*left))?.reverse(),
        (Value::Uint(left), Value::Double(right)) => compare_double(*right, i128::from(*left))?.reverse(),
        (Value::Bool(left), Value::Bool(right)) => left.cmp(right),
        (Value::String(left), Value::String(right)) => (**left).cmp(&**right),
        (Value::Bytes(left), Value::Bytes(right)) => left.cmp(right),
        (Value::Timestamp(left), Value::Timestamp(right)) => left.cmp(right),
        (Value::Duration(left), Value::Duration(right)) => left.cmp(right),
        _ => return Err(EvaluationError::no_such_overload()),
    })
}

fn not_a_number() -> EvaluationError {
    EvaluationError::new("NaN values cannot be ordered")
}

/// A `double` against a whole number: one beyond all whole numbers by its size, another as `double`s compare.
fn compare_double(left: f64, right: i128) -> Result<Ordering, EvaluationError> {
    let bounds = if right < 0 || i64::try_from(right).is_ok() {
        (i64::MIN as f64, i64::MAX as f64)
    } else {
        (0.0, u64::MAX as f64)
    };
    if left < bounds.0 {
        return Ok(Ordering::Less);
    }
    if left > bounds.1 {
        return Ok(Ordering::Greater);
    }
    left.partial_cmp(&(right as f64)).ok_or_else(not_a_number)
}

/// `left + right`, where the left list says how items belong together.
pub(crate) fn concatenate<'a>(left: &List<'a>, right: &List<'a>) -> Result<List<'a>, EvaluationError> {
    let mut values = left.values()?;
    match left.kind {
        Some(ListKind::Set) => {
            let mut known: BTreeSet<Option<String>> = values.iter().map(scalar).collect();
            for item in right.iter() {
                let item = item?;
                if known.insert(scalar(&item)) {
                    values.push(item);
                }
            }
        }
        Some(ListKind::Map(keys)) => {
            let positions: BTreeMap<String, usize> =
                values.iter().enumerate().map(|(index, item)| (map_key(item, keys), index)).collect();
            for item in right.iter() {
                let item = item?;
                match positions.get(&map_key(&item, keys)) {
                    Some(position) => values[*position] = item,
                    None => values.push(item),
                }
            }
        }
        Some(ListKind::Atomic) | None => {
            for item in right.iter() {
                values.push(item?);
            }
        }
    }
    Ok(List { kind: left.kind, ..List::new(values) })
}

/// An order of values of one kind in which everything has a place, as sorting needs it.
pub(crate) fn total_order(left: &Value<'_>, right: &Value<'_>) -> Ordering {
    match (left, right) {
        (Value::Double(left), Value::Double(right)) => left.total_cmp(right),
        _ => compare(left, right).unwrap_or(Ordering::Equal),
    }
}
