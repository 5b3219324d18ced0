//! The evaluation of rules on an object (`Validator.Validate`).

use std::cell::OnceCell;

use kubewright_cel::limits::{MAX_MESSAGE_EXPRESSION_BYTES, PER_CALL_LIMIT, RUNTIME_COST_BUDGET};
use kubewright_cel::{Bindings, EvaluationError, Program, Value as Seen};
use kubewright_meta::field::Problem;
use kubewright_meta::{FieldError, cost};
use serde_json::{Map, Value};

use super::super::node::{Reason, Type};
use super::super::validate::{Former, FormerElements, Keyed};
use super::{Compiled, Rules};

const OUT_OF_BUDGET: &str =
    "validation failed due to running out of cost budget, no further validation rules will be run";

/// Why rules cannot be compiled about what they cannot see.
pub const UNDECLARED: &str = "failed to convert to declType for CEL validation rules";

/// What is compiled of patterns that rules make themselves counts as cost, so many characters as one: it is work, for each
/// element of a list again, as each is an evaluation of its own.
const COMPILED: u64 = 10;

/// A rule that does not hold.
#[derive(Clone, Debug, PartialEq)]
pub enum Finding {
    /// It makes the object invalid.
    Error(FieldError),
    /// The value is as it was: it is only told.
    Warning(FieldError),
}

/// What all rules of one object may cost together; spent when it is less than nothing.
#[derive(Clone, Copy, Debug)]
pub struct Budget(Option<u64>);

impl Default for Budget {
    fn default() -> Self {
        Self(Some(RUNTIME_COST_BUDGET))
    }
}

impl Budget {
    /// Whether nothing more may be evaluated.
    pub fn is_spent(self) -> bool {
        self.0.is_none()
    }
}

impl Rules {
    /// Evaluates all rules on a value that stands at `path`. `old` is what it replaces; with `former`, what is unchanged is
    /// told as a warning.
    pub fn evaluate(
        &self,
        path: &str,
        value: &Value,
        old: Option<&Value>,
        former: Option<Former<'_>>,
        budget: &mut Budget,
    ) -> Vec<Finding> {
        let mut run = Run { path: path.to_owned(), findings: Vec::new(), budget };
        let current = former.map(|former| Correlated::of(former, value));
        run.value(self, value, old, &Ratchet { current, nearest: None });
        run.findings
    }
}

/// A value and what it was.
struct Correlated<'a> {
    former: Former<'a>,
    value: &'a Value,
    /// Whether it is what it was, once somebody has asked: all elements of a list may ask about the list.
    unchanged: OnceCell<bool>,
}

impl<'a> Correlated<'a> {
    fn of(former: Former<'a>, value: &'a Value) -> Self {
        Self { former, value, unchanged: OnceCell::new() }
    }

    fn is_unchanged(&self) -> bool {
        *self.unchanged.get_or_init(|| self.former.is(self.value))
    }
}

/// Whether what is wrong with a value was so before.
#[derive(Default)]
struct Ratchet<'a, 'r> {
    /// The value itself, when it can be told what it was.
    current: Option<Correlated<'a>>,
    /// The nearest value around it of which that can be told.
    nearest: Option<&'r Correlated<'a>>,
}

impl<'a> Ratchet<'a, '_> {
    fn is_unchanged(&self) -> bool {
        self.current.as_ref().or(self.nearest).is_some_and(Correlated::is_unchanged)
    }

    fn field(&self, name: &str, value: &'a Value) -> Ratchet<'a, '_> {
        match &self.current {
            None => Ratchet { current: None, nearest: self.nearest },
            // What an object says to be is converted before it is looked at.
            Some(_) if self.nearest.is_none() && matches!(name, "apiVersion" | "kind") => Ratchet::default(),
            Some(current) => current.around(current.former.field(name), value),
        }
    }

    fn element(&self, elements: Option<&FormerElements<'a>>, value: &'a Value) -> Ratchet<'a, '_> {
        match &self.current {
            None => Ratchet { current: None, nearest: self.nearest },
            Some(current) => current.around(elements.and_then(|elements| elements.find(value)), value),
        }
    }
}

impl<'a> Correlated<'a> {
    /// For a value in this one, and what that was.
    fn around(&self, former: Option<Former<'a>>, value: &'a Value) -> Ratchet<'a, '_> {
        Ratchet { current: former.map(|former| Correlated::of(former, value)), nearest: Some(self) }
    }
}

struct Run<'b> {
    path: String,
    findings: Vec<Finding>,
    budget: &'b mut Budget,
}

