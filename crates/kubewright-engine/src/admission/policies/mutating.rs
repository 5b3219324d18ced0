//! Mutating policies (`.../policy/mutating/dispatcher.go`).

use std::borrow::Cow;
use std::sync::Arc;

use kubewright_cel::limits::RUNTIME_COST_BUDGET;
use kubewright_kinds::Kind;
use kubewright_kinds::expressions::{Compiler, Expression, Names, Returns};
use kubewright_meta::{ApiError, object};
use serde_json::{Value, json};

use super::super::expressions::{Budget, Scope};
use super::super::matching::{Attributes, converted};
use super::super::reinvocation::Round;
use super::super::{Review, adopt};
use super::binding::Binding;
use super::patch;
use super::policy::Policy;

/// A policy and what it changes.
pub(super) struct MutatingPolicy {
    policy: Policy,
    mutations: Vec<Mutation>,
    /// `reinvocationPolicy: IfNeeded`.
    is_reinvoked: bool,
}

/// One change.
struct Mutation {
    form: Form,
    expression: Result<Expression, String>,
}

/// What the expression of a change gives.
#[derive(Clone, Copy)]
enum Form {
    JsonPatch,
    ApplyConfiguration,
}

/// A policy, a binding and a parameter, by name: what is invoked again or not.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::admission) struct Invocation {
    policy: String,
    binding: String,
    param: (String, String),
}

/// An [`Invocation`] with all that it needs.
struct Planned {
    policy: Arc<MutatingPolicy>,
    binding: Arc<Binding>,
    params: Option<Value>,
    matched: Arc<Kind>,
}

/// Why a change was not made.
enum NotChanged {
    /// The policy has failed.
    Failed(String),
    /// The request has.
    Refused(ApiError),
}

/// What went wrong with a policy.
struct Failure {
    text: String,
    /// Empty where the policy could not even be configured.
    reason: &'static str,
}

impl MutatingPolicy {
    pub(super) fn read(policy: &Value) -> Self {
        let spec = &policy["spec"];
        let is_reinvoked = spec["reinvocationPolicy"] == "IfNeeded";
        let (policy, compiler) = Policy::read(policy);
        let names = Names::of_mutation(policy.has_params());
        let mutations = spec["mutations"].as_array().into_iter().flatten();
        let mutations = mutations.filter_map(|one| Mutation::read(one, &compiler, names)).collect();
        Self { policy, mutations, is_reinvoked }
    }
}

impl Mutation {
    fn read(mutation: &Value, compiler: &Compiler, names: Names) -> Option<Self> {
        let (form, field) = match mutation["patchType"].as_str()? {
            "JSONPatch" => (Form::JsonPatch, "jsonPatch"),
            "ApplyConfiguration" => (Form::ApplyConfiguration, "applyConfiguration"),
            _ => return None,
        };
        let text = mutation[field]["expression"].as_str().unwrap_or_default();
        Some(Self { form, expression: compiler.compile(text, names, &form.returns()) })
    }
}

impl Form {
    fn returns(self) -> Returns {
        match self {
            Self::JsonPatch => Returns::json_patch(),
            Self::ApplyConfiguration => Returns::apply_configuration(),
        }
    }
}

/// Lets every mutating policy that is about the request change the object.
///
/// # Errors
/// What the policies that may not fail have failed with; the first one's words.
pub(crate) fn mutate(
    review: &Review<'_>,
    object: Option<&mut Value>,
    round: &mut Round<Invocation>,
) -> Result<(), ApiError> {
    let snapshot = review.objects.snapshot();
    let configured = &review.objects.admission().policies;
    let policies = configured.mutating.get(&snapshot);
    let Some(object) = object else { return Ok(()) };
    let attributes = Attributes::of(review, Some(object));
    if policies.is_empty() || attributes.is_exempt_from_policies() {
        return Ok(());
    }
    let bindings = configured.mutating_bindings.get(&snapshot);
    let mut failures = Vec::new();
    let mut planned = Vec::new();
    for policy in policies.iter() {
        let own: Vec<_> = bindings.iter().filter(|one| one.policy == policy.policy.name).cloned().collect();
        if !own.is_empty() {
            plan(policy, &own, &attributes, &mut planned, &mut failures);
        }
    }
    if !planned.is_empty() {
        round.begin(Some(object));
        invoke(review, object, &planned, round, &mut failures)?;
        round.end(Some(object));
    }
    refuse(&Attributes::of(review, Some(object)), &failures)
}

/// Finds out with which bindings and parameters a policy is about the request.
fn plan(
    policy: &Arc<MutatingPolicy>,
    bindings: &[Arc<Binding>],
    attributes: &Attributes<'_>,
    planned: &mut Vec<Planned>,
    failures: &mut Vec<Failure>,
) {
    let of = &policy.policy;
    let (matched, param_kind) = match of.applies(attributes) {
        Ok(Some(found)) => found,
        Ok(None) => return,
        Err(why) => {
            failures.extend(failure(of, None, &format!("failed to configure policy: {why}"), ""));
            return;
        }
    };
    for binding in bindings {
        match binding.collect(param_kind.as_deref(), attributes) {
            Err(why) => {
                let why = format!("failed to configure binding: {why}");
                failures.extend(failure(of, Some(&binding.name), &why, ""));
            }
            Ok(all) => planned.extend(all.into_iter().map(|params| Planned {
                policy: Arc::clone(policy),
                binding: Arc::clone(binding),
                params,
                matched: Arc::clone(&matched),
            })),
        }
    }
}

