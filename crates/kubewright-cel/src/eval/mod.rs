//! Evaluation of a plan, with its cost counted as cel-go's `CostTracker` does it (interpreter/runtimecost.go).

mod fold;
mod path;
pub(crate) mod pattern;
pub(crate) mod plan;
mod planner;

use std::collections::BTreeMap;
use std::sync::Arc;

use regex::Regex;

pub use self::pattern::pattern_size;
pub(crate) use self::planner::plan;

use self::pattern::Pattern;
use self::plan::{Call, ListElement, MapEntry, Match, MatchKind, Node, StructField};
use crate::bindings::Bindings;
use crate::error::EvaluationError;
use crate::library;
use crate::program::{Evaluation, Program};
use crate::value::{Key, List, Map, Object, Value, equality, weight};

type Outcome<'a> = Result<Value<'a>, EvaluationError>;

const LIST_COST: u64 = 10;
const MAP_COST: u64 = 30;
const STRUCT_COST: u64 = 40;
/// How much one evaluation may compile of patterns that it makes itself ([`pattern_size`]). What cel-go charges for them is
/// what matching costs; compiling is more, and here even more than there.
const COMPILED: usize = 16 << 20;

/// Evaluates a program.
pub(crate) fn evaluate<'a>(program: &Program, bindings: &Bindings<'a>, limit: u64) -> Evaluation<'a> {
    let (locals, patterns) = Default::default();
    let mut evaluator = Evaluator { bindings, locals, cost: 0, lazy_cost: 0, patterns, compiled: 0, limit };
    let result = evaluator.evaluate(program.plan());
    let cost = evaluator.cost.saturating_add(evaluator.lazy_cost);
    Evaluation { result, cost, compiled: evaluator.compiled }
}

/// The state of an evaluation.
pub(super) struct Evaluator<'a, 'b> {
    bindings: &'b Bindings<'a>,
    /// The variables of loops, by place.
    locals: Vec<Outcome<'a>>,
    cost: u64,
    /// What lazy variables cost; they have limits of their own.
    lazy_cost: u64,
    /// The patterns that the expression has made itself: each is compiled once, in however many rounds it is made.
    patterns: BTreeMap<Box<str>, Regex>,
    /// What was compiled so far.
    compiled: usize,
    limit: u64,
}

