//! From the checked tree to the plan (cel-go's interpreter/planner.go, with the optimizations of decorators.go: constants are
//! made beforehand, and so are patterns).

use std::sync::Arc;

use super::pattern::Pattern;
use super::plan::{
    Append, Base, Call, Fold, Insert, ListElement, MapEntry, Match, MatchKind, Node, Path, Step, StepKey,
    StructField,
};
use crate::check::{Call as Resolved, Checked, Reference};
use crate::cost::CallCost;
use crate::error::EvaluationError;
use crate::library;
use crate::syntax::ast::{ACCUMULATOR, Comprehension, Expr, Id, Literal, operators};
use crate::types::{Fields, ObjectType, Type, names};
use crate::value::{List, Text, Value};

/// Makes a plan.
///
/// # Errors
///
/// If a constant of the expression cannot be made, or a pattern is none.
pub(crate) fn plan(checked: &Checked) -> Result<Node, EvaluationError> {
    Planner { checked, locals: Vec::new() }.plan(checked.parsed.root)
}

struct Planner<'c> {
    checked: &'c Checked,
    /// The names of the variables of loops, by place.
    locals: Vec<Option<Arc<str>>>,
}

type Planned = Result<Node, EvaluationError>;

impl Planner<'_> {
    fn plan(&mut self, id: Id) -> Planned {
        match self.checked.expr(id) {
            Expr::Missing => Err(EvaluationError::new("invalid expression")),
            Expr::Literal(literal) => Ok(Node::Constant(constant(literal))),
            Expr::Ident(name) => self.ident(id, name),
            Expr::Select { operand, field, test_only } => self.select(*operand, field, *test_only),
            Expr::Call { function, target, args } => self.call(id, function, *target, args),
            Expr::List(_) => self.list(id),
            Expr::Map(_) => self.map(id),
            Expr::Struct { name, fields } => {
                let mut planned = Vec::with_capacity(fields.len());
                for field in fields {
                    let value = self.plan(field.value)?;
                    planned.push(StructField {
                        name: Arc::clone(&field.name),
                        value,
                        optional: field.optional,
                    });
                }
                Ok(Node::Struct(Arc::clone(name), planned))
            }
            Expr::Comprehension(fold) => self.fold(fold),
        }
    }

    fn ident(&self, id: Id, name: &Arc<str>) -> Planned {
        let base = match self.checked.reference(id) {
            Reference::Type(Type::Object(ObjectType { fields: Fields::Declared(_), .. })) => {
                return Err(undefined(name));
            }
            Reference::Type(_) if matches!(&**name, "duration" | "timestamp") => return Err(undefined(name)),
            Reference::Type(named) => return Ok(Node::Constant(Value::Type(Arc::new(named.clone())))),
            Reference::Local => match self.locals.iter().rposition(|local| local.as_ref() == Some(name)) {
                Some(place) => Base::Local(place),
                None => Base::Variable(Arc::clone(name)),
            },
            _ => Base::Variable(Arc::clone(name)),
        };
        Ok(Node::Path(Box::new(Path { base, steps: Vec::new(), test: false })))
    }

    /// The path to the operand, to which a step can be added.
    fn path(&mut self, operand: Id) -> Result<Box<Path>, EvaluationError> {
        Ok(match self.plan(operand)? {
            Node::Path(path) if !path.test => path,
            other => Box::new(Path { base: Base::Node(other), steps: Vec::new(), test: false }),
        })
    }

    fn select(&mut self, operand: Id, field: &Arc<str>, test: bool) -> Planned {
        if self.is_lazy_variables(operand) {
            // What is declared is there.
            if test {
                return Ok(Node::Constant(Value::Bool(true)));
            }
            let steps = Vec::new();
            return Ok(Node::Path(Box::new(Path {
                base: Base::Lazy(Arc::clone(field)),
                steps,
                test: false,
            })));
        }
        let mut path = self.path(operand)?;
        path.steps.push(Step { key: StepKey::Field(Arc::clone(field)), optional: false });
        path.test = test;
        Ok(Node::Path(path))
    }

    fn is_lazy_variables(&self, id: Id) -> bool {
        let Type::Object(ObjectType { name, fields: Fields::Declared(_) }) = self.checked.type_of(id) else {
            return false;
        };
        **name == *names::VARIABLES && matches!(self.checked.reference(id), Reference::Variable)
    }

    fn call(&mut self, id: Id, function: &str, target: Option<Id>, args: &[Id]) -> Planned {
        let all: Vec<Id> = target.into_iter().chain(args.iter().copied()).collect();
        if let (None, [operand, key]) = (target, all.as_slice()) {
            match function {
                operators::OPTIONAL_SELECT | operators::OPTIONAL_INDEX => {
                    return self.index(*operand, *key, true);
                }
                operators::INDEX => return self.index(*operand, *key, false),
                _ => {}
            }
        }
        if let Some(node) = self.accumulate(function, &all)? {
            return Ok(node);
        }
        let mut nodes = Vec::with_capacity(all.len());
        for arg in all {
            nodes.push(self.plan(arg)?);
        }
        let Reference::Call(resolved) = self.checked.reference(id) else {
            return Err(EvaluationError::no_such_overload());
        };
        operator(function, nodes).or_else(|nodes| function_call(resolved, nodes))
    }

    fn index(&mut self, operand: Id, key: Id, optional: bool) -> Planned {
        let mut path = self.path(operand)?;
        let key = match self.plan(key)? {
            Node::Constant(Value::String(name)) => StepKey::Field((&*name).into()),
            Node::Constant(value) => StepKey::Constant(value),
            other => StepKey::Dynamic(other),
        };
        path.steps.push(Step { key, optional });
        Ok(Node::Path(path))
    }

    /// The steps of loops that gather a list or a map.
    fn accumulate(&mut self, function: &str, args: &[Id]) -> Result<Option<Node>, EvaluationError> {
        let is_accumulator =
            |id: &Id| matches!(self.checked.expr(*id), Expr::Ident(name) if **name == *ACCUMULATOR);
        let Some(accumulator) = self.locals.iter().rposition(|local| local.as_deref() == Some(ACCUMULATOR))
        else {
            return Ok(None);
        };
        Ok(match (function, args) {
            (operators::ADD, [so_far, added]) if is_accumulator(so_far) => match self.checked.expr(*added) {
                Expr::List(elements) if elements.len() == 1 && !elements[0].optional => {
                    let element = self.plan(elements[0].value)?;
                    Some(Node::Append(Box::new(Append { accumulator, element })))
                }
                _ => None,
            },
            (operators::MAP_INSERT, [so_far, key, value]) if is_accumulator(so_far) => {
                let (key, value) = (self.plan(*key)?, self.plan(*value)?);
                Some(Node::Insert(Box::new(Insert { accumulator, key, value })))
            }
            _ => None,
        })
    }

    fn list(&mut self, id: Id) -> Planned {
        let Expr::List(elements) = self.checked.expr(id) else {
            return Err(EvaluationError::no_such_overload());
        };
        let mut planned = Vec::with_capacity(elements.len());
        for element in elements {
            planned.push(ListElement { value: self.plan(element.value)?, optional: element.optional });
        }
        let all_constant =
            planned.iter().all(|element| !element.optional && matches!(element.value, Node::Constant(_)));
        if !all_constant {
            return Ok(Node::List(planned));
        }
        let values = planned.into_iter().filter_map(|element| match element.value {
            Node::Constant(value) => Some(value),
            _ => None,
        });
        Ok(Node::Constant(Value::List(List::new(values.collect()))))
    }

    fn map(&mut self, id: Id) -> Planned {
        let Expr::Map(entries) = self.checked.expr(id) else {
            return Err(EvaluationError::no_such_overload());
        };
        let mut planned = Vec::with_capacity(entries.len());
        for entry in entries {
            let (key, value) = (self.plan(entry.key)?, self.plan(entry.value)?);
            planned.push(MapEntry { key, value, optional: entry.optional });
        }
        let constants = planned.iter().map(|entry| match (&entry.key, &entry.value) {
            (Node::Constant(key), Node::Constant(value)) if !entry.optional => {
                crate::value::Key::of(key).map(|key| (key, value.clone()))
            }
            _ => None,
        });
        match constants.collect::<Option<std::collections::BTreeMap<_, _>>>() {
            Some(constants) => Ok(Node::Constant(Value::Map(crate::value::Map::new(constants)))),
            None => Ok(Node::Map(planned)),
        }
    }

    fn fold(&mut self, fold: &Comprehension) -> Planned {
        let range = self.plan(fold.range)?;
        let init = self.plan(fold.init)?;
        let first_local = self.locals.len();
        self.locals.push(Some(Arc::clone(&fold.accumulator)));
        self.locals.push(Some(Arc::clone(&fold.variable)));
        self.locals.push(fold.second_variable.clone());
        let condition = self.plan(fold.condition)?;
        let step = self.plan(fold.step)?;
        self.locals[first_local + 1] = None;
        self.locals[first_local + 2] = None;
        let result = self.plan(fold.result)?;
        self.locals.truncate(first_local);
        let two_variables = fold.second_variable.is_some();
        Ok(Node::Fold(Box::new(Fold { range, first_local, two_variables, init, condition, step, result })))
    }
}

