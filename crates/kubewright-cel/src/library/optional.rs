//! Optional values (cel-go's cel/library.go).

use std::sync::Arc;

use super::{Implementation, show};
use crate::error::EvaluationError;
use crate::value::{Value, is_zero};

type Outcome<'a> = Result<Value<'a>, EvaluationError>;

pub(super) fn find(overload: &str) -> Option<Implementation> {
    Some(match overload {
        "optional_none" => |_| Ok(Value::Optional(None)),
        "optional_of" => |args| match args {
            [value] => Ok(Value::optional(Some(value.clone()))),
            _ => no_overload(),
        },
        "optional_ofNonZeroValue" => |args| match args {
            [value] => Ok(Value::optional((!is_zero(value)).then(|| value.clone()))),
            _ => no_overload(),
        },
        "optional_value" => |args| match args {
            [Value::Optional(Some(value))] => Ok((**value).clone()),
            [Value::Optional(None)] => Err(EvaluationError::new("optional.none() dereference")),
            _ => no_overload(),
        },
        "optional_hasValue" => |args| match args {
            [Value::Optional(value)] => Ok(Value::Bool(value.is_some())),
            _ => no_overload(),
        },
        "optional_unwrap" | "optional_unwrapOpt" => unwrap,
        "list_first" => |args| end(args, |_| 0),
        "list_last" => |args| end(args, |length| length.wrapping_sub(1)),
        _ => return None,
    })
}

fn no_overload<'a>() -> Outcome<'a> {
    Err(EvaluationError::no_such_overload())
}

fn unwrap<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    let [Value::List(list)] = args else { return no_overload() };
    let mut values = Vec::new();
    for item in list.iter() {
        match item? {
            Value::Optional(value) => values.extend(value.map(Arc::unwrap_or_clone)),
            other => return Err(EvaluationError::new(format!("value {} is not optional", show(&other)))),
        }
    }
    Ok(values.into())
}

fn end<'a>(args: &[Value<'a>], index: fn(usize) -> usize) -> Outcome<'a> {
    let [Value::List(list)] = args else { return no_overload() };
    list.get(index(list.len())).transpose().map(Value::optional)
}
