//! From the bytes of a message to the JSON that Go writes for it.
//!
//! Recursion ends at [`LEVELS`]; a value takes at least one byte of the body, so a body bounds what it becomes.

use std::str::FromStr;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use kubewright_meta::object::as_map;
use serde_json::{Map, Number, Value, json};

use super::super::json::{self, is_zero};
use super::table::{Field, Form, Message, Other, Type};
use super::wire::{Reader, Result, Wire};

/// How deep the JSON may be: less than what `serde_json` reads, as stored objects are read again.
pub(super) const LEVELS: usize = 127;

/// The seconds of Go's zero time, the first of the year 1.
const ZERO_TIME: i64 = -62_135_596_800;

const SCHEMA: &str = "apiextensions/v1.JSONSchemaProps";

/// Adds the fields of a message to an object that may have `levels` levels, itself included. What stands there is
/// replaced; messages are merged, as protobuf has it.
///
/// # Errors
/// What is wrong, in the words of Go.
pub(super) fn message(
    message: &Message,
    bytes: &[u8],
    into: &mut Map<String, Value>,
    levels: usize,
) -> Result<()> {
    let below = deeper(levels)?;
    let mut reader = Reader::new(bytes);
    while let Some((number, wire)) = reader.field()? {
        let Some(Field { name, form, .. }) = message.field(number) else { continue };
        match *form {
            Form::Inlined(inlined) => self::message(inlined, wire.bytes(name)?, into, below)?,
            Form::One { of: Type::Message(inner), .. } => {
                self::message(inner, wire.bytes(name)?, object_at(into, name), below)?;
            }
            Form::One { of, keeps_zero } => {
                let value = value(of, name, wire, below)?;
                let is_none = if of.is_time() { is_zero_time } else { is_zero };
                if value.is_null() || (!keeps_zero && is_none(&value)) {
                    into.remove(*name);
                } else {
                    into.insert((*name).to_owned(), value);
                }
            }
            Form::List(of) => {
                let list = into.entry(*name).or_insert_with(|| Value::Array(Vec::new()));
                if let Value::Array(list) = list {
                    list_items(of, name, wire, list, below)?;
                }
            }
            Form::Map(of) => {
                let (key, value) = map_entry(of, name, wire.bytes(name)?, below)?;
                object_at(into, name).insert(key, value);
            }
        }
    }
    Ok(())
}

/// The levels below one more, where there are any.
fn deeper(levels: usize) -> Result<usize> {
    levels.checked_sub(1).ok_or_else(|| "recursion limit exceeded".to_owned())
}

fn object_at<'a>(object: &'a mut Map<String, Value>, name: &str) -> &'a mut Map<String, Value> {
    as_map(object.entry(name).or_insert_with(|| Value::Object(Map::new())))
}

/// One item, or all items of a packed list of numbers.
fn list_items(of: Type, name: &str, wire: Wire<'_>, list: &mut Vec<Value>, levels: usize) -> Result<()> {
    let levels = deeper(levels)?;
    match (of, wire) {
        (Type::Int32 | Type::Int64 | Type::Bool, Wire::Bytes(packed)) => {
            let mut reader = Reader::new(packed);
            while !reader.is_empty() {
                let number = Wire::Varint(reader.varint()?);
                list.push(value(of, name, number, levels)?);
            }
        }
        _ => list.push(value(of, name, wire, levels)?),
    }
    Ok(())
}

/// An entry of a map is a message of a key and a value; all values of the table's maps have a length, and an absent one
/// is as good as an empty one.
fn map_entry(of: Type, name: &str, bytes: &[u8], levels: usize) -> Result<(String, Value)> {
    let levels = deeper(levels)?;
    let (mut key, mut entry) = (String::new(), Wire::Bytes(&[]));
    let mut reader = Reader::new(bytes);
    while let Some((number, wire)) = reader.field()? {
        match number {
            1 => key = wire.text(name)?,
            2 => entry = wire,
            _ => {}
        }
    }
    Ok((key, value(of, name, entry, levels)?))
}

/// One value of that type, of the field of that name; null for no JSON.
fn value(of: Type, name: &str, wire: Wire<'_>, levels: usize) -> Result<Value> {
    Ok(match of {
        Type::Text => wire.text(name)?.into(),
        Type::Bool => (wire.varint(name)? != 0).into(),
        // As in Go, what is too long is cut.
        Type::Int32 => (wire.varint(name)? as i32).into(),
        Type::Int64 => wire.varint(name)?.cast_signed().into(),
        Type::Double => double(wire.double(name)?)?,
        Type::Bytes => STANDARD.encode(wire.bytes(name)?).into(),
        Type::Time => time(wire.bytes(name)?)?,
        Type::MicroTime => micro_time(wire.bytes(name)?)?,
        Type::Quantity => quantity(wire.bytes(name)?)?,
        Type::IntOrString => int_or_string(wire.bytes(name)?)?,
        Type::Json => inlined_json(wire.bytes(name)?, levels)?,
        Type::Texts => texts(wire.bytes(name)?, levels)?,
        Type::SchemaOr(other) => schema_or(other, wire.bytes(name)?, levels)?,
        Type::Message(inner) => {
            let mut object = Map::new();
            message(inner, wire.bytes(name)?, &mut object, levels)?;
            Value::Object(object)
        }
    })
}

/// Whether that is Go's zero time, as [`time`] and [`micro_time`] write it.
fn is_zero_time(value: &Value) -> bool {
    matches!(value.as_str(), Some("0001-01-01T00:00:00Z" | "0001-01-01T00:00:00.000000Z"))
}

