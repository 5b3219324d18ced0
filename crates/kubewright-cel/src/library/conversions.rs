//! Conversions between types: `int('5')`, `string(1.5)`, `timestamp('...')`.

use std::sync::Arc;

use super::{Implementation, show_double};
use crate::error::EvaluationError;
use crate::types::Type;
use crate::value::{Duration, Timestamp, Value};

type Outcome<'a> = Result<Value<'a>, EvaluationError>;

pub(super) fn find(overload: &str) -> Option<Implementation> {
    Some(match overload {
        "bool_to_bool"
        | "bytes_to_bytes"
        | "double_to_double"
        | "duration_to_duration"
        | "int64_to_int64"
        | "string_to_string"
        | "timestamp_to_timestamp"
        | "uint64_to_uint64"
        | "to_dyn" => same,
        "string_to_bool" => string_to_bool,
        "string_to_bytes" => |args| match args {
            [Value::String(text)] => Ok(Value::Bytes(text.as_bytes().into())),
            _ => no_overload(),
        },
        "int64_to_double" | "uint64_to_double" | "string_to_double" => to_double,
        "double_to_int64" | "duration_to_int64" | "string_to_int64" | "timestamp_to_int64"
        | "uint64_to_int64" => to_int,
        "double_to_uint64" | "int64_to_uint64" | "string_to_uint64" => to_uint,
        "int64_to_duration" | "string_to_duration" => to_duration,
        "int64_to_timestamp" | "string_to_timestamp" => to_timestamp,
        "bool_to_string"
        | "bytes_to_string"
        | "double_to_string"
        | "duration_to_string"
        | "int64_to_string"
        | "timestamp_to_string"
        | "uint64_to_string" => to_string,
        "type" => |args| match args {
            [value @ Value::Object(_)] => {
                Ok(Value::Type(Arc::new(Type::Type(Some(Arc::new(value.runtime_type()))))))
            }
            [value] => Ok(Value::Type(Arc::new(value.runtime_type()))),
            _ => no_overload(),
        },
        _ => return None,
    })
}

fn no_overload<'a>() -> Outcome<'a> {
    Err(EvaluationError::no_such_overload())
}

fn failed(from: &Value<'_>, to: &Type) -> EvaluationError {
    let from = from.runtime_type();
    EvaluationError::new(format!("type conversion error from '{}' to '{}'", from.name(), to.name()))
}

fn same<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    args.first().cloned().ok_or_else(EvaluationError::no_such_overload)
}

fn string_to_bool<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    let [value @ Value::String(text)] = args else { return no_overload() };
    match &**text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(Value::Bool(true)),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(Value::Bool(false)),
        _ => Err(failed(value, &Type::Bool)),
    }
}

fn to_double<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    match args {
        [Value::Int(number)] => Ok(Value::Double(*number as f64)),
        [Value::Uint(number)] => Ok(Value::Double(*number as f64)),
        [value @ Value::String(text)] => {
            parse_double(text).map(Value::Double).ok_or_else(|| failed(value, &Type::Double))
        }
        _ => no_overload(),
    }
}

/// Reads a number as Go's `strconv.ParseFloat` does; one that is too large is none.
fn parse_double(text: &str) -> Option<f64> {
    let number: f64 = text.parse().ok()?;
    let has_digits = text.bytes().any(|byte| byte.is_ascii_digit());
    (!has_digits || number.is_finite()).then_some(number)
}

fn int_overflow() -> EvaluationError {
    EvaluationError::new("integer overflow")
}

fn to_int<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    match args {
        [Value::Double(number)] => {
            let inside = *number > i64::MIN as f64 && *number < i64::MAX as f64;
            if inside { Ok(Value::Int(*number as i64)) } else { Err(int_overflow()) }
        }
        [Value::Duration(span)] => Ok(Value::Int(span.0)),
        [Value::Timestamp(time)] => Ok(Value::Int(time.seconds)),
        [Value::Uint(number)] => i64::try_from(*number).map(Value::Int).map_err(|_| int_overflow()),
        [value @ Value::String(text)] => text.parse().map(Value::Int).map_err(|_| failed(value, &Type::Int)),
        _ => no_overload(),
    }
}

fn to_uint<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    let overflow = || EvaluationError::new("unsigned integer overflow");
    match args {
        [Value::Double(number)] => {
            let inside = *number >= 0.0 && *number < u64::MAX as f64;
            if inside { Ok(Value::Uint(*number as u64)) } else { Err(overflow()) }
        }
        [Value::Int(number)] => u64::try_from(*number).map(Value::Uint).map_err(|_| overflow()),
        [value @ Value::String(text)] => {
            let digits = text.bytes().all(|byte| byte.is_ascii_digit());
            let parsed = digits.then(|| text.parse().ok()).flatten();
            parsed.map(Value::Uint).ok_or_else(|| failed(value, &Type::Uint))
        }
        _ => no_overload(),
    }
}

fn to_duration<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    match args {
        [Value::Int(number)] => Ok(Value::Duration(Duration(*number))),
        [value @ Value::String(text)] => {
            Duration::parse(text).map(Value::Duration).ok_or_else(|| failed(value, &Type::Duration))
        }
        _ => no_overload(),
    }
}

fn to_timestamp<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    match args {
        [Value::Int(seconds)] => {
            let time = Timestamp::from_seconds(*seconds);
            time.map(Value::Timestamp).ok_or_else(|| EvaluationError::new("timestamp overflow"))
        }
        [value @ Value::String(text)] => {
            Timestamp::parse(text).map(Value::Timestamp).ok_or_else(|| failed(value, &Type::Timestamp))
        }
        _ => no_overload(),
    }
}

fn to_string<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    let [value] = args else { return no_overload() };
    string_of(value).map(Value::from)
}

/// The text that `string` makes of a value.
pub(super) fn string_of(value: &Value<'_>) -> Result<String, EvaluationError> {
    Ok(match value {
        Value::String(text) => text.to_string(),
        Value::Bool(truth) => truth.to_string(),
        Value::Int(number) => number.to_string(),
        Value::Uint(number) => number.to_string(),
        Value::Double(number) => show_double(*number),
        Value::Duration(span) => span.to_string(),
        Value::Timestamp(time) => time.to_string(),
        Value::Type(named) => named.name().to_owned(),
        Value::Bytes(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => text.to_owned(),
            Err(_) => return Err(EvaluationError::new("invalid UTF-8 in bytes, cannot convert to string")),
        },
        _ => return Err(failed(value, &Type::String)),
    })
}
