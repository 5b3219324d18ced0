//! Arithmetic, comparisons, `in`, `size`.

use std::cmp::Ordering;
use std::sync::Arc;

use super::{Implementation, text, too_large};
use crate::error::EvaluationError;
use crate::value::{Duration, Value, equality};

type Outcome<'a> = Result<Value<'a>, EvaluationError>;

pub(super) fn find(function: &str) -> Option<Implementation> {
    Some(match function {
        "_+_" => |args| guarded("_+_", args, can_be_added, add),
        "_-_" => |args| guarded("_-_", args, can_be_subtracted, subtract),
        "_*_" => |args| guarded("_*_", args, is_number, multiply),
        "_/_" => |args| guarded("_/_", args, is_number, divide),
        "_%_" => |args| guarded("_%_", args, |value| matches!(value, Value::Int(_) | Value::Uint(_)), modulo),
        "-_" => |args| {
            guarded("-_", args, |value| can_be_subtracted(value) || matches!(value, Value::Bool(_)), negate)
        },
        "!_" => not,
        "_<_" => {
            |args| guarded("_<_", args, is_ordered, |args| ordered(args, |order| order == Ordering::Less))
        }
        "_<=_" => {
            |args| guarded("_<=_", args, is_ordered, |args| ordered(args, |order| order != Ordering::Greater))
        }
        "_>_" => {
            |args| guarded("_>_", args, is_ordered, |args| ordered(args, |order| order == Ordering::Greater))
        }
        "_>=_" => {
            |args| guarded("_>=_", args, is_ordered, |args| ordered(args, |order| order != Ordering::Less))
        }
        "@in" => contains,
        "size" => |args| guarded("size", args, has_size, size),
        _ => return None,
    })
}

/// Refuses a first operand that the operator cannot be used on at all: by name, but for what has functions of its own.
fn guarded<'a>(
    name: &str,
    args: &[Value<'a>],
    fits: fn(&Value<'_>) -> bool,
    operator: Operator,
) -> Outcome<'a> {
    if args.first().is_some_and(fits) {
        return operator(args);
    }
    match args.first() {
        Some(Value::String(_) | Value::Timestamp(_) | Value::Duration(_)) => no_overload(),
        _ => Err(EvaluationError::new(format!("no such overload: {name}"))),
    }
}

type Operator = for<'a> fn(&[Value<'a>]) -> Outcome<'a>;

fn is_number(value: &Value<'_>) -> bool {
    matches!(value, Value::Int(_) | Value::Uint(_) | Value::Double(_))
}

fn can_be_subtracted(value: &Value<'_>) -> bool {
    is_number(value) || matches!(value, Value::Duration(_) | Value::Timestamp(_))
}

fn is_ordered(value: &Value<'_>) -> bool {
    can_be_subtracted(value) || matches!(value, Value::Bool(_) | Value::String(_) | Value::Bytes(_))
}

fn can_be_added(value: &Value<'_>) -> bool {
    can_be_subtracted(value) || matches!(value, Value::String(_) | Value::Bytes(_) | Value::List(_))
}

fn has_size(value: &Value<'_>) -> bool {
    matches!(value, Value::String(_) | Value::Bytes(_) | Value::List(_) | Value::Map(_))
}

fn no_overload<'a>() -> Outcome<'a> {
    Err(EvaluationError::no_such_overload())
}

fn int<'a>(result: Option<i64>) -> Outcome<'a> {
    result.map(Value::Int).ok_or_else(|| EvaluationError::new("integer overflow"))
}

fn uint<'a>(result: Option<u64>) -> Outcome<'a> {
    result.map(Value::Uint).ok_or_else(|| EvaluationError::new("unsigned integer overflow"))
}

fn duration<'a>(result: Option<i64>) -> Outcome<'a> {
    result
        .map(|nanoseconds| Value::Duration(Duration(nanoseconds)))
        .ok_or_else(|| EvaluationError::new("integer overflow"))
}

fn timestamp<'a>(result: Option<crate::value::Timestamp>) -> Outcome<'a> {
    result.map(Value::Timestamp).ok_or_else(|| EvaluationError::new("timestamp overflow"))
}

