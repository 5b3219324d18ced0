//! Validating policies (`.../policy/validating/{dispatcher,validator}.go`).

use std::borrow::Cow;

use http::StatusCode;
use kubewright_cel::Bindings;
use kubewright_cel::limits::{MAX_MESSAGE_EXPRESSION_BYTES, RUNTIME_COST_BUDGET};
use kubewright_kinds::expressions::{Compiler, Expression, Names, Returns};
use kubewright_meta::ApiError;
use serde_json::{Value, json};

use super::super::expressions::{Budget, Scope};
use super::super::matching::Attributes;
use super::super::{Review, warn};
use super::binding::Binding;
use super::policy::Policy;

/// A policy and what it asks for.
pub(super) struct ValidatingPolicy {
    policy: Policy,
    validations: Vec<Validation>,
    /// The values of audit annotations; nobody reads them here, but they may fail.
    audits: Vec<Result<Expression, String>>,
}

struct Validation {
    text: String,
    expression: Result<Expression, String>,
    message: String,
    message_expression: Option<Expression>,
    reason: String,
}

/// Something that a policy has against a request.
struct Finding {
    message: String,
    reason: String,
    /// An expression of an audit annotation failed: that denies, whatever the binding's actions are.
    of_audit: bool,
}

impl Finding {
    fn error(message: String) -> Self {
        Self { message, reason: String::new(), of_audit: false }
    }
}

impl ValidatingPolicy {
    pub(super) fn read(object: &Value) -> Self {
        let (policy, compiler) = Policy::read(object);
        let has_params = policy.has_params();
        let items = |list: &'static str| object["spec"][list].as_array().into_iter().flatten();
        let audits = items("auditAnnotations").map(|audit| {
            let text = audit["valueExpression"].as_str().unwrap_or_default();
            compile(&compiler, text, Names::of_condition(has_params), &Returns::string_or_null())
        });
        let audits = audits.collect();
        let validations =
            items("validations").map(|one| Validation::read(one, &compiler, has_params)).collect();
        Self { policy, validations, audits }
    }

    /// What it finds with one set of parameters. Where it fails and says that this does not matter, nothing.
    fn findings(&self, scope: &Scope<'_>, params: Option<&Value>) -> Vec<Finding> {
        let failed =
            |why: String| if self.policy.ignores_failures { Vec::new() } else { vec![Finding::error(why)] };
        if !self.policy.conditions.is_empty() {
            match self.policy.conditions.hold(scope, params, &self.policy.variables) {
                Ok(true) => {}
                Ok(false) => return Vec::new(),
                Err(why) => return failed(why),
            }
        }
        let mut budget = Budget(RUNTIME_COST_BUDGET);
        match self.evaluate(scope, params, &mut budget) {
            Ok(mut findings) => {
                findings.extend(self.audit_findings(scope, params));
                findings
            }
            Err(why) => failed(why),
        }
    }

    /// What the validations find.
    ///
    /// # Errors
    /// When they cost too much.
    fn evaluate(
        &self,
        scope: &Scope<'_>,
        params: Option<&Value>,
        budget: &mut Budget,
    ) -> Result<Vec<Finding>, String> {
        let authorizer = scope.authorizer();
        let bindings = scope.bindings(params, Some(&authorizer), &self.policy.variables);
        let mut found = Vec::new();
        for validation in &self.validations {
            let evaluated = match &validation.expression {
                Ok(expression) => budget.evaluate(expression, &bindings).map_err(|out| out.to_string())?,
                Err(why) => Err(why.clone()),
            };
            match evaluated {
                Ok(value) if value.as_bool() == Some(true) => {}
                Ok(_) => found.push(Ok(validation)),
                Err(_) if self.policy.ignores_failures => {}
                Err(why) => found.push(Err(why)),
            }
        }
        let bindings = scope.bindings(params, None, &self.policy.variables);
        let findings = found.into_iter().map(|one| match one {
            Ok(validation) => validation.finding(&bindings, budget),
            Err(why) => Ok(Finding::error(why)),
        });
        findings.collect()
    }

    fn audit_findings(&self, scope: &Scope<'_>, params: Option<&Value>) -> Vec<Finding> {
        if self.audits.is_empty() || self.policy.ignores_failures {
            return Vec::new();
        }
        let authorizer = scope.authorizer();
        let bindings = scope.bindings(params, Some(&authorizer), &self.policy.variables);
        let mut budget = Budget(RUNTIME_COST_BUDGET);
        let failures = self.audits.iter().filter_map(|audit| match audit {
            Err(why) => Some(why.clone()),
            Ok(expression) => match budget.evaluate(expression, &bindings) {
                Ok(evaluated) => evaluated.err(),
                Err(out) => Some(out.to_string()),
            },
        });
        failures.map(|why| Finding { of_audit: true, ..Finding::error(why) }).collect()
    }
}

impl Validation {
    fn read(validation: &Value, compiler: &Compiler, has_params: bool) -> Self {
        let text = |field: &str| validation[field].as_str().unwrap_or_default().to_owned();
        let expression = text("expression");
        let message_expression = text("messageExpression");
        Self {
            expression: compile(compiler, &expression, Names::of_condition(has_params), &Returns::bool()),
            text: expression,
            message: text("message").trim().to_owned(),
            message_expression: (!message_expression.is_empty())
                .then(|| {
                    let names = Names::of_message(has_params);
                    compiler.compile(&message_expression, names, &Returns::string()).ok()
                })
                .flatten(),
            reason: text("reason"),
        }
    }

