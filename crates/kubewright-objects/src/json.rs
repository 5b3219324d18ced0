//! The one form of text in which objects are read, and the one in which they are written.

use std::{borrow::Borrow, collections::BTreeMap};

use serde::{
    Serialize,
    de::{DeserializeOwned, Error as _},
};
use serde_json::{Error, Result, Value, value::RawValue};

/// Reads an object, or a part of one, from its JSON.
///
/// # Errors
/// The text is no JSON, or not of a `K`.
pub fn from_json<K: DeserializeOwned>(text: &str) -> Result<K> {
    serde_json::from_str(text)
}

/// Writes an object, or a part of one, as JSON.
///
/// # Errors
/// What the type's own `Serialize` refuses.
pub fn to_json<K: Serialize + ?Sized>(object: &K) -> Result<Vec<u8>> {
    serde_json::to_vec(object)
}

/// Reads an object, or a part of one, from a value: what `serde_json::from_value` does, by way of its JSON.
///
/// # Errors
/// The value is not one of a `K`.
pub fn from_value<K: DeserializeOwned>(value: impl Borrow<Value>) -> Result<K> {
    by_text(value.borrow())
}

/// An object, or a part of one, as a value: what `serde_json::to_value` does, by way of its JSON.
///
/// # Errors
/// What the type's own `Serialize` refuses.
pub fn to_value<K: Serialize + ?Sized>(object: &K) -> Result<Value> {
    serde_json::from_slice(&to_json(object)?)
}

/// An object, or a part of one, in another type.
///
/// # Errors
/// What the one type cannot write, or the other cannot read.
pub fn convert<T: DeserializeOwned>(object: &impl Serialize) -> Result<T> {
    let text = String::from_utf8(to_json(object)?).map_err(Error::custom)?;
    from_json(&text).map_err(|error| without_place(&error))
}

/// Some fields of an object as a value that has no others: those that are not wanted are not decoded.
///
/// # Errors
/// As [`to_value`].
pub fn fields_of<K: Serialize>(object: &K, is_wanted: impl Fn(&str) -> bool) -> Result<Value> {
    let text = to_json(object)?;
    let wanted = split_fields(&text)?.into_iter().filter(|(field, _)| is_wanted(field));
    wanted.map(|(field, raw)| Ok((field, serde_json::from_str::<Value>(raw.get())?))).collect()
}

/// The fields of an object's JSON, each as its own JSON: only those that are looked at have to be decoded.
///
/// # Errors
/// The text is no JSON of an object.
pub fn split_fields(text: &[u8]) -> Result<BTreeMap<String, &RawValue>> {
    serde_json::from_slice(text)
}

pub(crate) fn by_text<K: DeserializeOwned>(value: &Value) -> Result<K> {
    from_json(&serde_json::to_string(value)?).map_err(|error| without_place(&error))
}

/// The error without the line and column where it was found: a value has none.
fn without_place(error: &Error) -> Error {
    let text = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    Error::custom(text.strip_suffix(&place).unwrap_or(&text))
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::{ConfigMap, Pod};
    use serde_json::json;

    use super::*;

    #[test]
    fn a_value_is_read_as_serde_json_does() {
        let value = json!({"metadata": {"name": "a"}, "data": {"a": "1"}});
        let map: ConfigMap = from_value(&value).expect("a ConfigMap");
        assert_eq!(map.data, Some(BTreeMap::from([("a".to_owned(), "1".to_owned())])));
        assert_eq!(to_value(&map).expect("JSON")["data"], value["data"]);
    }

    #[test]
    fn what_is_wrong_with_a_value_is_told_without_a_place_in_a_text() {
        let error = from_value::<Pod>(json!({"metadata": {"name": 1}})).expect_err("a name is a string");
        assert_eq!(error.to_string(), "invalid type: integer `1`, expected a string");
    }
}
