//! What validating and mutating policies have in common.

use std::sync::Arc;

use kubewright_kinds::Kind;
use kubewright_kinds::expressions::{Compiler, Expression, Names};
use serde_json::Value;

use super::super::expressions::Conditions;
use super::super::matching::{Attributes, Constraints};
use super::params::ParamKind;

/// A policy without what it does.
pub(super) struct Policy {
    pub(super) name: String,
    /// `failurePolicy: Ignore`.
    pub(super) ignores_failures: bool,
    pub(super) param_kind: Option<ParamKind>,
    pub(super) conditions: Conditions,
    pub(super) variables: Vec<(String, Expression)>,
    constraints: Constraints,
}

impl Policy {
    /// Reads a policy; the compiler knows its variables afterwards.
    pub(super) fn read(policy: &Value) -> (Self, Compiler) {
        let spec = &policy["spec"];
        let param_kind = ParamKind::read(&spec["paramKind"]);
        let names = Names::of_condition(param_kind.is_some());
        let mut compiler = Compiler::with_variables();
        let text = |value: &Value, field: &str| value[field].as_str().unwrap_or_default().to_owned();
        let variables = spec["variables"].as_array().into_iter().flatten().filter_map(|variable| {
            let (name, expression) = (text(variable, "name"), text(variable, "expression"));
            let compiled = compiler.add_variable(&name, &expression, names);
            compiled.ok().map(|compiled| (name, compiled))
        });
        let variables = variables.collect();
        let ignores_failures = spec["failurePolicy"] == "Ignore";
        let conditions =
            Conditions::read(&spec["matchConditions"], &compiler, param_kind.is_some(), ignores_failures);
        let policy = Self {
            name: text(&policy["metadata"], "name"),
            ignores_failures,
            param_kind,
            conditions,
            variables,
            constraints: Constraints::of_resources(&spec["matchConstraints"]),
        };
        (policy, compiler)
    }

    /// Whether its expressions may use `params`.
    pub(super) fn has_params(&self) -> bool {
        self.param_kind.is_some()
    }

    /// The version of the resource in which it is about a request, and the kind of its parameters; `None` when it is not.
    ///
    /// # Errors
    /// Why it cannot be asked.
    pub(super) fn applies(&self, attributes: &Attributes<'_>) -> Result<Option<Applies>, String> {
        let matched = self.constraints.matches(attributes).map_err(|error| error.message)?;
        let Some(matched) = matched else { return Ok(None) };
        let params = match &self.param_kind {
            None => None,
            Some(kind) => Some(kind.find(&attributes.review.objects.kinds()).ok_or_else(|| kind.missing())?),
        };
        Ok(Some((matched, params)))
    }
}

/// The kind in whose version a policy sees objects, and the kind of its parameters.
pub(super) type Applies = (Arc<Kind>, Option<Arc<Kind>>);
