//! The way back, for tests: from JSON to the bytes that Go's generated code writes, by the same table.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use serde_json::Value;

use super::MAGIC;
use super::table::{Field, Form, Message, Other, Type};

/// A body: the object in its envelope.
pub(super) fn body(message: &Message, object: &Value) -> Vec<u8> {
    let text = |number, name: &str| delimited(number, object[name].as_str().unwrap_or_default().as_bytes());
    let of_type = [text(1, "apiVersion"), text(2, "kind")].concat();
    [MAGIC.to_vec(), envelope(&of_type, &self::message(message, object))].concat()
}

pub(super) fn envelope(of_type: &[u8], raw: &[u8]) -> Vec<u8> {
    [delimited(1, of_type), delimited(2, raw), delimited(3, b""), delimited(4, b"")].concat()
}

/// The fields of a message. A field that is no pointer is written although it is not there, as zero.
pub(super) fn message(message: &Message, object: &Value) -> Vec<u8> {
    message.fields().iter().flat_map(|field| self::field(field, object)).collect()
}

fn field(field: &Field, object: &Value) -> Vec<u8> {
    let number = field.number;
    let given = &object[field.name];
    match field.form {
        Form::Inlined(inner) => delimited(number, &message(inner, object)),
        Form::List(of) => {
            let items = given.as_array().into_iter().flatten();
            items.flat_map(|item| value_of(number, of, item)).collect()
        }
        Form::Map(of) => {
            let entries = given.as_object().into_iter().flatten();
            let entry = |(key, value): (&String, &Value)| {
                [delimited(1, key.as_bytes()), value_of(2, of, value)].concat()
            };
            entries.flat_map(|pair| delimited(number, &entry(pair))).collect()
        }
        Form::One { keeps_zero: true, .. } if given.is_null() => Vec::new(),
        Form::One { of, .. } => value_of(number, of, given),
    }
}

fn value_of(number: u32, kind: Type, value: &Value) -> Vec<u8> {
    let text = value.as_str().unwrap_or_default();
    match kind {
        Type::Text => delimited(number, text.as_bytes()),
        Type::Bool => integer(number, value.as_bool().unwrap_or_default().into()),
        Type::Int32 | Type::Int64 => integer(number, value.as_i64().unwrap_or_default()),
        Type::Double => {
            let bytes = value.as_f64().unwrap_or_default().to_le_bytes();
            [varint(u64::from(number) << 3 | 1), bytes.to_vec()].concat()
        }
        Type::Bytes => delimited(number, &STANDARD.decode(text).unwrap()),
        Type::Time | Type::MicroTime if value.is_null() => delimited(number, b""),
        Type::Time | Type::MicroTime => {
            let at: Timestamp = text.parse().unwrap();
            delimited(
                number,
                &[integer(1, at.as_second()), integer(2, at.subsec_nanosecond().into())].concat(),
            )
        }
        Type::Quantity => delimited(number, &delimited(1, text.as_bytes())),
        Type::IntOrString => {
            let (kind, int) = (value.is_string().into(), value.as_i64().unwrap_or_default());
            delimited(number, &[integer(1, kind), integer(2, int), delimited(3, text.as_bytes())].concat())
        }
        Type::Json => delimited(number, &delimited(1, value.to_string().as_bytes())),
        Type::Texts => {
            let items = value.as_array().into_iter().flatten();
            let items = items.flat_map(|item| delimited(1, item.as_str().unwrap().as_bytes()));
            delimited(number, &items.collect::<Vec<u8>>())
        }
        Type::SchemaOr(other) => delimited(number, &schema_or(other, value)),
        Type::Message(inner) => delimited(number, &message(inner, value)),
    }
}

fn schema_or(other: Other, value: &Value) -> Vec<u8> {
    let schema = Message::named("apiextensions/v1.JSONSchemaProps").unwrap();
    match (other, value) {
        (Other::Bool, Value::Bool(allows)) => integer(1, (*allows).into()),
        (Other::Bool, _) => [integer(1, 1), delimited(2, &message(schema, value))].concat(),
        (Other::Schemas, Value::Array(list)) => {
            list.iter().flat_map(|item| delimited(2, &message(schema, item))).collect()
        }
        (Other::Texts, Value::Array(list)) => {
            list.iter().flat_map(|item| delimited(2, item.as_str().unwrap().as_bytes())).collect()
        }
        (Other::Schemas | Other::Texts, _) => delimited(1, &message(schema, value)),
    }
}

pub(super) fn integer(number: u32, value: i64) -> Vec<u8> {
    [varint(u64::from(number) << 3), varint(value.cast_unsigned())].concat()
}

pub(super) fn delimited(number: u32, bytes: &[u8]) -> Vec<u8> {
    [varint(u64::from(number) << 3 | 2), varint(bytes.len() as u64), bytes.to_vec()].concat()
}

fn varint(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}
