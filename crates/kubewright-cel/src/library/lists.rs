//! Functions of lists: Kubernetes' (k8s.io/apiserver/pkg/cel/library/lists.go) and cel-go's (ext/lists.go, version 3).

use std::cmp::Ordering;

use super::{Implementation, operators};
use crate::error::EvaluationError;
use crate::value::{Duration, Key, List, Map, Value, equality};

type Outcome<'a> = Result<Value<'a>, EvaluationError>;

/// The most numbers that `lists.range` makes: more cost more than an evaluation may.
const MAX_RANGE: i64 = 10_000_000;

pub(super) fn find(function: &str, overload: &str) -> Option<Implementation> {
    Some(match (function, overload) {
        ("isSorted", _) => is_sorted,
        ("min", _) => |args| extreme(args, "min", Ordering::Greater),
        ("max", _) => |args| extreme(args, "max", Ordering::Less),
        (_, "list_int_sum_int") => |args| sum(args, Value::Int(0)),
        (_, "list_uint_sum_uint") => |args| sum(args, Value::Uint(0)),
        (_, "list_double_sum_double") => |args| sum(args, Value::Double(0.0)),
        (_, "list_duration_sum_duration") => |args| sum(args, Value::Duration(Duration(0))),
        (_, "list_a_index_of_int") => |args| position(args, false),
        (_, "list_a_last_index_of_int") => |args| position(args, true),
        (_, "list_distinct") => distinct,
        (_, "list_reverse") => reverse,
        (_, "list_slice") => slice,
        (_, "list_flatten" | "list_flatten_int") => flatten,
        (_, "lists_range") => range,
        ("sort" | "@sortByAssociatedKeys", _) => sort,
        (_, "@mapInsert_map_key_value") => insert,
        (_, "@mapInsert_map_map") => insert_all,
        _ => return None,
    })
}

fn no_overload<'a>() -> Outcome<'a> {
    Err(EvaluationError::no_such_overload())
}

fn list<'v, 'a>(args: &'v [Value<'a>]) -> Result<&'v List<'a>, EvaluationError> {
    match args.first() {
        Some(Value::List(list)) => Ok(list),
        _ => Err(EvaluationError::no_such_overload()),
    }
}

fn is_sorted<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    let mut previous: Option<Value<'a>> = None;
    for item in list(args)?.iter() {
        let item = item?;
        if let Some(previous) = &previous
            && equality::compare(previous, &item).is_ok_and(|order| order == Ordering::Greater)
        {
            return Ok(Value::Bool(false));
        }
        previous = Some(item);
    }
    Ok(Value::Bool(true))
}

/// The first item before or behind which there is no other.
fn extreme<'a>(args: &[Value<'a>], name: &str, worse: Ordering) -> Outcome<'a> {
    let mut best: Option<Value<'a>> = None;
    for item in list(args)?.iter() {
        let item = item?;
        let better = match &best {
            Some(best) => equality::compare(best, &item).is_ok_and(|order| order == worse),
            None => true,
        };
        if better {
            best = Some(item);
        }
    }
    best.ok_or_else(|| EvaluationError::new(format!("{name} called on empty list")))
}

fn sum<'a>(args: &[Value<'a>], zero: Value<'a>) -> Outcome<'a> {
    let mut total = zero;
    for item in list(args)?.iter() {
        total = operators::add(&[total, item?])?;
    }
    Ok(total)
}

fn position<'a>(args: &[Value<'a>], last: bool) -> Outcome<'a> {
    let [Value::List(list), wanted] = args else { return no_overload() };
    let is_wanted = |index: &usize| match list.get(*index) {
        Some(Ok(item)) => equality::equal(&item, wanted).unwrap_or(false),
        _ => false,
    };
    let mut indexes = 0..list.len();
    let found = if last { indexes.rfind(is_wanted) } else { indexes.find(is_wanted) };
    Ok(Value::Int(found.and_then(|index| i64::try_from(index).ok()).unwrap_or(-1)))
}

fn distinct<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    let mut unique: Vec<Value<'a>> = Vec::new();
    for item in list(args)?.iter() {
        let item = item?;
        if !unique.iter().any(|other| equality::equal(&item, other).unwrap_or(false)) {
            unique.push(item);
        }
    }
    Ok(unique.into())
}

fn reverse<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    let mut values = list(args)?.values()?;
    values.reverse();
    Ok(values.into())
}

