//! Lists as sets (cel-go's ext/sets.go).

use super::Implementation;
use crate::error::EvaluationError;
use crate::value::{List, Value, equality};

type Outcome<'a> = Result<Value<'a>, EvaluationError>;

pub(super) fn find(overload: &str) -> Option<Implementation> {
    Some(match overload {
        "list_sets_contains_list" => |args| on_lists(args, contains),
        "list_sets_intersects_list" => |args| on_lists(args, intersects),
        "list_sets_equivalent_list" => {
            |args| on_lists(args, |left, right| Ok(contains(left, right)? && contains(right, left)?))
        }
        _ => return None,
    })
}

type Test = fn(&List<'_>, &List<'_>) -> Result<bool, EvaluationError>;

fn on_lists<'a>(args: &[Value<'a>], test: Test) -> Outcome<'a> {
    match args {
        [Value::List(left), Value::List(right)] => test(left, right).map(Value::Bool),
        _ => Err(EvaluationError::no_such_overload()),
    }
}

fn has(list: &List<'_>, wanted: &Value<'_>) -> Result<bool, EvaluationError> {
    for item in list.iter() {
        if equality::equal(&item?, wanted).unwrap_or(false) {
            return Ok(true);
        }
    }
    Ok(false)
}

fn contains(list: &List<'_>, wanted: &List<'_>) -> Result<bool, EvaluationError> {
    for item in wanted.iter() {
        if !has(list, &item?)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn intersects(left: &List<'_>, right: &List<'_>) -> Result<bool, EvaluationError> {
    for item in left.iter() {
        if has(right, &item?)? {
            return Ok(true);
        }
    }
    Ok(false)
}