/// Makes the changes, one after the other.
fn invoke(
    review: &Review<'_>,
    object: &mut Value,
    planned: &[Planned],
    round: &mut Round<Invocation>,
    failures: &mut Vec<Failure>,
) -> Result<(), ApiError> {
    let mut has_mutated = false;
    for one in planned {
        let of = &one.policy.policy;
        let fail = |why: &str| failure(of, Some(&one.binding.name), why, "Invalid");
        if !of.conditions.is_empty() {
            let attributes = Attributes::of(review, Some(object));
            let scope = Scope::of(&attributes, &one.matched, true)?;
            match of.conditions.hold(&scope, one.params.as_ref(), &of.variables) {
                Ok(true) => {}
                Ok(false) => continue,
                Err(why) => {
                    failures.extend(fail(&why));
                    continue;
                }
            }
        }
        let invocation = one.invocation();
        if !round.includes(&invocation) {
            continue;
        }
        let mut changed = false;
        for mutation in &one.policy.mutations {
            match change(review, object, one, mutation) {
                Ok((next, is_other)) => {
                    has_mutated = true;
                    changed |= is_other;
                    *object = next;
                }
                Err(NotChanged::Failed(why)) => failures.extend(fail(&why)),
                Err(NotChanged::Refused(error)) => return Err(error),
            }
        }
        round.done(one.policy.is_reinvoked.then_some(invocation), changed);
    }
    if has_mutated {
        round.done(None, true);
    }
    Ok(())
}

/// The object after one change, and whether that has made another one of it. It was written as JSON, and read, in any case: lists
/// and maps without entries are gone.
fn change(
    review: &Review<'_>,
    object: &Value,
    planned: &Planned,
    mutation: &Mutation,
) -> Result<(Value, bool), NotChanged> {
    let failed = NotChanged::Failed;
    let expression = mutation.expression.as_ref().map_err(|why| failed(why.clone()))?;
    let attributes = Attributes::of(review, Some(object));
    let scope = Scope::of(&attributes, &planned.matched, true).map_err(NotChanged::Refused)?;
    let authorizer = scope.authorizer();
    let variables = &planned.policy.policy.variables;
    let bindings = scope.bindings(planned.params.as_ref(), Some(&authorizer), variables);
    let evaluated = Budget(RUNTIME_COST_BUDGET).evaluate(expression, &bindings);
    let value = evaluated.map_err(|out| failed(out.to_string()))?.map_err(failed)?;
    let (kind, matched) = (review.call.kind, &planned.matched);
    let seen = attributes.in_version(object, matched);
    let patched = match mutation.form {
        Form::JsonPatch => patch::by_json_patch(&value, &seen).map_err(failed)?,
        Form::ApplyConfiguration => patch::by_configuration(&value, &seen, matched).map_err(failed)?,
    };
    let adopted = adopt(review, matched, patched, true).map_err(NotChanged::Refused)?;
    let is_other = adopted != *seen;
    if attributes.gvk(kind) == attributes.gvk(matched) {
        return Ok((adopted, is_other));
    }
    match kind.custom {
        Some(_) => Ok((converted(adopted, matched, kind), is_other)),
        None => Err(failed(unconvertible(matched, kind))),
    }
}

/// What a policy fails with that has changed a built-in object in another version than the request's: it is converted from that to this
/// one, and not by way of the internal one (`k8s.io/apiserver/pkg/admission/plugin/policy/mutating/dispatcher.go`, `dispatchOne`).
fn unconvertible(from: &Kind, to: &Kind) -> String {
    let of_go = |kind: &Kind| format!("{}.{}", kind.version, kind.kind);
    if from.group == to.group {
        return format!("converting ({}) to ({}): unknown conversion", of_go(from), of_go(to));
    }
    format!(
        "{} is not suitable for converting to {:?} in scheme \"pkg/api/legacyscheme/scheme.go:30\"",
        of_go(from),
        to.api_version()
    )
}

impl Planned {
    fn invocation(&self) -> Invocation {
        let param = self.params.as_ref();
        let text = |of: fn(&Value) -> &str| param.map(of).unwrap_or_default().to_owned();
        Invocation {
            policy: self.policy.policy.name.clone(),
            binding: self.binding.name.clone(),
            param: (text(object::namespace), text(object::name)),
        }
    }
}

/// A failure, unless the policy says that failures do not matter.
fn failure(policy: &Policy, binding: Option<&str>, why: &str, reason: &'static str) -> Option<Failure> {
    if policy.ignores_failures {
        return None;
    }
    let text = match binding {
        Some(binding) => format!("policy '{}' with binding '{binding}' denied request: {why}", policy.name),
        None => format!("policy {:?} denied request: {why}", policy.name),
    };
    Some(Failure { text, reason })
}

fn refuse(attributes: &Attributes<'_>, failures: &[Failure]) -> Result<(), ApiError> {
    let Some(first) = failures.first() else { return Ok(()) };
    let mut error = attributes.forbidden("");
    error.message.clone_from(&first.text);
    if !first.reason.is_empty() {
        error.reason = Cow::Borrowed(first.reason);
    }
    if let Some(details) = &mut error.details {
        let causes: Vec<Value> = failures.iter().map(|failure| json!({"message": failure.text})).collect();
        details["causes"] = causes.into();
    }
    Err(error)
}
