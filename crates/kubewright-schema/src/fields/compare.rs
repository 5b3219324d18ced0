//! What is different between two objects (`sigs.k8s.io/structured-merge-diff/v6/typed`, `compare.go`).

use std::cmp::Ordering;
use std::collections::BTreeSet;

use kubewright_meta::cost;
use serde_json::{Map, Value};

use super::element::{Element, same};
use super::item;
use super::set::Set;
use super::shape::{Form, List, ListKind, Object, Shape};

/// The fields in which two objects differ.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Difference {
    /// Fields that are new or have another value.
    pub changed: Set,
    /// Fields that are gone.
    pub removed: Set,
}

/// What became of a field itself, apart from those below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Same,
    Changed,
    Removed,
}

impl Difference {
    /// Between two objects of the same shape.
    ///
    /// # Errors
    /// An item of a list cannot be told apart from others.
    pub fn between(shape: Shape<'_>, old: &Value, new: &Value) -> Result<Self, String> {
        let mut found = Self::default();
        values(shape, Some(old), Some(new), &mut found)?;
        Ok(found)
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.changed.is_empty() && self.removed.is_empty()
    }

    /// Without these fields and those below them.
    #[must_use]
    pub fn without(self, ignored: &Set) -> Self {
        if ignored.is_empty() || self.is_empty() {
            return self;
        }
        Self {
            changed: self.changed.recursive_difference(ignored),
            removed: self.removed.recursive_difference(ignored),
        }
    }

    fn add(&mut self, element: &Element, fate: Fate, below: Self) {
        self.changed.add(element.clone(), fate == Fate::Changed, below.changed);
        self.removed.add(element.clone(), fate == Fate::Removed, below.removed);
    }

    /// Compares what stands at a step, which is asked for where there is a difference.
    fn descend(
        &mut self,
        element: impl FnOnce() -> Result<Element, String>,
        shape: Shape<'_>,
        old: Option<&Value>,
        new: Option<&Value>,
    ) -> Result<(), String> {
        if let (Some(old), Some(new)) = (old, new)
            && is_scalar(old)
            && old == new
        {
            return Ok(());
        }
        let mut below = Self::default();
        let fate = values(shape, old, new, &mut below)?;
        if fate != Fate::Same || !below.is_empty() {
            self.add(&element()?, fate, below);
        }
        Ok(())
    }
}

fn is_scalar(value: &Value) -> bool {
    matches!(value, Value::Bool(_) | Value::Number(_) | Value::String(_))
}

/// Compares two values, of which one at least is there. What differs below them goes to `below`.
fn values(
    shape: Shape<'_>,
    old: Option<&Value>,
    new: Option<&Value>,
    below: &mut Difference,
) -> Result<Fate, String> {
    cost::step();
    let forms = shape.forms();
    let (of_old, of_new) = (forms.of(old), forms.of(new));
    if new.is_none() {
        return form(of_old.first(), old, new, below);
    }
    if old.is_some() && !of_old.is_same(&of_new) {
        let first = form(of_old.first(), old, new, below)?;
        let second = form(of_new.first(), old, new, below)?;
        return Ok(if first == Fate::Same { second } else { first });
    }
    form(of_new.first(), old, new, below)
}

fn form(
    form: Option<Form<'_>>,
    old: Option<&Value>,
    new: Option<&Value>,
    below: &mut Difference,
) -> Result<Fate, String> {
    match form {
        None => Err("schema error: invalid atom: inlined".to_owned()),
        Some(Form::Scalar(_)) => Ok(leaf(old, new)),
        Some(Form::Object(object)) => {
            let (one, other) = (members(old), members(new));
            if object.atomic || (one.is_empty() && other.is_empty()) {
                return Ok(leaf(old, new));
            }
            objects(&object, one, other, below)?;
            Ok(presence(old, new))
        }
        Some(Form::List(list)) => {
            let (one, other) = (items(old), items(new));
            if list.kind == ListKind::Atomic || (one.is_empty() && other.is_empty()) {
                return Ok(leaf(old, new));
            }
            match lists(&list, one, other, below) {
                // Lists that are the same differ in nothing, whatever is wrong with them.
                Err(_) if one == other => *below = Difference::default(),
                outcome => outcome?,
            }
            Ok(presence(old, new))
        }
    }
}

