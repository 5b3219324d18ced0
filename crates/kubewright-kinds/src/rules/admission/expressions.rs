//! The expressions of webhooks and policies must compile, and give what is wanted of them.

use kubewright_cel::escaping::is_reserved;

use super::super::at::At;
use super::super::errors::Errors;
use crate::expressions::{Compiler, Names, Returns};

/// The longest expression of an audit annotation.
const MAX_AUDIT_EXPRESSION: usize = 5 * 1024;

/// Checks the expressions of one policy. They may use its variables once these were checked.
pub(super) struct Expressions {
    compiler: Compiler,
    has_params: bool,
}

impl Expressions {
    /// Of a policy, or (without parameters) of a webhook.
    pub(super) fn new(has_params: bool, has_variables: bool) -> Self {
        let compiler = if has_variables { Compiler::with_variables() } else { Compiler::without_variables() };
        Self { compiler, has_params }
    }

    /// A match condition, which cannot use variables.
    pub(super) fn condition(has_params: bool, at: &At<'_>, errors: &mut Errors) {
        let text = at.text().trim();
        if text.is_empty() {
            errors.required(at, "");
        } else {
            let names = Names::of_condition(has_params);
            let compiled = Compiler::without_variables().compile(text, names, &Returns::bool());
            report(at, text, compiled.err(), errors);
        }
    }

    /// A variable, for all that come after it.
    pub(super) fn variable(&mut self, variable: &At<'_>, errors: &mut Errors) {
        let (name, expression) = (variable.get("name"), variable.get("expression"));
        if name.text().trim().is_empty() {
            errors.required(&name, "name is not specified");
        } else if !is_identifier(name.text()) {
            errors.invalid(&name, "must be a valid CEL identifier");
        }
        if expression.text().trim().is_empty() {
            errors.required(&expression, "expression is not specified");
        } else {
            let names = Names::of_condition(self.has_params);
            let compiled = self.compiler.add_variable(name.text(), expression.text(), names);
            report(&expression, expression.text(), compiled.err(), errors);
        }
    }

    /// What a validation asks for.
    pub(super) fn validation(&self, at: &At<'_>, errors: &mut Errors) {
        if at.text().trim().is_empty() {
            errors.required(at, "expression is not specified");
        } else {
            self.check(at, at.text(), Names::of_condition(self.has_params), &Returns::bool(), errors);
        }
    }

    /// What makes the message of a validation.
    pub(super) fn message(&self, at: &At<'_>, errors: &mut Errors) {
        match (at.text(), at.text().trim()) {
            ("", _) => {}
            (_, "") => errors.invalid(at, "must be non-empty if specified"),
            (text, _) => {
                self.check(at, text, Names::of_message(self.has_params), &Returns::string(), errors);
            }
        }
    }

    /// The value of an audit annotation.
    pub(super) fn audit(&self, at: &At<'_>, errors: &mut Errors) {
        let text = at.text().trim();
        if text.is_empty() {
            errors.required(at, "valueExpression is not specified");
        } else if text.len() > MAX_AUDIT_EXPRESSION {
            errors.required(at, &format!("must not exceed {MAX_AUDIT_EXPRESSION} bytes in length"));
        } else {
            let names = Names::of_condition(self.has_params);
            let compiled = self.compiler.compile(text, names, &Returns::string_or_null());
            report(at, at.text(), compiled.err(), errors);
        }
    }

    /// A mutation.
    pub(super) fn mutation(&self, at: &At<'_>, returns: &Returns, errors: &mut Errors) {
        let text = at.text().trim();
        if text.is_empty() {
            errors.required(at, "");
        } else {
            self.check(at, text, Names::of_mutation(self.has_params), returns, errors);
        }
    }

    fn check(&self, at: &At<'_>, text: &str, names: Names, returns: &Returns, errors: &mut Errors) {
        report(at, text, self.compiler.compile(text, names, returns).err(), errors);
    }
}

fn report(at: &At<'_>, text: &str, why: Option<String>, errors: &mut Errors) {
    if let Some(why) = why {
        errors.invalid_as(at, text, why);
    }
}

fn is_identifier(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        && !is_reserved(name)
}