    /// What it finds when it does not hold, with its message.
    ///
    /// # Errors
    /// When the message costs too much.
    fn finding<'v>(&'v self, bindings: &Bindings<'v>, budget: &mut Budget) -> Result<Finding, String> {
        let said = match &self.message_expression {
            Some(expression) => {
                let said = budget.evaluate(expression, bindings);
                said.map_err(|out| format!("failed messageExpression: {out}"))?.ok()
            }
            None => None,
        };
        let said = said.as_ref().and_then(kubewright_cel::Value::as_str).and_then(fit_message);
        let message = said.map_or_else(|| self.plain_message(), str::to_owned);
        Ok(Finding { message, reason: self.reason.clone(), of_audit: false })
    }

    fn plain_message(&self) -> String {
        if self.message.is_empty() {
            format!("failed expression: {}", self.text.trim())
        } else {
            self.message.clone()
        }
    }
}

fn compile(compiler: &Compiler, text: &str, names: Names, returns: &Returns) -> Result<Expression, String> {
    compiler.compile(text, names, returns).map_err(|why| format!("compilation error: {why}"))
}

/// A message that an expression made, where it can be shown.
fn fit_message(message: &str) -> Option<&str> {
    let message = message.trim();
    (!message.is_empty() && message.len() <= MAX_MESSAGE_EXPRESSION_BYTES && !message.contains('\n'))
        .then_some(message)
}

/// What was denied, and by whom.
struct Denial<'a> {
    policy: &'a str,
    binding: Option<&'a str>,
    finding: Finding,
}

/// Asks every validating policy that is about the request.
///
/// # Errors
/// The first denial; 404 where the namespace is not there.
pub(crate) fn validate(
    review: &Review<'_>,
    object: Option<&Value>,
    warnings: &mut Vec<String>,
) -> Result<(), ApiError> {
    let snapshot = review.objects.snapshot();
    let configured = &review.objects.admission().policies;
    let policies = configured.validating.get(&snapshot);
    let attributes = Attributes::of(review, object);
    if policies.is_empty() || attributes.is_exempt_from_policies() {
        return Ok(());
    }
    let bindings = configured.validating_bindings.get(&snapshot);
    let mut denials = Vec::new();
    for policy in policies.iter() {
        let own = bindings.iter().map(|binding| &**binding).filter(|one| one.policy == policy.policy.name);
        let mut own = own.peekable();
        if own.peek().is_some() {
            ask(policy, own, &attributes, &mut denials, warnings)?;
        }
    }
    match denials.into_iter().next() {
        None => Ok(()),
        Some(denial) => Err(refuse(&attributes, denial)),
    }
}

/// Asks one policy through its bindings.
fn ask<'a>(
    policy: &'a ValidatingPolicy,
    bindings: impl Iterator<Item = &'a Binding>,
    attributes: &Attributes<'_>,
    denials: &mut Vec<Denial<'a>>,
    warnings: &mut Vec<String>,
) -> Result<(), ApiError> {
    let of = &policy.policy;
    let (matched, param_kind) = match of.applies(attributes) {
        Ok(Some(found)) => found,
        Ok(None) => return Ok(()),
        Err(why) => {
            denials.extend(misconfigured(of, None, &why));
            return Ok(());
        }
    };
    let mut scope: Option<Scope<'_>> = None;
    for binding in bindings {
        let params = match binding.collect(param_kind.as_deref(), attributes) {
            Ok(params) => params,
            Err(why) => {
                denials.extend(misconfigured(of, Some(&binding.name), &why));
                continue;
            }
        };
        for params in params {
            // Objects are only converted when somebody looks at them.
            let scope = match &mut scope {
                Some(scope) => scope,
                none => none.insert(Scope::of(attributes, &matched, true)?),
            };
            for finding in policy.findings(scope, params.as_ref()) {
                heed(of, binding, finding, denials, warnings);
            }
        }
    }
    Ok(())
}

/// Does with a finding what the binding says.
fn heed<'a>(
    policy: &'a Policy,
    binding: &'a Binding,
    finding: Finding,
    denials: &mut Vec<Denial<'a>>,
    warnings: &mut Vec<String>,
) {
    if binding.warns && !finding.of_audit {
        let warning = format!(
            "Validation failed for ValidatingAdmissionPolicy '{}' with binding '{}': {}",
            policy.name, binding.name, finding.message
        );
        warn(warnings, &warning);
    }
    if binding.denies || finding.of_audit {
        denials.push(Denial { policy: &policy.name, binding: Some(&binding.name), finding });
    }
}

/// A policy or binding that cannot be asked denies, unless failures do not matter.
fn misconfigured<'a>(policy: &'a Policy, binding: Option<&'a str>, why: &str) -> Option<Denial<'a>> {
    let what = if binding.is_none() { "policy" } else { "binding" };
    let finding = Finding::error(format!("failed to configure {what}: {why}"));
    (!policy.ignores_failures).then_some(Denial { policy: &policy.name, binding, finding })
}

fn refuse(attributes: &Attributes<'_>, denial: Denial<'_>) -> ApiError {
    let Denial { policy, binding, finding } = denial;
    let with = binding.map(|binding| format!(" with binding '{binding}'")).unwrap_or_default();
    let message = format!("ValidatingAdmissionPolicy '{policy}'{with} denied request: {}", finding.message);
    let mut error = attributes.forbidden(&message);
    let reason = if finding.reason.is_empty() { "Invalid".to_owned() } else { finding.reason };
    error.code = match reason.as_str() {
        "Forbidden" => StatusCode::FORBIDDEN,
        "Unauthorized" => StatusCode::UNAUTHORIZED,
        "RequestEntityTooLarge" => StatusCode::PAYLOAD_TOO_LARGE,
        _ => StatusCode::UNPROCESSABLE_ENTITY,
    };
    error.reason = Cow::Owned(reason);
    if let Some(details) = &mut error.details {
        details["causes"] = json!([{"message": message}]);
    }
    error
}
