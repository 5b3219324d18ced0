//! Merging a configuration into an object (`sigs.k8s.io/structured-merge-diff/v6/typed`, `merge.go`).

use std::collections::BTreeMap;

use kubewright_meta::cost::{self, copied};
use serde_json::{Map, Value};

use super::compare::{items, members};
use super::element::Element;
use super::item;
use super::shape::{Form, List, ListKind, Object, Shape};

/// The object with all that a configuration says. Nothing is taken away: what only the object has stays.
///
/// # Errors
/// An item of a list cannot be told apart from others, or the configuration has two of the same.
pub fn merge(shape: Shape<'_>, object: &Value, config: &Value) -> Result<Value, String> {
    Ok(values(shape, Some(object), Some(config))?.unwrap_or(Value::Null))
}

fn values(shape: Shape<'_>, old: Option<&Value>, new: Option<&Value>) -> Result<Option<Value>, String> {
    // What only one side has is taken as it is: merging it with nothing would build the same again.
    cost::step();
    let Some(given) = new else { return Ok(old.map(copied)) };
    if old.is_none() && !has_items(given) {
        return Ok(Some(given.clone()));
    }
    match shape.form(new) {
        None => Err("schema error: invalid atom: inlined".to_owned()),
        Some(Form::Scalar(_)) => Ok(new.cloned()),
        Some(Form::Object(form)) => {
            let (one, other) = (members(old), members(new));
            if form.atomic || (one.is_empty() && other.is_empty()) {
                return Ok(new.map(copied));
            }
            objects(&form, one, other)
        }
        Some(Form::List(form)) => {
            let (one, other) = (items(old), items(new));
            if form.kind == ListKind::Atomic || (one.is_empty() && other.is_empty()) {
                return Ok(new.map(copied));
            }
            lists(&form, one, other)
        }
    }
}

/// Whether something in a value could be refused.
fn has_items(value: &Value) -> bool {
    matches!(value, Value::Array(_) | Value::Object(_))
}

fn objects(
    form: &Object<'_>,
    old: &Map<String, Value>,
    new: &Map<String, Value>,
) -> Result<Option<Value>, String> {
    // What the configuration does not name is copied here, all else below: each value once, however deep it stands.
    let kept = old.iter().filter(|(name, _)| !new.contains_key(*name));
    let mut merged: Map<String, Value> = kept.map(|(name, value)| (name.clone(), copied(value))).collect();
    for (name, value) in new {
        let shape = form.field(name).ok_or_else(|| format!(".{name}: field not declared in schema"))?;
        if let Some(value) = values(shape, old.get(name), Some(value))? {
            merged.insert(name.clone(), value);
        }
    }
    Ok((!merged.is_empty()).then_some(Value::Object(merged)))
}

/// Both lists as one: the order of the configuration for its items; the items that only the object has keep their place
/// as far as that goes.
fn lists(form: &List<'_>, old: &[Value], new: &[Value]) -> Result<Option<Value>, String> {
    let (news, olds) = (Indexed::new(form, new, false)?, Indexed::new(form, old, true)?);
    let mut merged = Vec::with_capacity(old.len().max(new.len()));
    let mut done: BTreeMap<&Element, ()> = BTreeMap::new();
    // The items that both have, in the order of the configuration: the next one to come.
    let mut shared = news.steps.iter().filter(|step| olds.by_step.contains_key(step)).peekable();
    let (mut at_old, mut at_new) = (0, 0);
    loop {
        match (olds.steps.get(at_old), news.steps.get(at_new)) {
            (None, None) => break,
            (Some(one), Some(other)) if one == other => {
                done.insert(one, ());
                merged.extend(values(form.items, olds.get(one), news.get(one))?);
                at_old += 1;
                at_new += 1;
                shared.next();
                continue;
            }
            // An item of both whose turn has not come.
            (Some(one), Some(_))
                if news.by_step.contains_key(one) && shared.peek().is_some_and(|next| *next != one) =>
            {
                at_old += 1;
                continue;
            }
            _ => {}
        }
        if let Some(step) = olds.steps.get(at_old) {
            if !news.by_step.contains_key(step) {
                merged.push(copied(&old[at_old]));
                at_old += 1;
                continue;
            }
            if done.contains_key(step) {
                at_old += 1;
            }
        }
        if let Some(step) = news.steps.get(at_new) {
            done.insert(step, ());
            merged.extend(values(form.items, olds.get(step), news.get(step))?);
            at_new += 1;
            if shared.peek().is_some_and(|next| *next == step) {
                shared.next();
            }
        }
    }
    Ok((!merged.is_empty()).then_some(Value::Array(merged)))
}

/// The items of a list by their steps.
struct Indexed<'v> {
    steps: Vec<Element>,
    by_step: BTreeMap<Element, &'v Value>,
}

impl<'v> Indexed<'v> {
    fn new(form: &List<'_>, items: &'v [Value], doubles: bool) -> Result<Self, String> {
        let mut indexed = Self { steps: Vec::with_capacity(items.len()), by_step: BTreeMap::new() };
        for (at, item) in items.iter().enumerate() {
            let step = item::element(form, item).map_err(|why| format!("element {at}: {why}"))?;
            if indexed.by_step.contains_key(&step) {
                if !doubles {
                    return Err(format!("duplicate entries for key {step}"));
                }
                // Nothing is merged into one of several.
                indexed.by_step.insert(step.clone(), &Value::Null);
            } else {
                indexed.by_step.insert(step.clone(), item);
            }
            indexed.steps.push(step);
        }
        Ok(indexed)
    }

    fn get(&self, step: &Element) -> Option<&'v Value> {
        self.by_step.get(step).copied()
    }
}