impl<'a> Evaluator<'a, '_> {
    /// Counts cost.
    #[inline]
    fn charge(&mut self, cost: u64) -> Result<(), EvaluationError> {
        self.cost = self.cost.saturating_add(cost);
        if self.cost > self.limit { Err(EvaluationError::CostLimitExceeded) } else { Ok(()) }
    }

    pub(super) fn evaluate(&mut self, node: &Node) -> Outcome<'a> {
        match node {
            Node::Constant(value) => Ok(value.clone()),
            Node::Path(path) => self.path(path),
            Node::And(terms) => self.logic(terms, false),
            Node::Or(terms) => self.logic(terms, true),
            Node::Conditional(parts) => self.conditional(parts),
            Node::Equal(sides, negated) => self.equal(sides, *negated),
            Node::OptionalOr(sides, unwrap) => self.optional_or(sides, *unwrap),
            Node::InConstants(item, constants) => self.in_constants(item, constants),
            Node::NotStrictlyFalse(inner) => self.not_strictly_false(inner),
            Node::Call(call) => self.call(call),
            Node::Match(call) => self.matches(call),
            Node::List(elements) => self.list(elements),
            Node::Map(entries) => self.map(entries),
            Node::Struct(name, fields) => self.object(name, fields),
            Node::Fold(fold) => self.fold(fold),
            Node::Append(append) => self.append(append),
            Node::Insert(insert) => self.insert(insert),
        }
    }

    /// `&&` (decided by `false`) and `||` (by `true`): an error on one side does not matter if the other side decides.
    fn logic(&mut self, terms: &[Node; 2], decisive: bool) -> Outcome<'a> {
        let left = self.evaluate(&terms[0]);
        if matches!(left, Ok(Value::Bool(truth)) if truth == decisive) {
            return left;
        }
        if matches!(left, Err(EvaluationError::CostLimitExceeded)) {
            return left;
        }
        let right = self.evaluate(&terms[1]);
        match (&left, &right) {
            (_, Err(EvaluationError::CostLimitExceeded)) => right,
            (_, Ok(Value::Bool(truth))) if *truth == decisive => right,
            (Err(_), _) => left,
            (Ok(Value::Bool(_)), Ok(Value::Bool(_)) | Err(_)) => right,
            _ => Err(EvaluationError::no_such_overload()),
        }
    }

    fn conditional(&mut self, parts: &[Node; 3]) -> Outcome<'a> {
        let branch = match self.evaluate(&parts[0])? {
            Value::Bool(true) => &parts[1],
            Value::Bool(false) => &parts[2],
            _ => return Err(EvaluationError::no_such_overload()),
        };
        match branch {
            // What is chosen costs what its selections cost, but not itself.
            Node::Path(path) => self.resolve(path),
            other => self.evaluate(other),
        }
    }

    fn equal(&mut self, sides: &[Node; 2], negated: bool) -> Outcome<'a> {
        let left = self.evaluate(&sides[0]);
        let right = self.evaluate(&sides[1]);
        let cost = match (&left, &right) {
            (Ok(left), Ok(right)) => crate::cost::equality(left, right),
            (Err(EvaluationError::CostLimitExceeded), _) | (_, Err(EvaluationError::CostLimitExceeded)) => 0,
            _ => 1,
        };
        self.charge(cost)?;
        let (left, right) = (left?, right?);
        let equal = equality::equal(&left, &right);
        if negated { Ok(Value::Bool(!equal.unwrap_or(false))) } else { equal.map(Value::Bool) }
    }

    fn optional_or(&mut self, sides: &[Node; 2], unwrap: bool) -> Outcome<'a> {
        match self.evaluate(&sides[0])? {
            Value::Optional(Some(value)) if unwrap => Ok((*value).clone()),
            Value::Optional(None) => self.evaluate(&sides[1]),
            // What is no optional is what it is.
            other => Ok(other),
        }
    }

    fn in_constants(&mut self, item: &Node, constants: &[Value<'static>]) -> Outcome<'a> {
        let item = self.evaluate(item)?;
        let found = constants.iter().any(|constant| equality::equal(constant, &item).unwrap_or(false));
        Ok(Value::Bool(found))
    }

    fn not_strictly_false(&mut self, inner: &Node) -> Outcome<'a> {
        let value = self.evaluate(inner);
        self.charge(1)?;
        match value {
            Err(EvaluationError::CostLimitExceeded) => value,
            Ok(Value::Bool(truth)) => Ok(Value::Bool(truth)),
            _ => Ok(Value::Bool(true)),
        }
    }

    fn call(&mut self, call: &Call) -> Outcome<'a> {
        let mut args = Vec::with_capacity(call.args.len());
        let mut failed = None;
        for arg in &call.args {
            match self.evaluate(arg) {
                Ok(value) => args.push(value),
                Err(EvaluationError::CostLimitExceeded) => return Err(EvaluationError::CostLimitExceeded),
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        if let Some(error) = failed {
            self.charge(1)?;
            return Err(error);
        }
        self.charge(call.cost.before(&args))?;
        let result = match (call.function.name, args.as_slice()) {
            ("matches", [Value::String(text), Value::String(pattern)]) => {
                self.regex("", pattern)?.map(|regex| Value::Bool(regex.is_match(text)))
            }
            ("find", [Value::String(text), Value::String(pattern)]) => {
                self.regex(library::ILLEGAL, pattern)?.map(|regex| library::find(regex, text))
            }
            ("findAll", [Value::String(text), Value::String(pattern), limit @ ..])
                if matches!(limit, [] | [Value::Int(_)]) =>
            {
                let found = |regex: &Regex| library::find_all(regex, text, limit.first());
                self.regex(library::ILLEGAL, pattern)?.map(found)
            }
            _ => library::dispatch(call.function, &call.candidates, &args),
        };
        self.charge(call.cost.after(&args, result.as_ref().ok()))?;
        result.and_then(bounded)
    }

    /// A pattern that the expression has made, compiled; or why it is none, after `prefix`.
    fn regex(
        &mut self,
        prefix: &str,
        text: &str,
    ) -> Result<Result<&Regex, EvaluationError>, EvaluationError> {
        if !self.patterns.contains_key(text) {
            self.compiled = self.compiled.saturating_add(pattern_size(text).min(pattern::SIZE_LIMIT));
            if self.compiled > COMPILED {
                return Err(EvaluationError::CostLimitExceeded);
            }
            match Pattern::new(text) {
                Ok(made) => drop(self.patterns.insert(text.into(), made.regex)),
                Err(why) => return Ok(Err(EvaluationError::new(format!("{prefix}{why}")))),
            }
        }
        Ok(self.patterns.get(text).ok_or_else(EvaluationError::no_such_overload))
    }

    fn matches(&mut self, call: &Match) -> Outcome<'a> {
        let text = self.evaluate(&call.text)?;
        let limit = call.limit.as_ref().map(|limit| self.evaluate(limit)).transpose()?;
        let Value::String(text) = text else { return Err(EvaluationError::no_such_overload()) };
        self.charge(crate::cost::matching(text.chars().count() as u64, call.pattern.length))?;
        let regex = &call.pattern.regex;
        match call.kind {
            MatchKind::Matches => Ok(Value::Bool(regex.is_match(&text))),
            MatchKind::Find => Ok(library::find(regex, &text)),
            MatchKind::FindAll => Ok(library::find_all(regex, &text, limit.as_ref())),
        }
    }

    fn list(&mut self, elements: &[ListElement]) -> Outcome<'a> {
        let mut values = Vec::with_capacity(elements.len());
        for element in elements {
            let value = self.evaluate(&element.value)?;
            if !element.optional {
                values.push(value);
                continue;
            }
            match value {
                Value::Optional(value) => values.extend(value.map(Arc::unwrap_or_clone)),
                other => {
                    let shown = library::show(&other);
                    return Err(EvaluationError::new(format!(
                        "cannot initialize optional list element from non-optional value {shown}"
                    )));
                }
            }
        }
        self.charge(LIST_COST)?;
        bounded(Value::List(List::new(values)))
    }

    fn map(&mut self, entries: &[MapEntry]) -> Outcome<'a> {
        let mut map = BTreeMap::new();
        for entry in entries {
            let key = self.evaluate(&entry.key)?;
            let value = self.evaluate(&entry.value)?;
            let Some(known) = Key::of(&key) else {
                return Err(EvaluationError::new(format!(
                    "unsupported key type: {}",
                    key.runtime_type().name()
                )));
            };
            match entry_value(value, entry.optional, &known.to_string())? {
                Some(value) => map.insert(known, value),
                None => map.remove(&known),
            };
        }
        self.charge(MAP_COST)?;
        bounded(Value::Map(Map::new(map)))
    }

    fn object(&mut self, name: &Arc<str>, fields: &[StructField]) -> Outcome<'a> {
        let mut made: Vec<(Arc<str>, Value<'a>)> = Vec::with_capacity(fields.len());
        for field in fields {
            let value = self.evaluate(&field.value)?;
            made.retain(|(name, _)| *name != field.name);
            if let Some(value) = entry_value(value, field.optional, &field.name)? {
                made.push((Arc::clone(&field.name), value));
            }
        }
        self.charge(STRUCT_COST)?;
        let weight = weight::sum(made.iter().map(|(_, value)| value));
        bounded(Value::Object(Arc::new(Object { type_name: Arc::clone(name), fields: made, weight })))
    }
}

/// The value, unless there is too much in it.
fn bounded(value: Value<'_>) -> Outcome<'_> {
    let made = matches!(value, Value::List(_) | Value::Map(_) | Value::Object(_) | Value::Optional(_));
    if made && weight::weight(&value) > weight::MAX {
        return Err(EvaluationError::new("result is too large"));
    }
    Ok(value)
}

/// The value of an entry; none if it is an empty optional.
fn entry_value<'a>(
    value: Value<'a>,
    optional: bool,
    name: &str,
) -> Result<Option<Value<'a>>, EvaluationError> {
    match value {
        value if !optional => Ok(Some(value)),
        Value::Optional(value) => Ok(value.map(Arc::unwrap_or_clone)),
        other => {
            let shown = library::show(&other);
            Err(EvaluationError::new(format!(
                "cannot initialize optional entry '{name}' from non-optional value {shown}"
            )))
        }
    }
}
