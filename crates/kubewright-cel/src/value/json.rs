//! From JSON to values, and back.

use std::borrow::Cow;
use std::sync::Arc;

use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig, STANDARD};
use base64::{Engine, alphabet};
use serde_json::{Map as JsonMap, Number, Value as Json};

use super::list::Items;
use super::{Duration, Key, List, Map, Text, Timestamp, Value};
use crate::declaration::{DeclType, Shape};
use crate::error::EvaluationError;

/// JSON by what it is.
pub(super) fn dynamic(json: &Json) -> Value<'_> {
    match json {
        Json::Null => Value::Null,
        Json::Bool(truth) => Value::Bool(*truth),
        Json::Number(number) => dynamic_number(number),
        Json::String(text) => Value::String(Text::Borrowed(text)),
        Json::Array(items) => Value::List(List { items: Items::Json(items, None), kind: None }),
        Json::Object(entries) => Value::Map(Map::Dynamic(entries)),
    }
}

fn dynamic_number(number: &Number) -> Value<'static> {
    match number.as_i64() {
        Some(whole) => Value::Int(whole),
        None => Value::Double(number.as_f64().unwrap_or(f64::NAN)),
    }
}

/// JSON by what its schema says.
pub(super) fn declared<'a>(json: &'a Json, declaration: &'a DeclType) -> Result<Value<'a>, EvaluationError> {
    match (declaration.shape(), json) {
        (Shape::Hidden, _) => Ok(Value::Hidden(json)),
        (Shape::Dyn | Shape::Any | Shape::Of(_), _) => Ok(dynamic(json)),
        (_, Json::Null) if declaration.is_nullable() => Ok(Value::Null),
        (_, Json::Null) => Err(EvaluationError::new("invalid data, got null for schema with nullable=false")),
        (Shape::Bool, Json::Bool(truth)) => Ok(Value::Bool(*truth)),
        (Shape::Int, Json::Number(number)) if number.is_i64() => Ok(dynamic_number(number)),
        (Shape::Double, Json::Number(number)) => Ok(Value::Double(number.as_f64().unwrap_or(f64::NAN))),
        (Shape::IntOrString, Json::Number(number)) if number.is_i64() => Ok(dynamic_number(number)),
        (Shape::IntOrString | Shape::String, Json::String(text)) => Ok(Value::String(Text::Borrowed(text))),
        (shape, Json::String(text)) if is_text(shape) => formatted(shape, text),
        (Shape::List(items, kind), Json::Array(array)) => {
            Ok(Value::List(List { items: Items::Json(array, Some(items)), kind: Some(kind) }))
        }
        (Shape::Map(_) | Shape::Object(_), Json::Object(entries)) => {
            Ok(Value::Map(Map::Declared(entries, declaration)))
        }
        (shape, _) => Err(EvaluationError::Failed(misfit(shape, json))),
    }
}

fn is_text(shape: &Shape) -> bool {
    matches!(shape, Shape::Bytes | Shape::Date | Shape::DateTime | Shape::Duration)
}

/// The base64 of URLs, as `strfmt.Base64` reads it, with whatever is left of the last byte: a text with `+` or `/` fits `format: byte`, but is
/// none for rules.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::URL_SAFE,
    GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true),
);

/// Text in a format.
fn formatted(shape: &Shape, text: &str) -> Result<Value<'static>, EvaluationError> {
    let invalid = |what: &str| EvaluationError::new(format!("Invalid {what} {text}"));
    match shape {
        Shape::Duration => {
            Duration::parse_lenient(text).map(Value::Duration).ok_or_else(|| invalid("duration"))
        }
        Shape::Date => {
            Timestamp::parse_date(text).map(Value::Timestamp).ok_or_else(|| invalid("date formatted string"))
        }
        Shape::DateTime => Timestamp::parse_lenient(text)
            .map(Value::Timestamp)
            .ok_or_else(|| invalid("date-time formatted string")),
        _ => {
            let written: String = text.chars().filter(|one| !matches!(one, '\r' | '\n')).collect();
            let bytes = BASE64.decode(written).map_err(|_| invalid("byte formatted string"))?;
            Ok(Value::Bytes(bytes.into()))
        }
    }
}

/// Why JSON is not what its schema says.
fn misfit(shape: &Shape, json: &Json) -> Cow<'static, str> {
    let expected = match shape {
        Shape::IntOrString => "XIntOrString value to be either a string or integer",
        Shape::Map(_) | Shape::Object(_) => "a map for the provided schema with type=object",
        Shape::List(..) => "an array for the provided schema with type=array",
        Shape::Bool => return format!("invalid data, expected bool, got {}", go_type(json)).into(),
        Shape::Int => return format!("invalid data, expected int, got {}", go_type(json)).into(),
        Shape::Double => return format!("invalid data, expected float, got {}", go_type(json)).into(),
        _ => return format!("invalid data, expected string, got {}", go_type(json)).into(),
    };
    format!("invalid data, expected {expected}").into()
}

