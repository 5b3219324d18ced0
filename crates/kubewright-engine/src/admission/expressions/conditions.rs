//! Match conditions: expressions that must all hold for a webhook or policy to be about a request
//! (`k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions`).

use kubewright_cel::limits::MATCH_CONDITIONS_COST_BUDGET;
use kubewright_kinds::expressions::{Compiler, Expression, Names, Returns};
use serde_json::Value;

use super::scope::{Budget, Scope};

/// The conditions of a webhook or policy.
#[derive(Debug, Default)]
pub(crate) struct Conditions {
    conditions: Vec<Result<Expression, String>>,
    /// `failurePolicy: Ignore`: what fails does not match.
    ignores_failures: bool,
}

impl Conditions {
    /// Compiles a list of `matchConditions`. What does not compile fails when it is asked.
    pub(crate) fn read(
        conditions: &Value,
        compiler: &Compiler,
        params: bool,
        ignores_failures: bool,
    ) -> Self {
        let conditions = conditions.as_array().into_iter().flatten();
        let conditions = conditions.map(|condition| {
            let text = condition["expression"].as_str().unwrap_or_default();
            let compiled = compiler.compile(text, Names::of_condition(params), &Returns::bool());
            compiled.map_err(|why| format!("compilation error: {why}"))
        });
        Self { conditions: conditions.collect(), ignores_failures }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.conditions.is_empty()
    }

    /// Whether all hold. One that does not hold decides, whatever the others fail with.
    ///
    /// # Errors
    /// Why that cannot be said.
    pub(crate) fn hold(
        &self,
        scope: &Scope<'_>,
        params: Option<&Value>,
        variables: &[(String, Expression)],
    ) -> Result<bool, String> {
        let authorizer = scope.authorizer();
        let bindings = scope.bindings(params, Some(&authorizer), variables);
        let mut budget = Budget(MATCH_CONDITIONS_COST_BUDGET);
        let mut errors: Vec<String> = Vec::new();
        for condition in &self.conditions {
            let evaluated = match condition {
                Ok(expression) => match budget.evaluate(expression, &bindings) {
                    Ok(evaluated) => evaluated,
                    Err(out) => return self.failed(out.to_string()),
                },
                Err(why) => Err(why.clone()),
            };
            match evaluated {
                Ok(value) if value.as_bool() == Some(false) => return Ok(false),
                Ok(_) => {}
                Err(why) if errors.contains(&why) => {}
                Err(why) => errors.push(why),
            }
        }
        match errors.as_slice() {
            [] => Ok(true),
            [one] => self.failed(one.clone()),
            many => self.failed(format!("[{}]", many.join(", "))),
        }
    }

    fn failed(&self, why: String) -> Result<bool, String> {
        if self.ignores_failures { Ok(false) } else { Err(why) }
    }
}
