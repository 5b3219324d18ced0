//! How much there is in a value, with what is in it more than once counted as often.
//!
//! Values share what they are made of, so that `[x, x]` of `[x, x]` and so on is small, and yet endless for whoever walks
//! through it: to compare it, to print it, to make JSON of it. cel-go has no cost for that. Here there is a bound.

use serde_json::Value as Json;

use super::{Items, List, Map, Value};

/// The most that there may be in a value that an expression makes.
pub(crate) const MAX: u64 = 2_000_000;

/// JSON is counted so far; it does not grow.
const MAX_JSON: u64 = 5_000;

/// How much there is in a value.
pub(crate) fn weight(value: &Value<'_>) -> u64 {
    match value {
        Value::List(List { items: Items::Values(_, weight), .. }) => *weight,
        Value::List(List { items: Items::Json(items, _), .. }) => 1 + of_json(items.iter(), MAX_JSON),
        Value::Map(Map::Values(_, weight) | Map::OrEmpty(_, weight)) => *weight,
        Value::Map(Map::Dynamic(entries) | Map::Declared(entries, _)) => {
            1 + of_json(entries.values(), MAX_JSON)
        }
        Value::Object(object) => object.weight,
        Value::Optional(Some(inner)) => weight(inner),
        _ => 1,
    }
}

/// How much there is in a value that is made of others.
pub(crate) fn sum<'v, 'a: 'v>(values: impl IntoIterator<Item = &'v Value<'a>>) -> u64 {
    values.into_iter().fold(1, |sum: u64, value| sum.saturating_add(weight(value)))
}

fn of_json<'j>(values: impl Iterator<Item = &'j Json>, most: u64) -> u64 {
    let mut count = 0;
    for value in values {
        if count >= most {
            break;
        }
        count += 1 + match value {
            Json::Array(items) => of_json(items.iter(), most - count),
            Json::Object(entries) => of_json(entries.values(), most - count),
            _ => 0,
        };
    }
    count
}