/// Whole numbers are written without decimals.
fn double(number: f64) -> Result<Value> {
    Number::from_str(&number.to_string())
        .map(Value::Number)
        .map_err(|_| format!("json: unsupported value: {number}"))
}

/// Seconds and nanoseconds; an empty message is Go's zero time.
fn timestamp(bytes: &[u8]) -> Result<(i64, i32)> {
    if bytes.is_empty() {
        return Ok((ZERO_TIME, 0));
    }
    let (mut seconds, mut nanos) = (0, 0);
    let mut reader = Reader::new(bytes);
    while let Some((number, wire)) = reader.field()? {
        match number {
            1 => seconds = wire.varint("seconds")?.cast_signed(),
            2 => nanos = wire.varint("nanos")? as i32,
            _ => {}
        }
    }
    Ok((seconds, nanos))
}

/// `metav1.Time` has no fractions of a second.
fn time(bytes: &[u8]) -> Result<Value> {
    let (seconds, _) = timestamp(bytes)?;
    instant(seconds, 0).map(|at| at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string().into())
}

fn micro_time(bytes: &[u8]) -> Result<Value> {
    let (seconds, nanos) = timestamp(bytes)?;
    instant(seconds, nanos / 1000 * 1000).map(|at| at.strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string().into())
}

fn instant(seconds: i64, nanos: i32) -> Result<Timestamp> {
    Timestamp::new(seconds, nanos)
        .ok()
        .filter(|at| at.as_second() >= YEAR_ZERO)
        .ok_or_else(|| "Time.MarshalJSON: year outside of range [0,9999]".to_owned())
}

/// 0000-01-01T00:00:00Z, the first instant that JSON can have.
const YEAR_ZERO: i64 = -62_167_219_200;

fn quantity(bytes: &[u8]) -> Result<Value> {
    let mut text = "0".to_owned();
    let mut reader = Reader::new(bytes);
    while let Some((number, wire)) = reader.field()? {
        if number == 1 {
            text = wire.text("string")?;
        }
    }
    Ok(text.into())
}

fn int_or_string(bytes: &[u8]) -> Result<Value> {
    let (mut kind, mut int, mut text) = (0, 0, String::new());
    let mut reader = Reader::new(bytes);
    while let Some((number, wire)) = reader.field()? {
        match number {
            1 => kind = wire.varint("type")?,
            2 => int = wire.varint("intVal")? as i32,
            3 => text = wire.text("strVal")?,
            _ => {}
        }
    }
    match kind {
        0 => Ok(int.into()),
        1 => Ok(text.into()),
        _ => Err("impossible IntOrString.Type".to_owned()),
    }
}

fn inlined_json(bytes: &[u8], levels: usize) -> Result<Value> {
    let mut raw: &[u8] = &[];
    let mut reader = Reader::new(bytes);
    while let Some((number, wire)) = reader.field()? {
        if number == 1 {
            raw = wire.bytes("raw")?;
        }
    }
    if raw.is_empty() {
        return Ok(Value::Null);
    }
    let value = json::decode(raw).map_err(|reason| format!("json parse error: {reason}"))?.value;
    check_depth(&value, levels)?;
    Ok(value)
}

fn check_depth(value: &Value, levels: usize) -> Result<()> {
    match value {
        Value::Array(list) => {
            let levels = deeper(levels)?;
            list.iter().try_for_each(|item| check_depth(item, levels))
        }
        Value::Object(map) => {
            let levels = deeper(levels)?;
            map.values().try_for_each(|member| check_depth(member, levels))
        }
        _ => Ok(()),
    }
}

fn texts(bytes: &[u8], levels: usize) -> Result<Value> {
    deeper(levels)?;
    let mut list = Vec::new();
    let mut reader = Reader::new(bytes);
    while let Some((number, wire)) = reader.field()? {
        if number == 1 {
            list.push(Value::String(wire.text("items")?));
        }
    }
    Ok(Value::Array(list))
}

/// The three types have the schema and its alternative as two fields; a list that is not empty comes before a schema
/// (`k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1/marshal.go`).
fn schema_or(other: Other, bytes: &[u8], levels: usize) -> Result<Value> {
    let of_schema = if other == Other::Bool { 2 } else { 1 };
    let (mut schema, mut list, mut allows) = (None, Vec::new(), false);
    let below = deeper(levels)?;
    let mut reader = Reader::new(bytes);
    while let Some((number, wire)) = reader.field()? {
        match (number, other) {
            (number, _) if number == of_schema => {
                schema_fields(wire, schema.get_or_insert_default(), levels)?;
            }
            (1, Other::Bool) => allows = wire.varint("allows")? != 0,
            (2, Other::Schemas) => {
                let mut item = Map::new();
                schema_fields(wire, &mut item, below)?;
                list.push(Value::Object(item));
            }
            (2, Other::Texts) => list.push(wire.text("property")?.into()),
            _ => {}
        }
    }
    Ok(match (schema, other) {
        _ if !list.is_empty() => Value::Array(list),
        (Some(schema), _) => Value::Object(schema),
        (None, Other::Bool) => json!(allows),
        (None, _) => Value::Null,
    })
}

fn schema_fields(wire: Wire<'_>, into: &mut Map<String, Value>, levels: usize) -> Result<()> {
    let bytes = wire.bytes("schema")?;
    Message::named(SCHEMA).map_or(Ok(()), |schema| message(schema, bytes, into, levels))
}
