//! Variables, and what is selected from values.

use super::plan::{Base, Path, Step, StepKey};
use super::{Evaluator, Outcome};
use crate::bindings::Lazy;
use crate::error::EvaluationError;
use crate::library::{go_type, show};
use crate::limits::PER_CALL_LIMIT;
use crate::value::{List, Value};

impl<'a> Evaluator<'a, '_> {
    pub(super) fn path(&mut self, path: &Path) -> Outcome<'a> {
        let value = self.resolve(path);
        // A test counts as its steps only; and so does a choice (`a ? b : c`) that something is selected from.
        let free = path.test || matches!(path.base, Base::Node(super::Node::Conditional(_)));
        self.charge(u64::from(!free))?;
        match value {
            Ok(Value::Optional(found)) if path.test => Ok(Value::Bool(found.is_some())),
            value => value,
        }
    }

    /// The value of a path; counts what its steps cost. A test of an optional gives what is found as an optional: so it stays where it is
    /// chosen (`a ? has(b.?c.d) : e`), as in cel-go (`conditionalAttribute.Resolve`), and is no truth there.
    pub(super) fn resolve(&mut self, path: &Path) -> Outcome<'a> {
        let mut value = match &path.base {
            Base::Variable(name) => match self.bindings.get(name) {
                Some(value) => value.clone(),
                None => return Err(EvaluationError::new(format!("no such attribute(s): {name}"))),
            },
            Base::Lazy(name) => self.lazy(name)?,
            Base::Local(place) => self.locals[*place].clone()?,
            Base::Node(node) => self.evaluate(node)?,
        };
        let mut optional = false;
        if let Value::Optional(inner) = &value {
            let Some(inner) = inner else { return Ok(value) };
            value = inner.without_declaration();
            optional = true;
        }
        let last = path.steps.len().wrapping_sub(1);
        for (index, step) in path.steps.iter().enumerate() {
            let test = path.test && index == last;
            optional = optional || step.optional;
            let found = match self.step(&value, step, optional || test) {
                Ok(found) => found,
                Err(EvaluationError::CostLimitExceeded) => return Err(EvaluationError::CostLimitExceeded),
                Err(error) => {
                    self.charge(1)?;
                    return Err(error);
                }
            };
            if test {
                self.charge(u64::from(found.is_some() || !optional))?;
                return Ok(if optional { Value::optional(found) } else { Value::Bool(found.is_some()) });
            }
            match found {
                Some(found) => value = found,
                None => return Ok(Value::Optional(None)),
            }
            self.charge(1)?;
        }
        Ok(if optional { Value::optional(Some(value)) } else { value })
    }

    /// What a step selects. Where it is only looked for, nothing; otherwise an error, if it is not there.
    fn step(
        &mut self,
        value: &Value<'a>,
        step: &Step,
        look: bool,
    ) -> Result<Option<Value<'a>>, EvaluationError> {
        match &step.key {
            StepKey::Field(name) => match value {
                Value::Map(map) => match map.field(name)? {
                    None if !look => Err(EvaluationError::new(format!("no such key: {name}"))),
                    found => Ok(found),
                },
                other => select(other, &Value::String((&**name).into()), look),
            },
            StepKey::Constant(key) => select(value, key, look),
            StepKey::Dynamic(node) => {
                let key = match node {
                    super::Node::Path(path) => self.resolve(path)?,
                    other => self.evaluate(other)?,
                };
                if !matches!(
                    key,
                    Value::Bool(_) | Value::Int(_) | Value::Uint(_) | Value::Double(_) | Value::String(_)
                ) {
                    return Err(EvaluationError::new(format!("invalid qualifier type: {}", go_type(&key))));
                }
                select(value, &key, look)
            }
        }
    }

    fn lazy(&mut self, name: &str) -> Outcome<'a> {
        let bindings = self.bindings;
        let Some(Lazy { program, value, .. }) = bindings.lazy(name) else {
            return Err(EvaluationError::new(format!("no such key: {name}")));
        };
        if let Some(value) = value.get() {
            return value.clone();
        }
        let evaluation = super::evaluate(program, bindings, PER_CALL_LIMIT);
        self.lazy_cost = self.lazy_cost.saturating_add(evaluation.cost);
        let result = evaluation.result.map_err(|error| {
            EvaluationError::new(format!("composited variable \"{name}\" fails to evaluate: {error}"))
        });
        value.get_or_init(|| result).clone()
    }
}

/// The element of a list, the value of a map, the field of an object.
fn select<'a>(value: &Value<'a>, key: &Value<'_>, look: bool) -> Result<Option<Value<'a>>, EvaluationError> {
    let missing_key = || EvaluationError::new(format!("no such key: {}", show(key)));
    match value {
        Value::Map(map) => match map.get(key)? {
            None if !look => Err(missing_key()),
            found => Ok(found),
        },
        Value::List(list) => match element(list, key)? {
            None if !look => Err(EvaluationError::new(format!("index out of bounds: {}", show(key)))),
            found => Ok(found),
        },
        Value::Object(object) => {
            let found =
                key.as_str().and_then(|name| object.fields.iter().find(|(field, _)| **field == *name));
            match found {
                None if !look => Err(missing_key()),
                found => Ok(found.map(|(_, value)| value.clone())),
            }
        }
        _ if look => Ok(None),
        _ => Err(missing_key()),
    }
}

fn element<'a>(list: &List<'a>, key: &Value<'_>) -> Result<Option<Value<'a>>, EvaluationError> {
    let index = match key {
        Value::Int(index) => *index,
        Value::Uint(index) => i64::try_from(*index).unwrap_or(-1),
        Value::Double(index) if index.fract() == 0.0 && index.abs() < 1e15 => *index as i64,
        Value::Double(_) => {
            return Err(EvaluationError::new(format!("unsupported index value {} in list", show(key))));
        }
        other => {
            let name = other.runtime_type().name().to_owned();
            return Err(EvaluationError::new(format!("unsupported index type '{name}' in list")));
        }
    };
    usize::try_from(index).ok().and_then(|index| list.get(index)).transpose()
}
