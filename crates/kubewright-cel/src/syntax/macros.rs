//! Macros: calls that become loops and tests (cel-go's parser/macro.go, cel/library.go, ext/lists.go).

use std::sync::Arc;

use super::ast::{ACCUMULATOR, Ast, Comprehension, Element, Expr, Id, Literal, Offset, operators};
use super::parser::{MAX_HEIGHT, MAX_NODES, Parser};
use super::two_variables;

/// The name of a loop variable that nothing names.
const UNUSED: &str = "#unused";
/// The older name of the accumulator, still refused as a variable.
const OLD_ACCUMULATOR: &str = "__result__";

/// What is wrong with the arguments of a macro, and where.
pub(super) struct Misused(pub(super) Id, pub(super) String);

pub(super) type Expanded = Result<Option<Id>, Misused>;

/// A call, or what the macro of that name makes of it.
pub(super) fn call(
    parser: &mut Parser<'_>,
    at: Offset,
    function: &str,
    target: Option<Id>,
    args: Vec<Id>,
) -> Id {
    let bindings = parser.bindings;
    let expanded = (Builder { ast: &mut parser.ast, at, bindings }).expand(function, target, &args);
    match expanded {
        Ok(Some(id)) => id,
        Ok(None) => parser.ast.add(at, Expr::Call { function: function.into(), target, args }),
        Err(Misused(id, message)) => {
            let offset = parser.ast.offset(id);
            parser.issue(offset, message)
        }
    }
}

/// Makes nodes that stand where the call is.
pub(super) struct Builder<'p> {
    pub(super) ast: &'p mut Ast,
    at: Offset,
    bindings: bool,
}

