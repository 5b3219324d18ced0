//! Loops.

use std::collections::btree_map::Entry;
use std::sync::Arc;

use super::plan::{Append, Fold, Insert};
use super::{Evaluator, LIST_COST, Node, Outcome, bounded};
use crate::error::EvaluationError;
use crate::library::{go_type, show};
use crate::value::{Items, Key, List, Map, Value, weight};

impl<'a> Evaluator<'a, '_> {
    pub(super) fn fold(&mut self, fold: &Fold) -> Outcome<'a> {
        let range = self.evaluate(&fold.range)?;
        self.locals.truncate(fold.first_local);
        let init = self.evaluate(&fold.init);
        if matches!(init, Err(EvaluationError::CostLimitExceeded)) {
            return init;
        }
        self.locals.truncate(fold.first_local);
        self.locals.extend([init, Ok(Value::Null), Ok(Value::Null)]);
        self.rounds(fold, &range)?;
        let result = self.evaluate(&fold.result);
        self.locals.truncate(fold.first_local);
        result
    }

    fn rounds(&mut self, fold: &Fold, range: &Value<'a>) -> Result<(), EvaluationError> {
        match range {
            Value::List(list) => {
                for index in 0..list.len() {
                    let Some(element) = list.get(index) else { break };
                    let variables = if fold.two_variables {
                        [Ok(Value::Int(i64::try_from(index).unwrap_or(i64::MAX))), element]
                    } else {
                        [element, Ok(Value::Null)]
                    };
                    if !self.round(fold, variables)? {
                        break;
                    }
                }
                Ok(())
            }
            Value::Map(map) => {
                for key in map.keys() {
                    let value = if fold.two_variables {
                        map.get(&key).map(|value| value.unwrap_or(Value::Null))
                    } else {
                        Ok(Value::Null)
                    };
                    if !self.round(fold, [Ok(key), value])? {
                        break;
                    }
                }
                Ok(())
            }
            other if fold.two_variables => {
                Err(EvaluationError::new(format!("unsupported comprehension range type: {}", go_type(other))))
            }
            other => Err(EvaluationError::new(format!("got '{}', expected iterable type", go_type(other)))),
        }
    }

    /// One round; whether there is to be another.
    fn round(&mut self, fold: &Fold, [first, second]: [Outcome<'a>; 2]) -> Result<bool, EvaluationError> {
        let place = fold.first_local;
        self.locals[place + 1] = first;
        self.locals[place + 2] = second;
        match self.evaluate(&fold.condition) {
            Err(EvaluationError::CostLimitExceeded) => return Err(EvaluationError::CostLimitExceeded),
            Ok(Value::Bool(false)) => return Ok(false),
            _ => {}
        }
        let value = self.evaluate(&fold.step);
        if matches!(value, Err(EvaluationError::CostLimitExceeded)) {
            return Err(EvaluationError::CostLimitExceeded);
        }
        // Whatever the step left above the variables of this loop is no longer needed.
        self.locals.truncate(place + 3);
        self.locals[place] = value;
        Ok(true)
    }

    /// Takes the accumulator out of its place, so that nothing else holds it.
    fn take(&mut self, place: usize) -> Outcome<'a> {
        std::mem::replace(&mut self.locals[place], Ok(Value::Null))
    }

    pub(super) fn append(&mut self, append: &Append) -> Outcome<'a> {
        self.charge(1)?;
        let element = self.evaluate(&append.element);
        if matches!(element, Err(EvaluationError::CostLimitExceeded)) {
            return element;
        }
        if !matches!(append.element, Node::Constant(_)) {
            self.charge(LIST_COST)?;
        }
        self.charge(1)?;
        let so_far = self.take(append.accumulator)?;
        let element = element?;
        let Value::List(List { items: Items::Values(mut values, so_much), kind }) = so_far else {
            return Err(EvaluationError::no_such_overload());
        };
        let added = weight::weight(&element);
        Arc::make_mut(&mut values).push(element);
        bounded(Value::List(List { items: Items::Values(values, so_much.saturating_add(added)), kind }))
    }

    pub(super) fn insert(&mut self, insert: &Insert) -> Outcome<'a> {
        self.charge(1)?;
        let key = self.evaluate(&insert.key)?;
        let value = self.evaluate(&insert.value)?;
        self.charge(1)?;
        let so_far = self.take(insert.accumulator)?;
        let (Value::Map(Map::Values(mut entries, so_much)), Some(known)) = (so_far, Key::of(&key)) else {
            return Err(EvaluationError::no_such_overload());
        };
        let added = weight::weight(&value);
        match Arc::make_mut(&mut entries).entry(known) {
            Entry::Vacant(vacant) => vacant.insert(value),
            Entry::Occupied(_) => {
                return Err(EvaluationError::new(format!(
                    "insert failed: key {} already exists",
                    show(&key)
                )));
            }
        };
        bounded(Value::Map(Map::Values(entries, so_much.saturating_add(added))))
    }
}