impl Run<'_> {
    fn value<'a>(
        &mut self,
        rules: &'a Rules,
        value: &'a Value,
        old: Option<&'a Value>,
        ratchet: &Ratchet<'a, '_>,
    ) {
        cost::step();
        if value.is_null() {
            return;
        }
        let old = old.filter(|old| !old.is_null());
        if rules.undeclared {
            let detail = format!("rule compiler initialization error: {UNDECLARED}");
            let kind = rules.node.kind.map_or("", Type::name);
            self.error(FieldError::invalid(self.field(), kind, detail));
        }
        if !rules.own.is_empty() {
            self.own(rules, value, old, ratchet);
        }
        if self.budget.is_spent() {
            return;
        }
        match value {
            Value::Array(list) => self.list(rules, list, old, ratchet),
            Value::Object(fields) => self.fields(rules, fields, old, ratchet),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    fn list<'a>(
        &mut self,
        rules: &'a Rules,
        list: &'a [Value],
        old: Option<&'a Value>,
        ratchet: &Ratchet<'a, '_>,
    ) {
        let Some(items) = &rules.items else { return };
        let old = Keyed::of(&rules.node, old.and_then(Value::as_array).map(Vec::as_slice));
        let elements = ratchet.current.as_ref().map(|current| current.former.elements());
        for (index, one) in list.iter().enumerate() {
            let length = self.path.len();
            self.path.push_str(&format!("[{index}]"));
            self.value(items, one, old.find(one), &ratchet.element(elements.as_ref(), one));
            self.path.truncate(length);
            if self.budget.is_spent() {
                return;
            }
        }
    }

    fn fields<'a>(
        &mut self,
        rules: &'a Rules,
        fields: &'a Map<String, Value>,
        old: Option<&'a Value>,
        ratchet: &Ratchet<'a, '_>,
    ) {
        let values = rules.values.as_deref();
        for (name, one) in fields {
            let (below, key) = match rules.properties.get(name.as_str()) {
                Some(below) => (below, false),
                None => match values {
                    Some(below) => (below, true),
                    None => continue,
                },
            };
            let length = self.path.len();
            if key {
                self.path.push_str(&format!("[{name}]"));
            } else {
                if length > 0 {
                    self.path.push('.');
                }
                self.path.push_str(name);
            }
            self.value(below, one, old.and_then(|old| old.get(name)), &ratchet.field(name, one));
            self.path.truncate(length);
            if self.budget.is_spent() {
                return;
            }
        }
    }

    /// The rules of the value itself.
    fn own<'a>(
        &mut self,
        rules: &'a Rules,
        value: &'a Value,
        old: Option<&'a Value>,
        ratchet: &Ratchet<'a, '_>,
    ) {
        let kind = rules.node.kind.map_or("", Type::name);
        if self.budget.0.is_none_or(|left| left == 0) {
            self.stop(FieldError::invalid(self.field(), kind, OUT_OF_BUDGET));
            return;
        }
        let seen = Seen::declared(value, &rules.declaration);
        let old_seen = old.map(|old| Seen::declared(old, &rules.declaration));
        // Where one rule asks what was, messages of all may.
        let shows_old = rules.own.iter().any(Compiled::uses_old_self);
        for rule in &rules.own {
            let program = match &rule.program {
                Ok(Some(program)) => program,
                Ok(None) => continue,
                Err(why) => {
                    self.error(FieldError::invalid(self.field(), kind, format!("rule compile error: {why}")));
                    continue;
                }
            };
            let transition = rule.uses_old_self();
            if transition && old.is_none() && !rule.optional_old_self {
                continue;
            }
            // A value that is not what it is declared as is a mistake only to rules that name it.
            let shown = Some(&seen).filter(|seen| seen.is_ok() || program.references("self"));
            let old_shown = old_seen.as_ref().filter(|seen| seen.is_ok() || transition);
            let bindings = bind(shown, old_shown, rule.optional_old_self, shows_old);
            let holds = match &bindings {
                Ok(bindings) => self.outcome(program, bindings, rule, kind),
                Err(why) => {
                    self.failed(why, rule, kind);
                    continue;
                }
            };
            match (holds, bindings) {
                (Outcome::Fails, Ok(bindings)) => {
                    let unchanged = !transition && ratchet.is_unchanged();
                    self.broken(rule, &bindings, value, kind, unchanged);
                }
                (Outcome::Holds | Outcome::Told, _) | (_, Err(_)) => {}
            }
            if self.budget.is_spent() {
                return;
            }
        }
    }

    fn outcome<'a>(
        &mut self,
        program: &'a Program,
        bindings: &Bindings<'a>,
        rule: &Compiled,
        kind: &str,
    ) -> Outcome {
        let evaluation = program.evaluate(bindings, PER_CALL_LIMIT);
        if !self.pay(evaluation.cost.saturating_add(evaluation.compiled as u64 / COMPILED)) {
            self.stop(FieldError::invalid(self.field(), kind, OUT_OF_BUDGET));
            return Outcome::Told;
        }
        match evaluation.result {
            Ok(value) if value.as_bool() == Some(true) => Outcome::Holds,
            Ok(_) => Outcome::Fails,
            Err(why) => {
                self.failed(&why, rule, kind);
                Outcome::Told
            }
        }
    }

    /// A rule that could not be evaluated.
    fn failed(&mut self, why: &EvaluationError, rule: &Compiled, kind: &str) {
        let (text, told) = (why.to_string(), &rule.told);
        if matches!(why, EvaluationError::CostLimitExceeded) {
            let detail = format!(
                "'{text}': no further validation rules will be run due to call cost exceeds limit for rule: {told}"
            );
            self.stop(FieldError::invalid(self.field(), kind, detail));
        } else if text.starts_with("no such overload") {
            let detail = format!(
                "'{text}': call arguments did not match a supported operator, function or macro signature for rule: {told}"
            );
            self.error(FieldError::invalid(self.field(), kind, detail));
        } else {
            let detail = format!("{text} evaluating rule: {told}");
            self.error(FieldError::invalid(self.field(), kind, detail));
        }
    }

    /// A rule that does not hold.
    fn broken<'a>(
        &mut self,
        rule: &'a Compiled,
        bindings: &Bindings<'a>,
        value: &Value,
        kind: &str,
        unchanged: bool,
    ) {
        let field = match (&rule.path, self.path.is_empty()) {
            (None, _) => self.field(),
            (Some(below), true) => below.to_string(),
            (Some(below), false) => format!("{}.{below}", self.path),
        };
        let mut add = |error| {
            self.findings.push(if unchanged { Finding::Warning(error) } else { Finding::Error(error) });
        };
        let message = match rule.message_program.as_ref().ok().and_then(Option::as_ref) {
            None => None,
            Some(program) => match message(program, bindings, &rule.message_expression, self.budget) {
                Ok(message) => message,
                Err(why) => {
                    add(FieldError::invalid(field, kind, why));
                    self.budget.0 = None;
                    return;
                }
            },
        };
        let detail = message.unwrap_or_else(|| rule.message.to_string());
        let whole = matches!(kind, "object" | "array");
        add(match rule.reason {
            Some(Reason::Forbidden) => FieldError::forbidden(field, detail),
            Some(Reason::Required) => FieldError::required(field, detail),
            Some(Reason::Duplicate) if whole => {
                FieldError { field, problem: Problem::OmittedDuplicate, detail: String::new() }
            }
            Some(Reason::Duplicate) => FieldError::duplicate(field, value.clone()),
            Some(Reason::Invalid) | None if whole => FieldError::omitted(field, detail),
            Some(Reason::Invalid) | None => FieldError::invalid(field, value.clone(), detail),
        });
    }

    fn pay(&mut self, cost: u64) -> bool {
        self.budget.0 = self.budget.0.and_then(|left| left.checked_sub(cost));
        self.budget.0.is_some()
    }

    fn error(&mut self, error: FieldError) {
        self.findings.push(Finding::Error(error));
    }

    fn stop(&mut self, error: FieldError) {
        self.error(error);
        self.budget.0 = None;
    }

    /// The path as messages write it; Go prints none at all as `<nil>`.
    fn field(&self) -> String {
        if self.path.is_empty() { "<nil>".to_owned() } else { self.path.clone() }
    }
}

