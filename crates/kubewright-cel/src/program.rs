//! A compiled expression.

use crate::bindings::Bindings;
use crate::cost::CostEstimate;
use crate::error::EvaluationError;
use crate::eval::plan::Node;
use crate::types::Type;
use crate::value::Value;

/// An expression that was parsed, checked and made ready; shared and evaluated as often as wanted.
#[derive(Debug)]
pub struct Program {
    output_type: Type,
    estimate: CostEstimate,
    references: Vec<Box<str>>,
    plan: Node,
}

/// What an evaluation gave.
#[derive(Clone, Debug)]
pub struct Evaluation<'a> {
    /// The value, or why there is none.
    pub result: Result<Value<'a>, EvaluationError>,
    /// What it cost, with the lazy variables that it was the first to ask for; counted also where it failed.
    pub cost: u64,
    /// How much was compiled of patterns that the expression has made itself ([`pattern_size`](crate::pattern_size)): work that is
    /// no part of the cost.
    pub compiled: usize,
}

impl Program {
    pub(crate) fn new(
        output_type: Type,
        estimate: CostEstimate,
        references: Vec<Box<str>>,
        plan: Node,
    ) -> Self {
        Self { output_type, estimate, references, plan }
    }

    pub(crate) fn plan(&self) -> &Node {
        &self.plan
    }

    /// The type that the expression has.
    #[must_use]
    pub fn output_type(&self) -> &Type {
        &self.output_type
    }

    /// What an evaluation costs at least and at most, by what is declared about the variables.
    ///
    /// Source: k8s.io/apiserver/pkg/cel/library/cost.go, cel-go's checker/cost.go.
    #[must_use]
    pub fn estimate(&self) -> CostEstimate {
        self.estimate
    }

    /// Whether the expression names the variable `name` (a rule that names `oldSelf` is a transition rule).
    #[must_use]
    pub fn references(&self, name: &str) -> bool {
        self.references.iter().any(|reference| **reference == *name)
    }

    /// Evaluates the expression, for at most `limit` units of cost
    /// ([`PER_CALL_LIMIT`](crate::limits::PER_CALL_LIMIT) in kube-apiserver; the lazy variables have a limit of that each).
    #[must_use]
    pub fn evaluate<'a>(&self, bindings: &Bindings<'a>, limit: u64) -> Evaluation<'a> {
        crate::eval::evaluate(self, bindings, limit)
    }
}
