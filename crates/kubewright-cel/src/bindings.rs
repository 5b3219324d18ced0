//! What the variables of an expression stand for while it is evaluated.

use std::cell::OnceCell;

use crate::error::EvaluationError;
use crate::program::Program;
use crate::value::Value;

/// The values of variables for one or more evaluations on the same data.
///
/// Holds no more than references and small values; not to be held across an `await`.
#[derive(Default)]
pub struct Bindings<'a> {
    values: Vec<(&'a str, Value<'a>)>,
    lazy: Vec<Lazy<'a>>,
}

/// A field of `variables`: evaluated when it is first asked for, then kept.
pub(crate) struct Lazy<'a> {
    pub(crate) name: &'a str,
    pub(crate) program: &'a Program,
    pub(crate) value: OnceCell<Result<Value<'a>, EvaluationError>>,
}

impl<'a> Bindings<'a> {
    /// No variable has a value.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Lets `name` stand for `value`; the last value that was given counts.
    pub fn bind(&mut self, name: &'a str, value: Value<'a>) -> &mut Self {
        self.values.retain(|(bound, _)| *bound != name);
        self.values.push((name, value));
        self
    }

    /// Lets `variables.NAME` stand for what `program` gives, which is evaluated when it is first asked for, at most once for
    /// these bindings. What it costs is part of the cost of the evaluation that asked first
    /// (k8s.io/apiserver/pkg/admission/plugin/cel/composition.go).
    pub fn define(&mut self, name: &'a str, program: &'a Program) -> &mut Self {
        self.lazy.push(Lazy { name, program, value: OnceCell::new() });
        self
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Value<'a>> {
        self.values.iter().find(|(bound, _)| *bound == name).map(|(_, value)| value)
    }

    pub(crate) fn lazy(&self, name: &str) -> Option<&Lazy<'a>> {
        self.lazy.iter().find(|lazy| lazy.name == name)
    }
}