impl Builder<'_> {
    fn expand(&mut self, function: &str, target: Option<Id>, args: &[Id]) -> Expanded {
        let expanded = match (function, target, args) {
            ("has", None, [tested]) => self.has(*tested),
            ("all", Some(range), [variable, predicate]) => self.all(range, *variable, *predicate),
            ("exists", Some(range), [variable, predicate]) => self.exists(range, *variable, *predicate),
            ("exists_one", Some(range), [variable, predicate]) => {
                self.exists_one(range, *variable, *predicate)
            }
            ("map", Some(range), [variable, transform]) => self.map(range, *variable, None, *transform),
            ("map", Some(range), [variable, filter, transform]) => {
                self.map(range, *variable, Some(*filter), *transform)
            }
            ("filter", Some(range), [variable, predicate]) => {
                self.map(range, *variable, Some(*predicate), *variable)
            }
            ("optMap", Some(target), [variable, expression]) => {
                self.opt_map(target, *variable, *expression, true)
            }
            ("optFlatMap", Some(target), [variable, expression]) => {
                self.opt_map(target, *variable, *expression, false)
            }
            ("bind", Some(target), [variable, value, result])
                if self.bindings && self.name(target).as_deref() == Some("cel") =>
            {
                self.named(*variable, *value, *result)
            }
            ("sortBy", Some(target), [variable, key]) => self.sort_by(target, *variable, *key),
            (_, Some(range), [first, second, rest @ ..]) => {
                return two_variables::expand(self, function, range, (*first, *second), rest);
            }
            _ => return Ok(None),
        };
        expanded.map(Some)
    }

    pub(super) fn node(&mut self, expr: Expr) -> Id {
        self.ast.add(self.at, expr)
    }

    pub(super) fn literal(&mut self, literal: Literal) -> Id {
        self.node(Expr::Literal(literal))
    }

    pub(super) fn ident(&mut self, name: &str) -> Id {
        self.node(Expr::Ident(name.into()))
    }

    pub(super) fn accumulator(&mut self) -> Id {
        self.ident(ACCUMULATOR)
    }

    pub(super) fn call(&mut self, function: &str, args: Vec<Id>) -> Id {
        self.node(Expr::Call { function: function.into(), target: None, args })
    }

    fn member_call(&mut self, target: Id, function: &str, args: Vec<Id>) -> Id {
        self.node(Expr::Call { function: function.into(), target: Some(target), args })
    }

    pub(super) fn list(&mut self, elements: &[Id]) -> Id {
        let elements = elements.iter().map(|value| Element { value: *value, optional: false }).collect();
        self.node(Expr::List(elements))
    }

    pub(super) fn name(&self, id: Id) -> Option<Arc<str>> {
        match self.ast.expr(id) {
            Expr::Ident(name) => Some(Arc::clone(name)),
            _ => None,
        }
    }

    /// The name of a loop variable, or what is wrong with it.
    fn variable(&self, id: Id, message: &str) -> Result<Arc<str>, Misused> {
        let name = self.name(id).ok_or_else(|| Misused(id, message.to_owned()))?;
        Self::check_variable(id, &name)?;
        Ok(name)
    }

    pub(super) fn check_variable(id: Id, name: &str) -> Result<(), Misused> {
        if name == ACCUMULATOR || name == OLD_ACCUMULATOR {
            return Err(Misused(id, "iteration variable overwrites accumulator variable".to_owned()));
        }
        Ok(())
    }

    fn has(&mut self, tested: Id) -> Result<Id, Misused> {
        let Expr::Select { operand, field, test_only: false } = self.ast.expr(tested) else {
            return Err(Misused(tested, "invalid argument to has() macro".to_owned()));
        };
        let (operand, field) = (*operand, Arc::clone(field));
        Ok(self.node(Expr::Select { operand, field, test_only: true }))
    }

    fn all(&mut self, range: Id, variable: Id, predicate: Id) -> Result<Id, Misused> {
        let variable = self.variable(variable, "argument must be a simple name")?;
        let fold = self.all_fold(range, variable, None, predicate);
        Ok(self.node(fold))
    }

    fn exists(&mut self, range: Id, variable: Id, predicate: Id) -> Result<Id, Misused> {
        let variable = self.variable(variable, "argument must be a simple name")?;
        let fold = self.exists_fold(range, variable, None, predicate);
        Ok(self.node(fold))
    }

    fn exists_one(&mut self, range: Id, variable: Id, predicate: Id) -> Result<Id, Misused> {
        let variable = self.variable(variable, "argument must be a simple name")?;
        let fold = self.exists_one_fold(range, variable, None, predicate);
        Ok(self.node(fold))
    }

    /// `map` and `filter`: those for which the filter holds, transformed.
    fn map(&mut self, range: Id, variable: Id, filter: Option<Id>, transform: Id) -> Result<Id, Misused> {
        let variable = self.variable(variable, "argument is not an identifier")?;
        let fold = self.list_fold(range, variable, None, filter, transform);
        Ok(self.node(fold))
    }

    pub(super) fn all_fold(
        &mut self,
        range: Id,
        variable: Arc<str>,
        second: Option<Arc<str>>,
        predicate: Id,
    ) -> Expr {
        let init = self.literal(Literal::Bool(true));
        let so_far = self.accumulator();
        let condition = self.call(operators::NOT_STRICTLY_FALSE, vec![so_far]);
        let so_far = self.accumulator();
        let step = self.call(operators::AND, vec![so_far, predicate]);
        let result = self.accumulator();
        fold(range, variable, second, [init, condition, step, result])
    }

    pub(super) fn exists_fold(
        &mut self,
        range: Id,
        variable: Arc<str>,
        second: Option<Arc<str>>,
        predicate: Id,
    ) -> Expr {
        let init = self.literal(Literal::Bool(false));
        let so_far = self.accumulator();
        let negated = self.call(operators::NOT, vec![so_far]);
        let condition = self.call(operators::NOT_STRICTLY_FALSE, vec![negated]);
        let so_far = self.accumulator();
        let step = self.call(operators::OR, vec![so_far, predicate]);
        let result = self.accumulator();
        fold(range, variable, second, [init, condition, step, result])
    }

    pub(super) fn exists_one_fold(
        &mut self,
        range: Id,
        variable: Arc<str>,
        second: Option<Arc<str>>,
        predicate: Id,
    ) -> Expr {
        let init = self.literal(Literal::Int(0));
        let condition = self.literal(Literal::Bool(true));
        let (so_far, one) = (self.accumulator(), self.literal(Literal::Int(1)));
        let more = self.call(operators::ADD, vec![so_far, one]);
        let same = self.accumulator();
        let step = self.call(operators::CONDITIONAL, vec![predicate, more, same]);
        let (so_far, one) = (self.accumulator(), self.literal(Literal::Int(1)));
        let result = self.call(operators::EQUALS, vec![so_far, one]);
        fold(range, variable, second, [init, condition, step, result])
    }

    pub(super) fn list_fold(
        &mut self,
        range: Id,
        variable: Arc<str>,
        second: Option<Arc<str>>,
        filter: Option<Id>,
        transform: Id,
    ) -> Expr {
        let init = self.list(&[]);
        let condition = self.literal(Literal::Bool(true));
        let (so_far, added) = (self.accumulator(), self.list(&[transform]));
        let mut step = self.call(operators::ADD, vec![so_far, added]);
        if let Some(filter) = filter {
            let same = self.accumulator();
            step = self.call(operators::CONDITIONAL, vec![filter, step, same]);
        }
        let result = self.accumulator();
        fold(range, variable, second, [init, condition, step, result])
    }

    fn opt_map(&mut self, target: Id, variable: Id, expression: Id, wrap: bool) -> Result<Id, Misused> {
        let macro_name = if wrap { "optMap" } else { "optFlatMap" };
        let name = self.name(variable).ok_or_else(|| {
            Misused(variable, format!("{macro_name}() variable name must be a simple identifier"))
        })?;
        let copy = self.copy(target).ok_or_else(|| Misused(target, "expression is too large".to_owned()))?;
        let condition = self.member_call(target, "hasValue", Vec::new());
        let value = self.member_call(copy, "value", Vec::new());
        let mut mapped = self.bind(name, value, expression);
        if wrap {
            mapped = self.call("optional.of", vec![mapped]);
        }
        let none = self.call("optional.none", Vec::new());
        Ok(self.call(operators::CONDITIONAL, vec![condition, mapped, none]))
    }

    fn sort_by(&mut self, target: Id, variable: Id, key: Id) -> Result<Id, Misused> {
        let sortable = matches!(
            self.ast.expr(target),
            Expr::List(_) | Expr::Select { .. } | Expr::Ident(_) | Expr::Comprehension(_) | Expr::Call { .. }
        );
        if !sortable {
            let message =
                "sortBy can only be applied to a list, identifier, comprehension, call or select expression";
            return Err(Misused(target, message.to_owned()));
        }
        let input = "@__sortBy_input__";
        let range = self.ident(input);
        let keys = self.map(range, variable, None, key)?;
        let list = self.ident(input);
        let sorted = self.member_call(list, operators::SORT_BY_KEYS, vec![keys]);
        Ok(self.bind(input.into(), target, sorted))
    }

    fn named(&mut self, variable: Id, value: Id, result: Id) -> Result<Id, Misused> {
        let misused = || Misused(variable, "cel.bind() variable names must be simple identifiers".to_owned());
        let name = self.name(variable).ok_or_else(misused)?;
        Ok(self.bind(name, value, result))
    }

    /// `result`, in which `name` stands for `value`: a loop without a round.
    fn bind(&mut self, name: Arc<str>, value: Id, result: Id) -> Id {
        let range = self.list(&[]);
        let condition = self.literal(Literal::Bool(false));
        let step = self.ident(&name);
        let fold = Comprehension {
            range,
            variable: UNUSED.into(),
            second_variable: None,
            accumulator: name,
            init: value,
            condition,
            step,
            result,
        };
        self.node(Expr::Comprehension(Box::new(fold)))
    }

    /// A copy of a tree, unless there are too many nodes already.
    fn copy(&mut self, id: Id) -> Option<Id> {
        if self.ast.len() > MAX_NODES || self.ast.height(id) > MAX_HEIGHT {
            return None;
        }
        let mut expr = self.ast.expr(id).clone();
        let mut failed = false;
        expr.for_children_mut(|child| match self.copy(*child) {
            Some(copy) => *child = copy,
            None => failed = true,
        });
        let offset = self.ast.offset(id);
        (!failed).then(|| self.ast.add(offset, expr))
    }
}

/// A loop with a result that is gathered: how it begins, whether it goes on, a step, and what comes out.
fn fold(range: Id, variable: Arc<str>, second_variable: Option<Arc<str>>, parts: [Id; 4]) -> Expr {
    let [init, condition, step, result] = parts;
    let accumulator = ACCUMULATOR.into();
    Expr::Comprehension(Box::new(Comprehension {
        range,
        variable,
        second_variable,
        accumulator,
        init,
        condition,
        step,
        result,
    }))
}
