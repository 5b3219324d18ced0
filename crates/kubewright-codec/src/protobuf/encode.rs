//! From JSON to the bytes of a message, by the same table as the way back.
//!
//! A field that is no pointer in Go is written by Go even when it is zero. It is left out here: whoever reads the message
//! cannot tell the difference. Members that the table does not know are left out too.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use serde_json::Value;

use super::table::{Field, Form, Message, Other, Type};
use crate::json::is_zero;

pub(super) const SCHEMA: &str = "apiextensions/v1.JSONSchemaProps";

/// Appends the fields of a message to `out`.
pub(super) fn message(message: &Message, object: &Value, out: &mut Vec<u8>) {
    for field in message.fields() {
        self::field(field, object, out);
    }
}

fn field(field: &Field, object: &Value, out: &mut Vec<u8>) {
    let number = field.number;
    if let Form::Inlined(inner) = field.form {
        return delimited(number, out, |out| message(inner, object, out));
    }
    let Some(given) = object.get(field.name) else { return };
    match field.form {
        Form::One { of, keeps_zero: true } if of.is_time() => value(number, of, given, out),
        _ if given.is_null() => {}
        Form::Inlined(_) => {}
        Form::List(of) => {
            for item in given.as_array().into_iter().flatten() {
                value(number, of, item, out);
            }
        }
        Form::Map(of) => {
            for (key, member) in given.as_object().into_iter().flatten() {
                delimited(number, out, |out| {
                    text(1, key, out);
                    value(2, of, member, out);
                });
            }
        }
        Form::One { of, keeps_zero } if keeps_zero || !is_zero(given) => value(number, of, given, out),
        Form::One { .. } => {}
    }
}

/// One value of that type, as the field of that number. A value of another type is as good as zero.
pub(super) fn value(number: u32, of: Type, value: &Value, out: &mut Vec<u8>) {
    if let Value::String(text) = value {
        return from_text(number, of, text, out);
    }
    match of {
        Type::Text => text(number, "", out),
        Type::Bool => integer(number, value.as_bool().unwrap_or_default().into(), out),
        Type::Int32 | Type::Int64 => integer(number, whole(value), out),
        Type::Double => double(number, value.as_f64().unwrap_or_default(), out),
        Type::Bytes | Type::Time | Type::MicroTime => delimited(number, out, |_| {}),
        Type::Quantity | Type::Json => delimited(number, out, |out| text(1, &value.to_string(), out)),
        Type::IntOrString => delimited(number, out, |out| {
            integer(1, 0, out);
            integer(2, whole(value), out);
            text(3, "", out);
        }),
        Type::Texts => delimited(number, out, |out| {
            let items = value.as_array().into_iter().flatten().filter_map(Value::as_str);
            items.for_each(|item| text(1, item, out));
        }),
        Type::SchemaOr(other) => delimited(number, out, |out| schema_or(other, value, out)),
        Type::Message(inner) => delimited(number, out, |out| message(inner, value, out)),
    }
}

/// One value that is text in JSON, as [`value`].
pub(super) fn from_text(number: u32, of: Type, given: &str, out: &mut Vec<u8>) {
    match of {
        Type::Text => text(number, given, out),
        Type::Bytes => {
            let bytes = STANDARD.decode(given).unwrap_or_default();
            delimited(number, out, |out| out.extend_from_slice(&bytes));
        }
        Type::Time | Type::MicroTime => delimited(number, out, |out| time(given, out)),
        Type::Quantity => delimited(number, out, |out| text(1, given, out)),
        Type::IntOrString => delimited(number, out, |out| {
            integer(1, 1, out);
            integer(2, 0, out);
            text(3, given, out);
        }),
        Type::Json => delimited(number, out, |out| text(1, &Value::from(given).to_string(), out)),
        Type::Bool | Type::Int32 | Type::Int64 | Type::Double => value(number, of, &Value::Null, out),
        Type::Texts | Type::SchemaOr(_) | Type::Message(_) => value(number, of, &Value::Null, out),
    }
}

/// The whole number that a value is; one with a fraction loses it.
#[must_use]
pub fn whole(value: &Value) -> i64 {
    value.as_i64().or_else(|| value.as_f64().map(|number| number as i64)).unwrap_or_default()
}

/// Seconds and nanoseconds; nothing for what is no time.
fn time(text: &str, out: &mut Vec<u8>) {
    let Ok(at) = text.parse::<Timestamp>() else { return };
    integer(1, at.as_second(), out);
    integer(2, at.subsec_nanosecond().into(), out);
}

/// The three types have the schema and its alternative as two fields.
fn schema_or(other: Other, value: &Value, out: &mut Vec<u8>) {
    let Some(schema) = Message::named(SCHEMA) else { return };
    let mut of_schema = |number, value: &Value| delimited(number, out, |out| message(schema, value, out));
    match (other, value) {
        (Other::Bool, Value::Bool(allows)) => integer(1, (*allows).into(), out),
        (Other::Bool, schema) => {
            of_schema(2, schema);
            integer(1, 1, out);
        }
        (Other::Schemas, Value::Array(list)) => list.iter().for_each(|item| of_schema(2, item)),
        (Other::Texts, Value::Array(list)) => {
            list.iter().filter_map(Value::as_str).for_each(|item| text(2, item, out));
        }
        (Other::Schemas | Other::Texts, schema) => of_schema(1, schema),
    }
}

/// A field that is a varint.
pub fn integer(number: u32, value: i64, out: &mut Vec<u8>) {
    varint(u64::from(number) << 3, out);
    varint(value.cast_unsigned(), out);
}

/// A field that is a double.
pub fn double(number: u32, value: f64, out: &mut Vec<u8>) {
    varint(u64::from(number) << 3 | 1, out);
    out.extend_from_slice(&value.to_le_bytes());
}

/// A field that is text.
pub fn text(number: u32, text: &str, out: &mut Vec<u8>) {
    varint(u64::from(number) << 3 | 2, out);
    varint(text.len() as u64, out);
    out.extend_from_slice(text.as_bytes());
}

/// A field that has a length, written by `write`. Most are short: one byte is kept free for the length, and what was
/// written is moved on when it takes more.
pub fn delimited(number: u32, out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let open = self::open(number, out);
    write(out);
    close(open, out);
}

/// The beginning of a field of that many bytes.
pub(super) fn head(number: u32, length: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(6);
    varint(u64::from(number) << 3 | 2, &mut out);
    varint(length as u64, &mut out);
    out
}

/// Where the length of a field stands that is being written.
#[must_use]
pub(super) struct Open(usize);

/// Begins a field that has a length.
pub(super) fn open(number: u32, out: &mut Vec<u8>) -> Open {
    varint(u64::from(number) << 3 | 2, out);
    out.push(0);
    Open(out.len() - 1)
}

/// Ends a field: all that was written since belongs to it.
pub(super) fn close(Open(start): Open, out: &mut Vec<u8>) {
    let length = out.len() - start - 1;
    if let Ok(short @ 0..0x80) = u8::try_from(length) {
        out[start] = short;
        return;
    }
    let mut prefix = Vec::with_capacity(5);
    varint(length as u64, &mut prefix);
    out.splice(start..=start, prefix);
}

fn varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}