fn slice<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    let [Value::List(list), Value::Int(start), Value::Int(end)] = args else { return no_overload() };
    let fail = |why: String| Err(EvaluationError::new(format!("cannot slice({start}, {end}), {why}")));
    let (Ok(from), Ok(to)) = (usize::try_from(*start), usize::try_from(*end)) else {
        return fail("negative indexes not supported".to_owned());
    };
    if from > to {
        return fail("start index must be less than or equal to end index".to_owned());
    }
    if list.len() < to {
        return fail(format!("list is length {}", list.len()));
    }
    let values: Vec<Value<'a>> = (from..to).filter_map(|index| list.get(index)).collect::<Result<_, _>>()?;
    Ok(values.into())
}

fn flatten<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    let depth = match args {
        [Value::List(_)] => 1,
        [Value::List(_), Value::Int(depth)] => *depth,
        _ => return no_overload(),
    };
    if depth < 0 {
        return Err(EvaluationError::new("level must be non-negative"));
    }
    let mut flat = Vec::new();
    flatten_into(list(args)?, depth, &mut flat)?;
    Ok(flat.into())
}

fn flatten_into<'a>(list: &List<'a>, depth: i64, flat: &mut Vec<Value<'a>>) -> Result<(), EvaluationError> {
    for item in list.iter() {
        match item? {
            Value::List(inner) if depth > 0 => flatten_into(&inner, depth - 1, flat)?,
            other => flat.push(other),
        }
        if i64::try_from(flat.len()).unwrap_or(i64::MAX) > MAX_RANGE {
            return Err(super::too_large());
        }
    }
    Ok(())
}

fn range<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    match args {
        [Value::Int(end)] if *end > MAX_RANGE => Err(EvaluationError::CostLimitExceeded),
        [Value::Int(end)] => Ok((0..*end).map(Value::Int).collect::<Vec<_>>().into()),
        _ => no_overload(),
    }
}

/// Sorts by the items, or by keys that go with them.
fn sort<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    let items = list(args)?.values()?;
    let keys = match args.get(1) {
        Some(Value::List(keys)) => keys.values()?,
        _ => items.clone(),
    };
    if items.len() != keys.len() {
        return Err(EvaluationError::new(format!(
            "@sortByAssociatedKeys() expected a list of the same size as the associated keys list, but got {} and {} \
             elements respectively",
            items.len(),
            keys.len()
        )));
    }
    let Some(first) = keys.first().map(Value::runtime_type) else { return Ok(items.into()) };
    if equality::compare(&keys[0], &keys[0]).is_err() && !matches!(keys[0], Value::Double(_)) {
        return Err(EvaluationError::new("list elements must be comparable"));
    }
    if keys.iter().any(|key| key.runtime_type() != first) {
        return Err(EvaluationError::new("list elements must have the same type"));
    }
    let mut pairs: Vec<(Value<'a>, Value<'a>)> = keys.into_iter().zip(items).collect();
    pairs.sort_by(|(left, _), (right, _)| equality::total_order(left, right));
    Ok(pairs.into_iter().map(|(_, item)| item).collect::<Vec<_>>().into())
}

fn insert<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    let [Value::Map(map), key, value] = args else { return no_overload() };
    insert_entries(map, [(key.clone(), value.clone())])
}

fn insert_all<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    let [Value::Map(map), Value::Map(added)] = args else { return no_overload() };
    let mut entries = Vec::new();
    for key in added.keys() {
        let value = added.get(&key)?.unwrap_or(Value::Null);
        entries.push((key, value));
    }
    insert_entries(map, entries)
}

fn insert_entries<'a>(map: &Map<'a>, added: impl IntoIterator<Item = (Value<'a>, Value<'a>)>) -> Outcome<'a> {
    let mut entries = match map {
        Map::Values(entries, _) | Map::OrEmpty(entries, _) => (**entries).clone(),
        other => {
            let mut entries = std::collections::BTreeMap::new();
            for key in other.keys() {
                if let (Some(known), Some(value)) = (Key::of(&key), other.get(&key)?) {
                    entries.insert(known, value);
                }
            }
            entries
        }
    };
    for (key, value) in added {
        let Some(known) = Key::of(&key) else { return no_overload() };
        if entries.insert(known, value).is_some() {
            return Err(EvaluationError::new(format!(
                "insert failed: key {} already exists",
                super::show(&key)
            )));
        }
    }
    Ok(Value::Map(Map::new(entries)))
}