/// What became of a rule.
enum Outcome {
    Holds,
    Fails,
    /// It could not be evaluated, which was told.
    Told,
}

type Declared<'a> = Result<Seen<'a>, EvaluationError>;

fn bind<'a>(
    seen: Option<&Declared<'a>>,
    old: Option<&Declared<'a>>,
    optional: bool,
    shows_old: bool,
) -> Result<Bindings<'a>, EvaluationError> {
    let mut bindings = Bindings::new();
    if let Some(seen) = seen {
        bindings.bind("self", seen.clone()?);
    }
    if shows_old {
        let old = old.cloned().transpose()?;
        if optional {
            bindings.bind("oldSelf", Seen::optional(old));
        } else if let Some(old) = old {
            bindings.bind("oldSelf", old);
        }
    }
    Ok(bindings)
}

/// The message that an expression makes; none where it fails in a way that the rule's own message stands in for.
///
/// # Errors
/// When the budget is spent by it.
fn message<'a>(
    program: &'a Program,
    bindings: &Bindings<'a>,
    source: &str,
    budget: &mut Budget,
) -> Result<Option<String>, String> {
    let evaluation = program.evaluate(bindings, PER_CALL_LIMIT);
    let Some(left) = budget.0.and_then(|left| left.checked_sub(evaluation.cost)) else {
        return Err(
            "messageExpression evaluation failed due to running out of cost budget, no further validation rules will be run"
                .to_owned(),
        );
    };
    if matches!(evaluation.result, Err(EvaluationError::CostLimitExceeded)) {
        return Err(format!(
            "no further validation rules will be run due to call cost exceeds limit for messageExpression: {source:?}"
        ));
    }
    *budget = Budget(Some(left));
    let Ok(value) = evaluation.result else { return Ok(None) };
    let text = value.as_str().unwrap_or_default().trim();
    let fits = !text.is_empty() && text.len() <= MAX_MESSAGE_EXPRESSION_BYTES && !text.contains('\n');
    Ok(fits.then(|| text.to_owned()))
}