fn undefined(name: &str) -> EvaluationError {
    EvaluationError::new(format!("reference to undefined type: {name}"))
}

fn constant(literal: &Literal) -> Value<'static> {
    match literal {
        Literal::Null => Value::Null,
        Literal::Bool(truth) => Value::Bool(*truth),
        Literal::Int(number) => Value::Int(*number),
        Literal::Uint(number) => Value::Uint(*number),
        Literal::Double(number) => Value::Double(*number),
        Literal::String(text) => Value::String(Text::Shared(Arc::clone(text))),
        Literal::Bytes(bytes) => Value::Bytes(Arc::clone(bytes)),
    }
}

/// The operators and functions that do not just take the values of their arguments; the others are given back.
fn operator(function: &str, args: Vec<Node>) -> Result<Node, Vec<Node>> {
    let args = match <[Node; 3]>::try_from(args) {
        Ok(parts) if function == operators::CONDITIONAL => return Ok(Node::Conditional(Box::new(parts))),
        Ok(parts) => return Err(parts.into()),
        Err(args) => args,
    };
    let args = match <[Node; 2]>::try_from(args) {
        Ok(sides) => {
            return match function {
                operators::AND => Ok(Node::And(Box::new(sides))),
                operators::OR => Ok(Node::Or(Box::new(sides))),
                operators::EQUALS => Ok(Node::Equal(Box::new(sides), false)),
                "_!=_" => Ok(Node::Equal(Box::new(sides), true)),
                "or" => Ok(Node::OptionalOr(Box::new(sides), false)),
                "orValue" => Ok(Node::OptionalOr(Box::new(sides), true)),
                _ => Err(sides.into()),
            };
        }
        Err(args) => args,
    };
    match <[Node; 1]>::try_from(args) {
        Ok([inner]) if function == operators::NOT_STRICTLY_FALSE => {
            Ok(Node::NotStrictlyFalse(Box::new(inner)))
        }
        Ok(args) => Err(args.into()),
        Err(args) => Err(args),
    }
}

