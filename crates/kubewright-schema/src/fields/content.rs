//! The fields that an object has (`sigs.k8s.io/structured-merge-diff/v6/typed`, `tofieldset.go`), and named fields that
//! belong to a set because something below them does (`fieldpath.Set.EnsureNamedFieldsAreMembers`).

use std::collections::BTreeSet;

use kubewright_meta::cost;
use serde_json::{Map, Value};

use super::compare::{items, members};
use super::element::Element;
use super::item;
use super::set::Set;
use super::shape::{Form, List, ListKind, Object, Shape};

/// The fields of an object: its scalars, its atomic lists and objects, the items of its other lists, and the members of
/// objects whose names are not the schema's.
#[must_use]
pub fn fields(shape: Shape<'_>, value: &Value) -> Set {
    let mut set = Set::default();
    walk(shape, value, &mut set);
    set
}

/// Adds what is below a value to `below`; says whether the value itself is a field.
fn walk(shape: Shape<'_>, value: &Value, below: &mut Set) -> bool {
    cost::step();
    match shape.form(Some(value)) {
        None => false,
        Some(Form::Scalar(_)) => true,
        Some(Form::Object(object)) => {
            if !object.atomic {
                of_object(&object, members(Some(value)), below);
            }
            object.atomic
        }
        Some(Form::List(list)) => {
            let atomic = list.kind == ListKind::Atomic;
            if !atomic {
                of_list(&list, items(Some(value)), below);
            }
            atomic
        }
    }
}

fn of_object(object: &Object<'_>, members: &Map<String, Value>, set: &mut Set) {
    for (name, value) in members {
        let named = object.named(name);
        let Some(shape) = named.or(object.rest) else { continue };
        let mut below = Set::default();
        let is_field = walk(shape, value, &mut below);
        let is_empty = value.is_null() || value.as_object().is_some_and(Map::is_empty);
        set.add(Element::field(name), is_field || is_empty || named.is_none(), below);
    }
}

fn of_list(list: &List<'_>, items: &[Value], set: &mut Set) {
    let steps: Vec<Option<Element>> = items.iter().map(|item| item::element(list, item).ok()).collect();
    let mut seen = BTreeSet::new();
    let doubled: BTreeSet<&Element> = steps.iter().flatten().filter(|step| !seen.insert(*step)).collect();
    let mut ordered: Vec<_> =
        steps.iter().zip(items).filter_map(|(step, item)| Some((step.as_ref()?, item))).collect();
    ordered.sort_by_key(|(step, _)| *step);
    for (step, item) in ordered {
        let mut below = Set::default();
        if !doubled.contains(step) {
            walk(list.items, item, &mut below);
        }
        set.add(step.clone(), true, below);
    }
}

/// The set with those fields that are on the way to others and that the schema has names for.
#[must_use]
pub(super) fn with_named(shape: Option<Shape<'_>>, set: &Set) -> Set {
    let forms = shape.map(Shape::forms).unwrap_or_default();
    let mut all = Set::default();
    for step in set.steps() {
        cost::step();
        let (named, inner) = match (&step.element, forms.object, forms.list) {
            (Element::Field(name), Some(object), _) => (object.named(name).is_some(), object.field(name)),
            (Element::Key(_), _, Some(list)) => (false, Some(list.items)),
            _ => (false, None),
        };
        let member = step.member || (named && !step.below.is_empty());
        all.add(step.element.clone(), member, with_named(inner, &step.below));
    }
    all
}
