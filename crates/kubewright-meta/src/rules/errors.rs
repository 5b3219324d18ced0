//! The errors that a check finds, and the checks that most kinds share.

use serde_json::Value;

use super::at::At;
use crate::field::{FieldError, Problem};

/// A rule for a text: what is wrong with it, in Kubernetes' words; nothing when it is good.
pub type TextRule = fn(&str) -> Vec<String>;

/// What was found so far.
#[derive(Debug, Default)]
pub struct Errors(Vec<FieldError>);

impl Errors {
    /// What a check finds in an object.
    pub fn of(check: impl FnOnce(&mut Self)) -> Vec<FieldError> {
        let mut errors = Self::default();
        check(&mut errors);
        errors.0
    }

    /// Adds an error.
    pub fn push(&mut self, error: FieldError) {
        self.0.push(error);
    }

    /// How many were found.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// Adds what another check found.
    pub fn extend(&mut self, errors: impl IntoIterator<Item = FieldError>) {
        self.0.extend(errors);
    }

    /// `Required value`.
    pub fn required(&mut self, at: &At<'_>, detail: &str) {
        self.push(FieldError::required(&at.path, detail));
    }

    /// `Invalid value`, of the value as JSON.
    pub fn invalid(&mut self, at: &At<'_>, detail: impl Into<String>) {
        self.push(FieldError::invalid(&at.path, at.value.clone(), detail));
    }

    /// `Invalid value`, of a text (Go knows no absent text: it is empty).
    pub fn invalid_text(&mut self, at: &At<'_>, detail: impl Into<String>) {
        self.push(FieldError::invalid(&at.path, at.text(), detail));
    }

    /// `Invalid value`, of a value that is not the one in the object.
    pub fn invalid_as(&mut self, at: &At<'_>, value: impl Into<Value>, detail: impl Into<String>) {
        self.push(FieldError::invalid(&at.path, value, detail));
    }

    /// `Forbidden`.
    pub fn forbidden(&mut self, at: &At<'_>, detail: impl Into<String>) {
        self.push(FieldError::forbidden(&at.path, detail));
    }

    /// `Internal error`.
    pub fn internal(&mut self, at: &At<'_>, detail: impl Into<String>) {
        self.push(FieldError { field: at.path.clone(), problem: Problem::Internal, detail: detail.into() });
    }

    /// `Duplicate value`.
    pub fn duplicate(&mut self, at: &At<'_>) {
        self.push(FieldError::duplicate(&at.path, at.value.clone()));
    }

    /// `Not found`.
    pub fn not_found(&mut self, at: &At<'_>) {
        self.push(FieldError {
            field: at.path.clone(),
            problem: Problem::NotFound(at.text().into()),
            detail: String::new(),
        });
    }

    /// `Too many`.
    pub fn too_many(&mut self, at: &At<'_>, count: usize, limit: usize) {
        let items = if limit == 1 { "item" } else { "items" };
        let detail = format!("must have at most {limit} {items}");
        self.push(FieldError { field: at.path.clone(), problem: Problem::TooMany(count), detail });
    }

    /// `Unsupported value`, of a text.
    pub fn not_supported(&mut self, at: &At<'_>, allowed: &[&str]) {
        self.push(FieldError::not_supported(&at.path, at.text(), allowed.iter().copied()));
    }

    /// The text must be there. Says whether it is.
    pub fn need(&mut self, at: &At<'_>) -> bool {
        let there = !at.is_empty();
        if !there {
            self.required(at, "");
        }
        there
    }

    /// The text must be one of these.
    pub fn one_of(&mut self, at: &At<'_>, allowed: &[&str]) {
        if !allowed.contains(&at.text()) {
            self.not_supported(at, allowed);
        }
    }

    /// The text must be one of these, when there is a value.
    pub fn maybe_one_of(&mut self, at: &At<'_>, allowed: &[&str]) {
        if at.is_set() {
            self.one_of(at, allowed);
        }
    }

    /// The text must be there and one of these.
    pub fn need_one_of(&mut self, at: &At<'_>, allowed: &[&str]) {
        if self.need(at) {
            self.one_of(at, allowed);
        }
    }

    /// The text must follow the rule.
    pub fn text(&mut self, at: &At<'_>, rule: TextRule) {
        for message in rule(at.text()) {
            self.invalid_text(at, message);
        }
    }

    /// The text must follow the rule, when it is not empty.
    pub fn maybe_text(&mut self, at: &At<'_>, rule: TextRule) {
        if !at.is_empty() {
            self.text(at, rule);
        }
    }

    /// The text must be there and follow the rule.
    pub fn need_text(&mut self, at: &At<'_>, rule: TextRule) {
        if self.need(at) {
            self.text(at, rule);
        }
    }

    /// The number, when there is one, must not be negative.
    pub fn non_negative(&mut self, at: &At<'_>) {
        if at.number().is_some_and(|number| number < 0) {
            self.invalid(at, NOT_NEGATIVE);
        }
    }

    /// The number, when there is one, must be positive.
    pub fn positive(&mut self, at: &At<'_>) {
        if at.number().is_some_and(|number| number <= 0) {
            self.invalid(at, "must be greater than 0");
        }
    }

    /// The number, when there is one, must be within the bounds (both included).
    pub fn within(&mut self, at: &At<'_>, low: i64, high: i64) {
        if at.number().is_some_and(|number| number < low || number > high) {
            self.invalid(at, format!("must be between {low} and {high}, inclusive"));
        }
    }

    /// The number, 0 when there is none, must be a port.
    pub fn port(&mut self, at: &At<'_>) {
        let number = at.number().unwrap_or_default();
        if !(1..=65535).contains(&number) {
            self.invalid_as(at, number, "must be between 1 and 65535, inclusive");
        }
    }

    /// The value must equal the old one.
    pub fn immutable(&mut self, new: &At<'_>, old: &At<'_>) {
        if !new.same(old) {
            self.invalid(new, IMMUTABLE);
        }
    }

    /// The same of a text that Go has no pointer to: none is an empty one.
    pub fn immutable_text(&mut self, new: &At<'_>, old: &At<'_>) {
        if new.text() != old.text() {
            self.push(FieldError::invalid(&new.path, new.text(), IMMUTABLE));
        }
    }

    /// The text at `field` must not repeat in the items of a list.
    pub fn unique(&mut self, list: &At<'_>, field: &str) {
        let mut seen = std::collections::BTreeSet::new();
        for item in list.items() {
            let at = item.get(field);
            if !at.is_empty() && !seen.insert(at.text()) {
                self.duplicate(&at);
            }
        }
    }
}

/// The words for a number below 0.
pub const NOT_NEGATIVE: &str = "must be greater than or equal to 0";
/// The words for a field that may not change.
pub const IMMUTABLE: &str = "field is immutable";
