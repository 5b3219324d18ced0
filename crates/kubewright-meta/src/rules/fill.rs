//! Filling in what was left out: the small steps that defaults are made of. None of them touches a value of an
//! unexpected type; validation speaks of those.

use serde_json::{Map, Value, json};

use crate::quantity;

/// The object at `key`, made when there is none; nothing when something else is there.
pub fn object<'a>(parent: &'a mut Value, key: &str) -> Option<&'a mut Value> {
    let slot = parent.as_object_mut()?.entry(key).or_insert(Value::Null);
    if slot.is_null() {
        *slot = json!({});
    }
    slot.is_object().then_some(slot)
}

/// The object at `key`, when there is one.
pub fn present<'a>(parent: &'a mut Value, key: &str) -> Option<&'a mut Value> {
    parent.get_mut(key).filter(|value| value.is_object())
}

/// The object under these keys, when it is there.
pub fn reach<'a>(parent: &'a mut Value, keys: &[&str]) -> Option<&'a mut Value> {
    keys.iter().try_fold(parent, |at, key| present(at, key))
}

/// Sets `key` where there is no value.
pub fn absent(parent: &mut Value, key: &str, value: impl Into<Value>) {
    if let Some(fields) = parent.as_object_mut()
        && fields.get(key).is_none_or(Value::is_null)
    {
        fields.insert(key.to_owned(), value.into());
    }
}

/// Sets `key` where there is no value or an empty text.
pub fn blank(parent: &mut Value, key: &str, value: &str) {
    if let Some(fields) = parent.as_object_mut()
        && fields.get(key).is_none_or(|old| old.is_null() || old.as_str() == Some(""))
    {
        fields.insert(key.to_owned(), value.into());
    }
}

/// Sets `key` where there is no value or 0.
pub fn zero(parent: &mut Value, key: &str, value: i64) {
    if let Some(fields) = parent.as_object_mut()
        && fields.get(key).is_none_or(|old| old.is_null() || old.as_i64() == Some(0))
    {
        fields.insert(key.to_owned(), value.into());
    }
}

/// Sets `key`.
pub fn set(parent: &mut Value, key: &str, value: impl Into<Value>) {
    if let Some(fields) = parent.as_object_mut() {
        fields.insert(key.to_owned(), value.into());
    }
}

/// Removes `key`.
pub fn remove(parent: &mut Value, key: &str) {
    if let Some(fields) = parent.as_object_mut() {
        fields.remove(key);
    }
}

/// Carries `key` over from the old object: set as it was, removed where it was not.
pub fn keep(new: &mut Value, old: &Value, key: &str) {
    match old.get(key) {
        Some(value) => set(new, key, value.clone()),
        None => remove(new, key),
    }
}

/// Does something to every item of the list at `key`.
pub fn each(parent: &mut Value, key: &str, mut change: impl FnMut(&mut Value)) {
    if let Some(items) = parent.get_mut(key).and_then(Value::as_array_mut) {
        items.iter_mut().for_each(&mut change);
    }
}

/// The labels (or other map of texts) at `key`, made when there are none.
pub fn map<'a>(parent: &'a mut Value, key: &str) -> Option<&'a mut Map<String, Value>> {
    object(parent, key)?.as_object_mut()
}

/// Writes the quantity at `key` in its canonical form.
pub fn canonical(parent: &mut Value, key: &str) {
    if let Some(value) = parent.get_mut(key)
        && let Some(text) = quantity::canonical(value)
    {
        *value = text.into();
    }
}

/// Writes every quantity of the list of resources at `key` in its canonical form, in thousandths at the finest
/// (`SetDefaults_ResourceList`).
pub fn canonical_map(parent: &mut Value, key: &str) {
    each_amount(parent, key, quantity::canonical);
}

/// Rounds every quantity of the list of resources at `key` up to thousandths, where it is finer; others stay as they were sent.
pub fn round_up_amounts(parent: &mut Value, key: &str) {
    each_amount(parent, key, |_| None);
}

/// Rounds what is finer than a thousandth, and writes what is not as `exact` has it.
fn each_amount(parent: &mut Value, key: &str, exact: fn(&Value) -> Option<String>) {
    let Some(entries) = parent.get_mut(key).and_then(Value::as_object_mut) else { return };
    for (_, value) in entries.iter_mut() {
        let Some(amount) = quantity::Quantity::of(value) else { continue };
        let rounded = amount.in_thousandths();
        let text = if rounded == amount { exact(value) } else { Some(rounded.to_string()) };
        if let Some(text) = text {
            *value = text.into();
        }
    }
}