pub(super) fn add<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    let [left, right] = args else { return no_overload() };
    match (left, right) {
        (Value::Int(left), Value::Int(right)) => int(left.checked_add(*right)),
        (Value::Uint(left), Value::Uint(right)) => uint(left.checked_add(*right)),
        (Value::Double(left), Value::Double(right)) => Ok(Value::Double(left + right)),
        (Value::String(left), Value::String(right)) => text(format!("{}{}", &**left, &**right)),
        (Value::Bytes(left), Value::Bytes(right)) => {
            if left.len() + right.len() > super::MAX_TEXT {
                return Err(too_large());
            }
            Ok(Value::Bytes([&**left, &**right].concat().into()))
        }
        (Value::Duration(left), Value::Duration(right)) => duration(left.0.checked_add(right.0)),
        (Value::Duration(span), Value::Timestamp(time)) | (Value::Timestamp(time), Value::Duration(span)) => {
            timestamp(time.plus(*span))
        }
        (Value::List(left), Value::List(right)) => equality::concatenate(left, right).map(Value::List),
        _ => no_overload(),
    }
}

fn subtract<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    let [left, right] = args else { return no_overload() };
    match (left, right) {
        (Value::Int(left), Value::Int(right)) => int(left.checked_sub(*right)),
        (Value::Uint(left), Value::Uint(right)) => uint(left.checked_sub(*right)),
        (Value::Double(left), Value::Double(right)) => Ok(Value::Double(left - right)),
        (Value::Duration(left), Value::Duration(right)) => duration(left.0.checked_sub(right.0)),
        (Value::Timestamp(left), Value::Timestamp(right)) => duration(left.since(*right).map(|span| span.0)),
        (Value::Timestamp(time), Value::Duration(span)) => match span.0.checked_neg() {
            Some(back) => timestamp(time.plus(Duration(back))),
            None => Err(EvaluationError::new("integer overflow")),
        },
        _ => no_overload(),
    }
}

fn multiply<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    match args {
        [Value::Int(left), Value::Int(right)] => int(left.checked_mul(*right)),
        [Value::Uint(left), Value::Uint(right)] => uint(left.checked_mul(*right)),
        [Value::Double(left), Value::Double(right)] => Ok(Value::Double(left * right)),
        _ => no_overload(),
    }
}

fn divide<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    match args {
        [Value::Int(_), Value::Int(0)] | [Value::Uint(_), Value::Uint(0)] => {
            Err(EvaluationError::new("division by zero"))
        }
        [Value::Int(left), Value::Int(right)] => int(left.checked_div(*right)),
        [Value::Uint(left), Value::Uint(right)] => Ok(Value::Uint(left / right)),
        [Value::Double(left), Value::Double(right)] => Ok(Value::Double(left / right)),
        _ => no_overload(),
    }
}

fn modulo<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    match args {
        [Value::Int(_), Value::Int(0)] | [Value::Uint(_), Value::Uint(0)] => {
            Err(EvaluationError::new("modulus by zero"))
        }
        [Value::Int(left), Value::Int(right)] => int(left.checked_rem(*right)),
        [Value::Uint(left), Value::Uint(right)] => Ok(Value::Uint(left % right)),
        _ => no_overload(),
    }
}

fn negate<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    match args {
        [Value::Int(number)] => int(number.checked_neg()),
        [Value::Double(number)] => Ok(Value::Double(-number)),
        [Value::Duration(span)] => duration(span.0.checked_neg()),
        _ => no_overload(),
    }
}

fn not<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    match args {
        [Value::Bool(truth)] => Ok(Value::Bool(!truth)),
        _ => no_overload(),
    }
}

fn ordered<'a>(args: &[Value<'a>], holds: fn(Ordering) -> bool) -> Outcome<'a> {
    let [left, right] = args else { return no_overload() };
    equality::compare(left, right).map(|order| Value::Bool(holds(order)))
}

fn contains<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    match args {
        [item, Value::List(list)] => {
            let mut failed = None;
            for element in list.iter() {
                match element.and_then(|element| equality::equal(&element, item)) {
                    Ok(true) => return Ok(Value::Bool(true)),
                    Ok(false) => {}
                    Err(error) => failed = failed.or(Some(error)),
                }
            }
            failed.map_or(Ok(Value::Bool(false)), Err)
        }
        [key, Value::Map(map)] => map.has(key).map(Value::Bool),
        _ => no_overload(),
    }
}

fn size<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    let [value] = args else { return no_overload() };
    let size = match value {
        Value::String(text) => text.chars().count(),
        Value::Bytes(bytes) => Arc::as_ref(bytes).len(),
        Value::List(list) => list.len(),
        Value::Map(map) => map.len(),
        _ => return no_overload(),
    };
    Ok(Value::Int(i64::try_from(size).unwrap_or(i64::MAX)))
}
