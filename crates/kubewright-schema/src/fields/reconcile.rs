//! Sets that were made under another schema: what has become atomic is owned as a whole
//! (`sigs.k8s.io/structured-merge-diff/v6/typed`, `reconcile_schema.go`).

use super::element::Element;
use super::set::{Set, Step};
use super::shape::{Form, ListKind, Object, Shape};

/// What becomes of a step.
enum Becomes {
    /// A field of its own, with nothing below it.
    Whole,
    /// The same, with this below it.
    Below(Set),
}

/// The set as it is under today's schema; `None` when that is no different.
#[must_use]
pub(super) fn reconcile(shape: Shape<'_>, set: &Set) -> Option<Set> {
    match becomes(shape, set, false)? {
        Becomes::Below(set) => Some(set),
        Becomes::Whole => None,
    }
}

/// `whole`: it is owned as a whole already.
fn becomes(shape: Shape<'_>, set: &Set, whole: bool) -> Option<Becomes> {
    match shape.forms().first()? {
        Form::Scalar(_) => None,
        Form::Object(object) if object.is_deduced() => None,
        Form::Object(object) if object.atomic && !whole => (!set.is_empty()).then_some(Becomes::Whole),
        Form::List(list) if list.kind == ListKind::Atomic && !whole => Some(Becomes::Whole),
        Form::Object(object) => below(set, |step| inner(&object, &step.element)),
        Form::List(list) => below(set, |_| Some(list.items)),
    }
}

fn inner<'a>(object: &Object<'a>, element: &Element) -> Option<Shape<'a>> {
    match element.name() {
        Some(name) => object.field(name),
        None => object.rest,
    }
}

fn below<'a>(set: &Set, shape: impl Fn(&Step) -> Option<Shape<'a>>) -> Option<Becomes> {
    let change = |step: &Step| becomes(shape(step)?, &step.below, step.member && step.below.is_empty());
    let changes: Vec<Option<Becomes>> = set.steps().iter().map(change).collect();
    if changes.iter().all(Option::is_none) {
        return None;
    }
    let mut changed = Set::default();
    for (step, change) in set.steps().iter().zip(changes) {
        let (member, below) = match change {
            None => (step.member, step.below.clone()),
            Some(Becomes::Whole) => (true, Set::default()),
            Some(Becomes::Below(below)) => (step.member, below),
        };
        changed.add(step.element.clone(), member, below);
    }
    Some(Becomes::Below(changed))
}
