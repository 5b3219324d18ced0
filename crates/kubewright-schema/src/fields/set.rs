//! Sets of field paths (`sigs.k8s.io/structured-merge-diff/v6/fieldpath`, `Set`).

use std::cmp::Ordering;

use kubewright_meta::cost;

use super::element::Element;

/// A set of field paths, as a tree: sorted steps, each with whether the path ends there and with what goes on below it.
/// No step is without both. A field does not stand for the fields below it: they are members of their own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Set {
    steps: Vec<Step>,
}

/// A step of some paths of a [`Set`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Where it leads.
    pub element: Element,
    /// Whether the path that ends here is in the set.
    pub member: bool,
    /// How other paths go on.
    pub below: Set,
}

/// What a side of a merge of two sets gives to the result.
type Both = fn(&Step, &Step) -> (bool, Set);

impl Set {
    /// The set of one path. The empty path is not in any set: nobody owns an object as a whole.
    #[must_use]
    pub fn of(path: &[Element]) -> Self {
        let mut set = Self::default();
        set.insert(path);
        set
    }

    /// Whether no path is in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// The first steps of its paths, in order.
    #[must_use]
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// Adds a path.
    pub fn insert(&mut self, path: &[Element]) {
        match path {
            [] => {}
            [last] => self.add(last.clone(), true, Self::default()),
            [first, rest @ ..] => self.add(first.clone(), false, Self::of(rest)),
        }
    }

    /// Adds what is below a step, and (as a member) the step itself. Steps that come in order cost nothing to place.
    pub(super) fn add(&mut self, element: Element, member: bool, below: Self) {
        if !member && below.is_empty() {
            return;
        }
        let last = self.steps.last().map_or(Ordering::Less, |last| last.element.cmp(&element));
        let place = match last {
            Ordering::Less => Err(self.steps.len()),
            Ordering::Equal => Ok(self.steps.len() - 1),
            Ordering::Greater => self.place(&element),
        };
        match place {
            Err(at) => {
                #[cfg(test)]
                MOVED.with(|moved| moved.set(moved.get() + self.steps.len() - at));
                self.steps.insert(at, Step { element, member, below });
            }
            Ok(at) => {
                let step = &mut self.steps[at];
                step.member |= member;
                if step.below.is_empty() {
                    step.below = below;
                } else if !below.is_empty() {
                    step.below = step.below.union(&below);
                }
            }
        }
    }

    fn place(&self, element: &Element) -> Result<usize, usize> {
        self.steps.binary_search_by(|step| step.element.cmp(element))
    }

    /// The step to that element.
    #[must_use]
    pub fn step(&self, element: &Element) -> Option<&Step> {
        self.place(element).ok().map(|at| &self.steps[at])
    }