/// The fate of what is compared as a whole.
fn leaf(old: Option<&Value>, new: Option<&Value>) -> Fate {
    match (old, new) {
        (Some(old), Some(new)) if same(old, new) => Fate::Same,
        _ if new.is_none() => Fate::Removed,
        _ => Fate::Changed,
    }
}

/// The fate of what is compared part by part.
fn presence(old: Option<&Value>, new: Option<&Value>) -> Fate {
    match (old, new) {
        (None, _) => Fate::Changed,
        (_, None) => Fate::Removed,
        _ => Fate::Same,
    }
}

pub(super) fn members(value: Option<&Value>) -> &Map<String, Value> {
    static NONE: std::sync::LazyLock<Map<String, Value>> = std::sync::LazyLock::new(Map::new);
    value.and_then(Value::as_object).unwrap_or(&NONE)
}

pub(super) fn items(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn objects(
    object: &Object<'_>,
    old: &Map<String, Value>,
    new: &Map<String, Value>,
    below: &mut Difference,
) -> Result<(), String> {
    let (mut olds, mut news) = (old.iter().peekable(), new.iter().peekable());
    loop {
        let order = match (olds.peek(), news.peek()) {
            (None, None) => return Ok(()),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some((one, _)), Some((other, _))) => one.cmp(other),
        };
        let old = if order.is_le() { olds.next() } else { None };
        let new = if order.is_ge() { news.next() } else { None };
        let Some((name, _)) = old.or(new) else { return Ok(()) };
        member(object, name, old.map(|(_, value)| value), new.map(|(_, value)| value), below)?;
    }
}

fn member(
    object: &Object<'_>,
    name: &str,
    old: Option<&Value>,
    new: Option<&Value>,
    below: &mut Difference,
) -> Result<(), String> {
    // Most members are the same scalar on both sides: nothing has to be known of them.
    if let (Some(old), Some(new)) = (old, new)
        && is_scalar(old)
        && old == new
    {
        return Ok(());
    }
    match object.field(name) {
        Some(shape) => below.descend(|| Ok(Element::field(name)), shape, old, new),
        None => Err(format!(".{name}: schema error: invalid atom: inlined")),
    }
}

/// Items of the same step stand against each other; several of one step are compared as a whole.
fn lists(list: &List<'_>, old: &[Value], new: &[Value], below: &mut Difference) -> Result<(), String> {
    if list.kind == ListKind::Set && old == new {
        return Ok(());
    }
    if let Some(places) = item::places_alike(list, old, new) {
        // As most lists do: no step has to be made of an item that is as it was. In order, as below.
        return places.into_iter().try_for_each(|at| {
            below.descend(|| item::element(list, &new[at]), list.items, Some(&old[at]), Some(&new[at]))
        });
    }
    let olds = item::by_element(list, old)?;
    let news = item::by_element(list, new)?;
    // In order: a step that comes late has to move all that come after it.
    for element in olds.keys().chain(news.keys()).collect::<BTreeSet<_>>() {
        let (old, new) = (olds.get(element), news.get(element));
        twins(list, element, old.map_or(&[], Vec::as_slice), new.map_or(&[], Vec::as_slice), below)?;
    }
    Ok(())
}

fn twins(
    list: &List<'_>,
    element: &Element,
    old: &[&Value],
    new: &[&Value],
    below: &mut Difference,
) -> Result<(), String> {
    let is_equal = || old.len() == new.len() && old.iter().zip(new).all(|(old, new)| same(old, new));
    match (old, new) {
        ([] | [_], [] | [_]) => {
            let (old, new) = (old.first().copied(), new.first().copied());
            below.descend(|| Ok(element.clone()), list.items, old, new)
        }
        ([_, _, ..], [_, _, ..]) => {
            if !is_equal() {
                below.add(element, Fate::Changed, Difference::default());
            }
            Ok(())
        }
        ([_, _, ..], _) => {
            if let [new] = new {
                below.descend(|| Ok(element.clone()), list.items, None, Some(new))?;
            }
            below.add(element, Fate::Removed, Difference::default());
            Ok(())
        }
        _ => {
            if let [old] = old {
                below.descend(|| Ok(element.clone()), list.items, Some(old), None)?;
            }
            below.add(element, Fate::Changed, Difference::default());
            Ok(())
        }
    }
}
