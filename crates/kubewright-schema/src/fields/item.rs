//! How an item of a list is told apart from the others
//! (`sigs.k8s.io/structured-merge-diff/v6/typed`, `listItemToPathElement`).

use std::cmp::Ordering;
use std::collections::BTreeMap;

use kubewright_meta::cost;
use serde_json::Value;

use super::element::{Element, compare};
use super::shape::{Keys, List, ListKind};

/// The step to an item of a set or map.
///
/// # Errors
/// The item is of a type that cannot be in such a list, or it has none of its keys.
pub(super) fn element(list: &List<'_>, item: &Value) -> Result<Element, String> {
    cost::step();
    match list.kind {
        ListKind::Atomic => Err("invalid indexing of non-associative list".to_owned()),
        ListKind::Map(keys) => keyed(list, keys, item),
        ListKind::Set => match item {
            Value::Object(_) => {
                Err("associative list without keys has an element that's a map type".to_owned())
            }
            Value::Array(_) => Err("not supported: associative list with lists as elements".to_owned()),
            Value::Null => {
                Err("associative list without keys has an element that's an explicit null".to_owned())
            }
            scalar => Ok(Element::Value(scalar.clone())),
        },
    }
}

fn keyed(list: &List<'_>, keys: Keys<'_>, item: &Value) -> Result<Element, String> {
    let fields = match item {
        Value::Object(fields) => fields,
        Value::Null => return Err("associative list with keys may not have a null element".to_owned()),
        _ => return Err("associative list with keys may not have non-map elements".to_owned()),
    };
    let Some(object) = list.items.forms().object else {
        return Err("associative list may not have non-map types".to_owned());
    };
    let mut found: Vec<(Box<str>, Value)> = Vec::with_capacity(2);
    for name in keys.names() {
        if let Some(value) = fields.get(name).cloned().or_else(|| object.key_default(name)) {
            found.push((name.into(), value));
        }
    }
    if found.is_empty() {
        let names: Vec<String> = keys.names().map(|name| format!("{name:?}")).collect();
        return Err(format!(
            "associative list with keys has an element that omits all key fields [{}] (and doesn't have default values for any key fields)",
            names.join(" ")
        ));
    }
    found.sort_by(|(one, _), (other, _)| one.cmp(other));
    Ok(Element::Key(found.into()))
}

/// Where the items of two lists stand, in the order of their steps; `None` unless all have steps, no two the same, and they
/// stand in the same places in both.
pub(super) fn places_alike(list: &List<'_>, one: &[Value], other: &[Value]) -> Option<Vec<usize>> {
    let ListKind::Map(keys) = list.kind else { return None };
    let mut names: Vec<&str> = keys.names().collect();
    names.sort_unstable();
    let order = |one: &Value, other: &Value| {
        let parts = names.iter().map(|name| compare(&one[*name], &other[*name]));
        parts.fold(Ordering::Equal, Ordering::then)
    };
    let has_all = |item: &Value| names.iter().all(|name| item.get(name).is_some());
    let alike = one.len() == other.len()
        && one.iter().chain(other).all(has_all)
        && one.iter().zip(other).all(|(one, other)| order(one, other).is_eq());
    let mut places: Vec<usize> = (0..one.len()).filter(|_| alike).collect();
    places.sort_by(|at, next| order(&one[*at], &one[*next]));
    let differ = places.windows(2).all(|pair| order(&one[pair[0]], &one[pair[1]]).is_ne());
    (alike && differ).then_some(places)
}

/// The items of a list by their steps; items that share a step stand together, in their order.
///
/// # Errors
/// The first item that has no step.
pub(super) fn by_element<'v>(
    list: &List<'_>,
    items: &'v [Value],
) -> Result<BTreeMap<Element, Vec<&'v Value>>, String> {
    let mut found: BTreeMap<Element, Vec<&Value>> = BTreeMap::new();
    for (at, item) in items.iter().enumerate() {
        let step = element(list, item).map_err(|why| format!("element {at}: {why}"))?;
        found.entry(step).or_default().push(item);
    }
    Ok(found)
}