fn function_call(resolved: &Resolved, args: Vec<Node>) -> Planned {
    let function = resolved.function;
    let overload = match resolved.overloads.as_slice() {
        [only] => function.overloads[*only].id,
        _ => "",
    };
    let args = match prepared(function.name, overload, args)? {
        Ok(node) => return Ok(node),
        Err(args) => args,
    };
    let candidates = library::candidates(function, &resolved.overloads);
    if is_conversion(function.name)
        && let [Node::Constant(argument)] = args.as_slice()
    {
        return library::dispatch(function, &candidates, std::slice::from_ref(argument)).map(Node::Constant);
    }
    let cost = CallCost::new(function.name, overload);
    Ok(Node::Call(Box::new(Call { function, candidates, args, cost })))
}

/// Calls with constants that are made ready beforehand: patterns, and lists that something is looked for in.
fn prepared(
    function: &str,
    overload: &str,
    mut args: Vec<Node>,
) -> Result<Result<Node, Vec<Node>>, EvaluationError> {
    let kind = match function {
        "matches" if overload == "matches_string" => MatchKind::Matches,
        "find" => MatchKind::Find,
        "findAll" => MatchKind::FindAll,
        "@in" if overload == "in_list" => {
            let Some(Node::Constant(Value::List(list))) = args.get(1) else { return Ok(Err(args)) };
            let constants = list.values()?;
            if !constants.iter().all(is_simple) {
                return Ok(Err(args));
            }
            args.truncate(1);
            return Ok(args.pop().map_or(Err(Vec::new()), |item| {
                if constants.is_empty() {
                    return Ok(Node::Constant(Value::Bool(false)));
                }
                Ok(Node::InConstants(Box::new(item), constants))
            }));
        }
        _ => return Ok(Err(args)),
    };
    let Some(Node::Constant(Value::String(pattern))) = args.get(1) else { return Ok(Err(args)) };
    let pattern = Pattern::new(pattern).map_err(EvaluationError::new)?;
    let mut rest = args.into_iter();
    let (Some(text), Some(_), limit) = (rest.next(), rest.next(), rest.next()) else {
        return Err(EvaluationError::no_such_overload());
    };
    Ok(Ok(Node::Match(Box::new(Match { kind, text, pattern, limit }))))
}

fn is_simple(value: &Value<'_>) -> bool {
    matches!(value, Value::Bool(_) | Value::Int(_) | Value::Uint(_) | Value::Double(_) | Value::String(_))
}

fn is_conversion(function: &str) -> bool {
    matches!(
        function,
        "bool" | "bytes" | "double" | "duration" | "dyn" | "int" | "string" | "timestamp" | "type" | "uint"
    )
}
