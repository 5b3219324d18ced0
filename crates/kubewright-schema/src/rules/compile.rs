//! Rules as programs.

use kubewright_cel::{CompileErrors, DeclType, Environment, Program, Type};

use super::super::node::{Node, Reason, Rule};
use super::field_path;

/// The name of the type of `self`, which kube-apiserver makes up, too: nobody can rely on it.
const SELF_TYPE: &str = "selfType0";

/// A rule and what became of it.
#[derive(Debug)]
pub struct Compiled {
    /// What is told when it does not hold: its message, or the rule itself.
    pub told: Box<str>,
    /// `message`, or `failed rule: …`.
    pub message: Box<str>,
    /// The expression that makes the message; empty for none.
    pub message_expression: Box<str>,
    /// The reason of the error, where the rule names one.
    pub reason: Option<Reason>,
    pub(super) optional_old_self: bool,
    /// Where its failures are told, below the value that it is about.
    pub path: Option<Box<str>>,
    /// Nothing for an empty rule.
    pub program: Result<Option<Program>, String>,
    /// Nothing where there is no expression for the message.
    pub message_program: Result<Option<Program>, String>,
}

impl Compiled {
    /// Whether it compares an object with what it was.
    pub fn uses_old_self(&self) -> bool {
        self.program().is_some_and(|program| program.references("oldSelf"))
    }

    /// The program, where there is one that was compiled.
    pub fn program(&self) -> Option<&Program> {
        self.program.as_ref().ok().and_then(Option::as_ref)
    }
}

/// Compiles the rules of a schema, not of those below it. What is wrong with one is kept in its place.
pub fn compile(node: &Node, declaration: &DeclType) -> Vec<Compiled> {
    if node.rules.is_empty() {
        return Vec::new();
    }
    let named = declaration.named(SELF_TYPE);
    let with_old =
        |old: DeclType| Environment::new().variable("self", named.clone()).variable("oldSelf", old);
    let plain = with_old(named.clone());
    let optional = with_old(DeclType::of(Type::optional(named.cel_type())));
    let environment = |rule: &Rule| if rule.optional_old_self == Some(true) { &optional } else { &plain };
    node.rules.iter().map(|rule| one(rule, node, environment(rule))).collect()
}

fn one(rule: &Rule, node: &Node, environment: &Environment) -> Compiled {
    let code = rule.rule.trim();
    let told = if rule.message.is_empty() { code } else { rule.message.trim() };
    let message = if rule.message.is_empty() { format!("failed rule: {code}") } else { told.to_owned() };
    let program = if code.is_empty() { Ok(None) } else { compiled_rule(rule, environment).map(Some) };
    let message_program = match &program {
        Ok(Some(_)) if !rule.message_expression.is_empty() => compiled_message(rule, environment).map(Some),
        _ => Ok(None),
    };
    let path = (!rule.field_path.is_empty())
        .then(|| field_path::follow(&rule.field_path, node, true).ok())
        .flatten()
        .map(|found| found.path.into());
    Compiled {
        told: told.into(),
        message: message.into(),
        message_expression: rule.message_expression.clone(),
        reason: rule.reason,
        optional_old_self: rule.optional_old_self == Some(true),
        path,
        program,
        message_program,
    }
}

fn compiled_rule(rule: &Rule, environment: &Environment) -> Result<Program, String> {
    let program = environment.compile(&rule.rule).map_err(|errors| errors.detail())?;
    if *program.output_type() == Type::Bool {
        Ok(program)
    } else {
        Err("cel expression must evaluate to a bool".to_owned())
    }
}

fn compiled_message(rule: &Rule, environment: &Environment) -> Result<Program, String> {
    let compiled = environment.compile(&rule.message_expression);
    let program = compiled.map_err(|errors| match errors {
        CompileErrors::Issues { .. } => format!("messageExpression compilation failed: {errors}"),
        CompileErrors::Instantiation(_) => format!("messageExpression instantiation failed: {errors}"),
    })?;
    if *program.output_type() == Type::String {
        Ok(program)
    } else {
        Err("messageExpression must evaluate to a string".to_owned())
    }
}
