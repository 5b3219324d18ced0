//! What is checked about literals once types are known (cel-go's cel/validator.go and ext/formatting.go).

use super::{Checked, Reference};
use crate::error::Issue;
use crate::eval::pattern::Pattern;
use crate::library::{Clause, FormatError, Formatter, format_string};
use crate::syntax::ast::{Element, Expr, Id, Literal, MapEntry};
use crate::types::Type;
use crate::value::{Duration, Timestamp};

/// The issues with literals.
pub(super) fn check(checked: &Checked) -> Vec<Issue> {
    let mut validator = Validator { checked, issues: Vec::new() };
    validator.visit(checked.parsed.root, false);
    validator.issues
}

struct Validator<'c> {
    checked: &'c Checked,
    issues: Vec<Issue>,
}

impl Validator<'_> {
    fn issue(&mut self, id: Id, message: impl Into<String>) {
        let parsed = &self.checked.parsed;
        self.issues.push(parsed.source.issue(parsed.ast.offset(id), message));
    }

    /// Looks at a node and all below it. What is given to `format` may be mixed.
    fn visit(&mut self, id: Id, in_format: bool) {
        let expr = self.checked.expr(id);
        let mut in_format = in_format;
        match expr {
            Expr::Call { function, target, args } => {
                self.constant_argument(function, args);
                if let ("format", Some(target), [list]) = (&**function, target, args.as_slice()) {
                    self.format_call(id, *target, *list);
                    in_format = true;
                }
            }
            Expr::List(elements) if !in_format => self.same_elements(elements),
            Expr::Map(entries) if !in_format => self.same_entries(entries),
            _ => {}
        }
        expr.for_children(|child| self.visit(child, in_format));
    }

    fn constant_argument(&mut self, function: &str, args: &[Id]) {
        let Some(first) = args.first() else { return };
        let Expr::Literal(literal) = self.checked.expr(*first) else { return };
        let valid = match (function, literal) {
            ("duration", Literal::String(text)) => Duration::parse(text).is_some(),
            ("duration", _) => false,
            ("timestamp", Literal::String(text)) => Timestamp::parse(text).is_some(),
            ("timestamp", Literal::Int(seconds)) => Timestamp::from_seconds(*seconds).is_some(),
            ("matches", Literal::String(pattern)) => Pattern::new(pattern).is_ok(),
            _ => true,
        };
        if !valid {
            self.issue(*first, format!("invalid {function} argument"));
        }
    }

    /// The type of an element; of an optional one (`?element`), of what is in it.
    fn type_of(&self, id: Id, optional: bool) -> Type {
        match self.checked.type_of(id) {
            Type::Optional(inner) if optional => (**inner).clone(),
            other => other.clone(),
        }
    }

    fn same_elements(&mut self, elements: &[Element]) {
        let mut expected: Option<Type> = None;
        for element in elements {
            let found = self.type_of(element.value, element.optional);
            match &expected {
                None => expected = Some(found),
                Some(expected) if is_equivalent(expected, &found) => {}
                Some(expected) => {
                    let message = format!("expected type '{expected}' but found '{found}'");
                    self.issue(element.value, message);
                    return;
                }
            }
        }
    }

    fn same_entries(&mut self, entries: &[MapEntry]) {
        let mut expected: Option<(Type, Type)> = None;
        for entry in entries {
            let found = (self.type_of(entry.key, false), self.type_of(entry.value, entry.optional));
            let Some((key, value)) = &expected else {
                expected = Some(found);
                continue;
            };
            let (key, value) = (key.clone(), value.clone());
            if !is_equivalent(&key, &found.0) {
                self.issue(entry.key, format!("expected type '{key}' but found '{}'", found.0));
            }
            if !is_equivalent(&value, &found.1) {
                self.issue(entry.value, format!("expected type '{value}' but found '{}'", found.1));
            }
        }
    }

    /// A constant format with a list that is written out.
    fn format_call(&mut self, id: Id, target: Id, list: Id) {
        let (Expr::Literal(Literal::String(format)), Expr::List(elements)) =
            (self.checked.expr(target), self.checked.expr(list))
        else {
            return;
        };
        let Reference::Call(_) = self.checked.reference(id) else { return };
        let mut arguments = Arguments { checked: self.checked, elements, requested: 0, wrong: None };
        match format_string(format, &mut arguments) {
            Err(FormatError(message)) => {
                let at = arguments.wrong.unwrap_or(id);
                self.issue(at, message);
            }
            Ok(_) if elements.len() > arguments.requested => {
                let message = format!(
                    "too many arguments supplied to string.format (expected {}, got {})",
                    arguments.requested,
                    elements.len()
                );
                self.issue(id, message);
            }
            Ok(_) => {}
        }
    }
}

/// Whether two types are one: types of types are, whatever they are of.
fn is_equivalent(left: &Type, right: &Type) -> bool {
    match (left, right) {
        (Type::Type(_), Type::Type(_)) => true,
        (Type::List(left), Type::List(right)) | (Type::Optional(left), Type::Optional(right)) => {
            is_equivalent(left, right)
        }
        (Type::Map(left_key, left_value), Type::Map(right_key, right_value)) => {
            is_equivalent(left_key, right_key) && is_equivalent(left_value, right_value)
        }
        _ => left == right,
    }
}

/// Arguments of which only the types are known.
struct Arguments<'c> {
    checked: &'c Checked,
    elements: &'c [Element],
    requested: usize,
    /// What a clause does not take.
    wrong: Option<Id>,
}

impl Formatter for Arguments<'_> {
    fn arguments(&self) -> usize {
        self.elements.len()
    }

    fn format(&mut self, index: usize, clause: Clause) -> Result<String, FormatError> {
        self.requested += 1;
        let id = self.elements[index].value;
        let found = self.checked.type_of(id);
        let (fits, rule) = match clause {
            Clause::String => (self.is_text(id), clause.rule()),
            Clause::Decimal | Clause::Octal => (matches!(found, Type::Int | Type::Uint), clause.rule()),
            Clause::Fixed(_) | Clause::Scientific(_) => {
                (matches!(found, Type::Double | Type::String), clause.rule())
            }
            Clause::Binary => (matches!(found, Type::Int | Type::Uint | Type::Bool), clause.rule()),
            Clause::Hex { .. } => {
                (matches!(found, Type::Int | Type::Uint | Type::String | Type::Bytes), clause.rule())
            }
        };
        if fits || found.is_dyn() {
            return Ok(String::new());
        }
        let wrong = *self.wrong.get_or_insert(id);
        Err(FormatError(format!("{rule}, was given {}", self.checked.type_of(wrong).name())))
    }
}

impl Arguments<'_> {
    /// Whether it can be made text, with all that is in it.
    fn is_text(&mut self, id: Id) -> bool {
        let fits = matches!(
            self.checked.type_of(id),
            Type::Dyn
                | Type::List(_)
                | Type::Map(..)
                | Type::Int
                | Type::Uint
                | Type::Double
                | Type::Bool
                | Type::String
                | Type::Timestamp
                | Type::Bytes
                | Type::Duration
                | Type::Type(_)
                | Type::Null
        );
        if !fits {
            self.wrong.get_or_insert(id);
            return false;
        }
        match self.checked.expr(id) {
            Expr::List(elements) => elements.iter().all(|element| self.is_text(element.value)),
            Expr::Map(entries) => {
                entries.iter().all(|entry| self.is_text(entry.key) && self.is_text(entry.value))
            }
            _ => true,
        }
    }
}
