//! Reading objects for printing: what is not there is empty.

use serde_json::Value;

/// The value at a JSON pointer; null counts as nothing.
pub(super) fn at<'a>(object: &'a Value, pointer: &str) -> Option<&'a Value> {
    object.pointer(pointer).filter(|value| !value.is_null())
}

/// The text at a JSON pointer; empty where there is none.
pub(super) fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// The text at a JSON pointer, or what stands for an absent or empty one.
pub(super) fn text_or<'a>(object: &'a Value, pointer: &str, absent: &'a str) -> &'a str {
    match text(object, pointer) {
        "" => absent,
        text => text,
    }
}

/// The number at a JSON pointer; 0 where there is none.
pub(super) fn number(object: &Value, pointer: &str) -> i64 {
    object.pointer(pointer).and_then(Value::as_i64).unwrap_or_default()
}

/// Whether there is a true at a JSON pointer.
pub(super) fn flag(object: &Value, pointer: &str) -> bool {
    object.pointer(pointer).and_then(Value::as_bool).unwrap_or_default()
}

/// The items of the list at a JSON pointer.
pub(super) fn items<'a>(object: &'a Value, pointer: &str) -> &'a [Value] {
    object.pointer(pointer).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// The texts in the list at a JSON pointer, joined.
pub(super) fn joined(object: &Value, pointer: &str, separator: &str) -> String {
    let texts: Vec<&str> = items(object, pointer).iter().filter_map(Value::as_str).collect();
    texts.join(separator)
}

/// How many items or members are at a JSON pointer.
pub(super) fn count(object: &Value, pointer: &str) -> usize {
    match object.pointer(pointer) {
        Some(Value::Array(items)) => items.len(),
        Some(Value::Object(members)) => members.len(),
        _ => 0,
    }
}

/// A quantity or a number-or-text at a JSON pointer as text; `0` where there is none.
pub(super) fn quantity(object: &Value, pointer: &str) -> String {
    match at(object, pointer) {
        Some(Value::String(text)) => text.clone(),
        Some(number) => number.to_string(),
        None => "0".to_owned(),
    }
}

/// Whether a condition of that type is true.
pub(super) fn condition(object: &Value, kind: &str) -> bool {
    let condition = items(object, "/status/conditions").iter().find(|one| text(one, "/type") == kind);
    condition.is_some_and(|condition| text(condition, "/status") == "True")
}

/// The labels (or any map of texts) at a JSON pointer, as `a=b,c=d`.
pub(super) fn labels(object: &Value, pointer: &str) -> String {
    let members = object.pointer(pointer).and_then(Value::as_object);
    let pairs: Vec<String> = members
        .into_iter()
        .flatten()
        .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
        .collect();
    if pairs.is_empty() { "<none>".to_owned() } else { pairs.join(",") }
}

/// At most `most` texts, and how many more there are.
pub(super) fn with_more(list: &[String], most: usize, separator: &str) -> String {
    match list.len().checked_sub(most) {
        Some(more @ 1..) => format!("{} + {more} more...", list[..most].join(separator)),
        _ => list.join(separator),
    }
}

/// The cells of a row.
macro_rules! cells {
    ($($cell:expr),* $(,)?) => { vec![$(serde_json::Value::from($cell)),*] };
}
pub(super) use cells;