/// The name of the type that decoded JSON has in Go.
fn go_type(json: &Json) -> &'static str {
    match json {
        Json::Null => "<nil>",
        Json::Bool(_) => "bool",
        Json::Number(number) if number.is_i64() => "int64",
        Json::Number(_) => "float64",
        Json::String(_) => "string",
        Json::Array(_) => "[]interface {}",
        Json::Object(_) => "map[string]interface {}",
    }
}

/// A value as JSON.
pub(super) fn to_json(value: &Value<'_>) -> Result<Json, EvaluationError> {
    let unsupported = || {
        EvaluationError::new(format!("type conversion error from '{}' to JSON", value.runtime_type().name()))
    };
    Ok(match value {
        Value::Null => Json::Null,
        Value::Bool(truth) => Json::Bool(*truth),
        Value::Int(number) => Json::from(*number),
        Value::Uint(number) => Json::from(*number),
        Value::Double(number) => Number::from_f64(*number).map(Json::Number).ok_or_else(unsupported)?,
        Value::String(text) => Json::String(text.to_string()),
        Value::Bytes(bytes) => Json::String(STANDARD.encode(bytes)),
        Value::Timestamp(timestamp) => Json::String(timestamp.to_string()),
        Value::Duration(duration) => Json::String(duration.to_string()),
        Value::List(List { items: Items::Json(items, _), .. }) => Json::Array(items.to_vec()),
        Value::List(list) => Json::Array(list.values()?.iter().map(to_json).collect::<Result<_, _>>()?),
        Value::Map(Map::Dynamic(entries) | Map::Declared(entries, _)) => Json::Object((*entries).clone()),
        Value::Map(Map::Values(entries, _) | Map::OrEmpty(entries, _)) => {
            let mut object = JsonMap::new();
            for (key, value) in entries.iter() {
                let name = match key {
                    Key::String(name) => name.to_string(),
                    other => other.to_string(),
                };
                object.insert(name, to_json(value)?);
            }
            Json::Object(object)
        }
        Value::Object(object) => {
            let mut fields = JsonMap::new();
            for (name, value) in &object.fields {
                fields.insert(name.to_string(), to_json(value)?);
            }
            Json::Object(fields)
        }
        Value::Hidden(json) => (*json).clone(),
        Value::Optional(_) | Value::Type(_) | Value::Opaque(_) => return Err(unsupported()),
    })
}

impl<'a> From<Arc<str>> for Value<'a> {
    fn from(text: Arc<str>) -> Self {
        Value::String(Text::Shared(text))
    }
}

impl<'a> From<String> for Value<'a> {
    fn from(text: String) -> Self {
        Value::String(text.into())
    }
}

impl<'a> From<bool> for Value<'a> {
    fn from(truth: bool) -> Self {
        Value::Bool(truth)
    }
}

impl<'a> From<Vec<Value<'a>>> for Value<'a> {
    fn from(values: Vec<Value<'a>>) -> Self {
        Value::List(List::new(values))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(declaration: &DeclType, text: &str) -> Option<String> {
        match Value::declared(&text.into(), declaration).ok()? {
            Value::Bytes(bytes) => Some(bytes.iter().map(|byte| format!("{byte:02x}")).collect()),
            Value::Duration(span) => Some(span.0.to_string()),
            Value::Timestamp(time) => Some(time.to_string()),
            other => panic!("{other:?}"),
        }
    }

    /// What `UnstructuredToVal` of apiextensions-apiserver v0.36.3 gives.
    #[test]
    fn texts_in_a_format_are_read_as_strfmt_reads_them() {
        for (text, bytes) in [
            ("aGk=", Some("6869")),
            ("aGl=", Some("6869")),
            ("_-8=", Some("ffef")),
            ("//8=", None),
            ("aGk", None),
        ] {
            assert_eq!(shown(&DeclType::bytes(None), text).as_deref(), bytes, "{text}");
        }
        const HOUR: i64 = 3_600_000_000_000;
        for (text, span) in [
            ("90 DAY", Some(90 * 24 * HOUR)),
            ("PT1H", Some(HOUR)),
            ("1Hr 2hours", Some(3 * HOUR)),
            ("1 fortnight", None),
        ] {
            assert_eq!(shown(&DeclType::duration(), text), span.map(|span| span.to_string()), "{text}");
        }
        let time = "2024-01-02T03:04:05,5";
        assert_eq!(shown(&DeclType::date_time(), time).as_deref(), Some("2024-01-02T03:04:05.5Z"));
    }
}