    /// The step to the member of an object.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&Step> {
        let found = self.steps.binary_search_by(|step| match &step.element {
            Element::Field(other) => (**other).cmp(name),
            _ => Ordering::Greater,
        });
        found.ok().map(|at| &self.steps[at])
    }

    /// Whether a path is in it.
    #[must_use]
    pub fn has(&self, path: &[Element]) -> bool {
        match path {
            [] => false,
            [last] => self.step(last).is_some_and(|step| step.member),
            [first, rest @ ..] => self.step(first).is_some_and(|step| step.below.has(rest)),
        }
    }

    /// The paths of either set.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        self.zip(other, (true, true), |one, other| {
            (one.member || other.member, one.below.union(&other.below))
        })
    }

    /// The paths of both sets.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        self.zip(other, (false, false), |one, other| {
            (one.member && other.member, one.below.intersection(&other.below))
        })
    }

    /// The paths that the other set does not have.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Self {
        self.zip(other, (true, false), |one, other| {
            (one.member && !other.member, one.below.difference(&other.below))
        })
    }

    /// The paths that the other set does not have, and that are not below one that it has.
    #[must_use]
    pub fn recursive_difference(&self, other: &Self) -> Self {
        self.zip(other, (true, false), |one, other| {
            if other.member {
                (false, Self::default())
            } else {
                (one.member, one.below.recursive_difference(&other.below))
            }
        })
    }

    /// Whether all its paths are in the other set.
    #[must_use]
    pub fn is_subset(&self, other: &Self) -> bool {
        self.steps.iter().all(|step| {
            other
                .step(&step.element)
                .is_some_and(|others| (!step.member || others.member) && step.below.is_subset(&others.below))
        })
    }

    /// Whether a path is in both sets.
    #[must_use]
    pub fn intersects(&self, other: &Self) -> bool {
        let (mut ours, mut theirs) = (self.steps.iter().peekable(), other.steps.iter().peekable());
        while let (Some(one), Some(two)) = (ours.peek(), theirs.peek()) {
            match one.element.cmp(&two.element) {
                Ordering::Less => drop(ours.next()),
                Ordering::Greater => drop(theirs.next()),
                Ordering::Equal if (one.member && two.member) || one.below.intersects(&two.below) => {
                    return true;
                }
                Ordering::Equal => {
                    ours.next();
                    theirs.next();
                }
            }
        }
        false
    }

    /// Whether it goes by an item whose keys are all empty texts: JSON leaves these out, so that such an item has no key.
    #[must_use]
    pub(super) fn has_empty_key(&self) -> bool {
        let is_empty = |element: &Element| match element {
            Element::Key(fields) => fields.iter().all(|(_, value)| value == ""),
            _ => false,
        };
        self.steps.iter().any(|step| is_empty(&step.element) || step.below.has_empty_key())
    }

    /// The paths that are not the beginning of another.
    #[must_use]
    pub fn leaves(&self) -> Self {
        let steps = self.steps.iter().map(|step| Step {
            element: step.element.clone(),
            member: step.member && step.below.is_empty(),
            below: step.below.leaves(),
        });
        Self { steps: steps.collect() }
    }

    /// All paths: at each level first those that end there, then those that go on.
    #[must_use]
    pub fn paths(&self) -> Vec<Vec<Element>> {
        let mut paths = Vec::new();
        self.collect(&mut Vec::new(), &mut paths);
        paths
    }

    fn collect(&self, prefix: &mut Vec<Element>, paths: &mut Vec<Vec<Element>>) {
        for step in self.steps.iter().filter(|step| step.member) {
            prefix.push(step.element.clone());
            paths.push(prefix.clone());
            prefix.pop();
        }
        for step in &self.steps {
            prefix.push(step.element.clone());
            step.below.collect(prefix, paths);
            prefix.pop();
        }
    }

    /// Goes through both sets in order. `alone` says whose steps are kept that the other does not have.
    fn zip(&self, other: &Self, alone: (bool, bool), both: Both) -> Self {
        let mut steps = Vec::new();
        let (mut ours, mut theirs) = (self.steps.as_slice(), other.steps.as_slice());
        while let ([one, our_rest @ ..], [two, their_rest @ ..]) = (ours, theirs) {
            cost::step();
            match one.element.cmp(&two.element) {
                Ordering::Less => {
                    steps.extend(alone.0.then(|| one.clone()));
                    ours = our_rest;
                }
                Ordering::Greater => {
                    steps.extend(alone.1.then(|| two.clone()));
                    theirs = their_rest;
                }
                Ordering::Equal => {
                    let (member, below) = both(one, two);
                    if member || !below.is_empty() {
                        steps.push(Step { element: one.element.clone(), member, below });
                    }
                    (ours, theirs) = (our_rest, their_rest);
                }
            }
        }
        if alone.0 {
            steps.extend_from_slice(ours);
        }
        if alone.1 {
            steps.extend_from_slice(theirs);
        }
        Self { steps }
    }
}

/// The path of fields with these names.
#[must_use]
pub(super) fn path(names: &[&str]) -> Vec<Element> {
    names.iter().map(|name| Element::field(name)).collect()
}

/// The set of such paths.
#[must_use]
pub fn named(paths: &[&[&str]]) -> Set {
    let mut set = Set::default();
    for names in paths {
        set.insert(&path(names));
    }
    set
}

#[cfg(test)]
thread_local! {
    /// How many steps had to make room for others, on the thread of a test.
    pub(super) static MOVED: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}
