//! What is evaluated: the checked tree, with names resolved to places, calls to implementations, and constants made.

use std::sync::Arc;

use super::pattern::Pattern;
use crate::cost::CallCost;
use crate::library::{Candidate, Function};
use crate::value::Value;

/// A step of an evaluation.
#[derive(Debug)]
pub(crate) enum Node {
    Constant(Value<'static>),
    /// A variable or value, and what is selected from it.
    Path(Box<Path>),
    And(Box<[Node; 2]>),
    Or(Box<[Node; 2]>),
    Conditional(Box<[Node; 3]>),
    /// `==`, or `!=` if negated.
    Equal(Box<[Node; 2]>, bool),
    /// `left.or(right)`, or `left.orValue(right)` if unwrapped: the right side only if it is needed.
    OptionalOr(Box<[Node; 2]>, bool),
    /// `in` a list of constants.
    InConstants(Box<Node>, Vec<Value<'static>>),
    /// Whether it is anything but `false`, errors included.
    NotStrictlyFalse(Box<Node>),
    Call(Box<Call>),
    /// A call with a pattern that was compiled beforehand.
    Match(Box<Match>),
    List(Vec<ListElement>),
    Map(Vec<MapEntry>),
    Struct(Arc<str>, Vec<StructField>),
    Fold(Box<Fold>),
    /// `accumulator + [element]`, without a copy of the accumulator.
    Append(Box<Append>),
    /// `cel.@mapInsert(accumulator, key, value)`, without a copy of the accumulator.
    Insert(Box<Insert>),
}

/// A value, and what is selected from it.
#[derive(Debug)]
pub(crate) struct Path {
    pub(crate) base: Base,
    pub(crate) steps: Vec<Step>,
    /// Whether the last step is only looked for (`has`).
    pub(crate) test: bool,
}

#[derive(Debug)]
pub(crate) enum Base {
    /// A variable of the environment.
    Variable(Arc<str>),
    /// `variables.NAME`, where nothing is bound to `variables`.
    Lazy(Arc<str>),
    /// A variable of a loop.
    Local(usize),
    Node(Node),
}

#[derive(Debug)]
pub(crate) struct Step {
    pub(crate) key: StepKey,
    pub(crate) optional: bool,
}

#[derive(Debug)]
pub(crate) enum StepKey {
    Field(Arc<str>),
    Constant(Value<'static>),
    Dynamic(Node),
}

#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) function: &'static Function,
    /// The overloads that it may mean; which, the values of the arguments tell.
    pub(crate) candidates: Vec<Candidate>,
    pub(crate) args: Vec<Node>,
    pub(crate) cost: CallCost,
}

#[derive(Debug)]
pub(crate) struct Match {
    pub(crate) kind: MatchKind,
    pub(crate) text: Node,
    pub(crate) pattern: Pattern,
    /// How many matches are wanted.
    pub(crate) limit: Option<Node>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum MatchKind {
    Matches,
    Find,
    FindAll,
}

#[derive(Debug)]
pub(crate) struct ListElement {
    pub(crate) value: Node,
    pub(crate) optional: bool,
}

#[derive(Debug)]
pub(crate) struct MapEntry {
    pub(crate) key: Node,
    pub(crate) value: Node,
    pub(crate) optional: bool,
}

#[derive(Debug)]
pub(crate) struct StructField {
    pub(crate) name: Arc<str>,
    pub(crate) value: Node,
    pub(crate) optional: bool,
}

/// A loop. Its variables have the places `first_local` (accumulator), and the next two.
#[derive(Debug)]
pub(crate) struct Fold {
    pub(crate) range: Node,
    pub(crate) first_local: usize,
    pub(crate) two_variables: bool,
    pub(crate) init: Node,
    pub(crate) condition: Node,
    pub(crate) step: Node,
    pub(crate) result: Node,
}

#[derive(Debug)]
pub(crate) struct Append {
    pub(crate) accumulator: usize,
    pub(crate) element: Node,
}

#[derive(Debug)]
pub(crate) struct Insert {
    pub(crate) accumulator: usize,
    pub(crate) key: Node,
    pub(crate) value: Node,
}
