//! The checks of values, one schema node after another (`kube-openapi/pkg/validation/validate`).
//!
//! The order of the checks, the words, and which failures of a combination are told are kube-openapi's. So is the ratchet
//! (`apiextensions-apiserver/pkg/apiserver/validation/ratcheting.go`): a failure counts for nothing where the value is as
//! it was.

use std::collections::{BTreeSet, VecDeque};

use kubewright_meta::field::Problem;
use kubewright_meta::{FieldError, cost};
use kubewright_spec::Version;
use serde_json::{Map, Value};

use super::super::format;
use super::super::node::{Additional, Bounds, Node, Type};
use super::former::Former;
use super::number;

/// What is wrong with a value, such as a whole object, whose fields are told as below `base`. `old` is what it replaces.
pub(super) fn value(
    version: Version,
    node: &Node,
    value: &Value,
    old: Option<Former<'_>>,
    base: &str,
) -> Vec<FieldError> {
    each_once(Checker::new(version, base).ratcheted(node, value, "", old).errors)
}

/// What is wrong with a value that stands at `base`, such as a default in a definition.
pub fn value_at(version: Version, node: &Node, value: &Value, base: &str) -> Vec<FieldError> {
    each_once(Checker::new(version, base).ratcheted(node, value, "", None).errors)
}

/// Combinations may find the same mistake more than once.
fn each_once(errors: VecDeque<FieldError>) -> Vec<FieldError> {
    let mut seen = BTreeSet::new();
    errors.into_iter().filter(|error| seen.insert(error.to_string())).collect()
}

/// Checks values, and says where they stand.
pub(super) struct Checker<'a> {
    /// The path of the value that the check began with; the paths in messages begin below it.
    base: &'a str,
    /// Whether numbers have to be of the range of their type and format: from v1.36 on.
    ranges: bool,
}

/// What a check found. `score` counts what was in order: of several schemas that fail, the one with the highest is told.
#[derive(Default)]
pub(super) struct Found {
    pub errors: VecDeque<FieldError>,
    pub(super) score: usize,
}

impl Found {
    pub(super) fn add(&mut self, error: FieldError) {
        self.errors.push_back(error);
    }

    pub(super) fn merge(&mut self, mut other: Self) {
        self.score += other.score;
        // The fewer come to the more: what was found deep down is not moved once more at each level.
        cost::steps(self.errors.len().min(other.errors.len()));
        if self.errors.len() < other.errors.len() {
            for error in std::mem::take(&mut self.errors).into_iter().rev() {
                other.errors.push_front(error);
            }
            self.errors = other.errors;
        } else {
            self.errors.append(&mut other.errors);
        }
    }
}

impl<'a> Checker<'a> {
    fn new(version: Version, base: &'a str) -> Self {
        Self { base, ranges: version >= Version::V1_36 }
    }

    /// The format that values are held to.
    fn format<'n>(&self, node: &'n Node) -> Option<&'n str> {
        let of_number = |format: &&str| matches!(*format, "int32" | "int64" | "float" | "double");
        node.format.as_deref().filter(|format| self.ranges || !of_number(format))
    }

    fn ratcheted(&self, node: &Node, value: &Value, path: &str, old: Option<Former<'_>>) -> Found {
        let found = self.value(node, value, path, old);
        if !found.errors.is_empty() && old.is_some_and(|old| old.is(value)) {
            Found::default()
        } else {
            found
        }
    }

    pub(super) fn value(&self, node: &Node, value: &Value, path: &str, old: Option<Former<'_>>) -> Found {
        cost::step();
        let mut found = Found::default();
        found.merge(self.kind(node, value, path));
        if value.is_null() {
            found.merge(self.one_of_the_allowed(node, value, path));
            return found;
        }
        if let Some(logic) = &node.logic {
            found.merge(self.logic(logic, value, path));
        }
        match value {
            Value::String(text) => self.text(node, text, path, &mut found),
            Value::Number(number) => {
                let kind = node.kind.filter(|_| self.ranges && !node.int_or_string);
                for mistake in number::check(kind, self.format(node), node.bounds.as_deref(), number, path) {
                    found.add(match mistake {
                        number::Mistake::Value(value, words) => self.invalid(path, value, &words),
                        number::Mistake::Whole(words) => self.without_path(&words),
                        number::Mistake::Named(value, words) => {
                            FieldError::invalid(self.field(path), value, words)
                        }
                    });
                }
            }
            Value::Array(list) => found.merge(self.list(node, list, path, old)),
            Value::Object(fields) => found.merge(self.fields(node, fields, path, old)),
            Value::Null | Value::Bool(_) => {}
        }
        found.merge(self.one_of_the_allowed(node, value, path));
        found.score += self.validators(node, value);
        found
    }

    /// How many of kube-openapi's validators look at the value: each is a mark in the score.
    fn validators(&self, node: &Node, value: &Value) -> usize {
        let typed = node.int_or_string || node.kind.is_some() || self.format(node).is_some();
        let own = match value {
            Value::String(_) => 1 + usize::from(self.format(node).is_some()),
            Value::Number(_) => 2,
            Value::Array(_) | Value::Object(_) => 1,
            Value::Null | Value::Bool(_) => 0,
        };
        4 + usize::from(typed) + own
    }

    fn kind(&self, node: &Node, value: &Value, path: &str) -> Found {
        let allowed: &[Type] = match (node.int_or_string, &node.kind) {
            (true, _) => &[Type::Integer, Type::String],
            (false, Some(kind)) => std::slice::from_ref(kind),
            (false, None) => &[],
        };
        let format = self.format(node).unwrap_or_default();
        if allowed.is_empty() && format.is_empty() {
            return Found::default();
        }
        let names = || allowed.iter().map(|kind| kind.name()).collect::<Vec<_>>().join(",");
        let numeric = allowed.contains(&Type::Number) || allowed.contains(&Type::Integer);
        let (found, found_format, fits) = match value {
            Value::Null if allowed.is_empty() || node.nullable => {
                return Found { score: 1, ..Found::default() };
            }
            Value::Null => return self.wrong_kind(path, &names(), "null"),
            // A format of text says it all about texts (and lists).
            Value::String(_) | Value::Array(_) if !numeric && !format.is_empty() => {
                return Found { score: 1, ..Found::default() };
            }
            Value::Bool(_) => ("boolean", "", allowed.contains(&Type::Boolean)),
            Value::String(_) => ("string", "", allowed.contains(&Type::String)),
            Value::Array(_) => ("array", "", allowed.contains(&Type::Array)),
            Value::Object(_) => ("object", "", allowed.contains(&Type::Object)),
            Value::Number(number) if number.is_i64() => ("integer", "int64", numeric),
            Value::Number(number) => {
                let whole = number.as_f64().is_some_and(number::is_whole);
                let fits = allowed.contains(&Type::Number) || (whole && allowed.contains(&Type::Integer));
                ("number", "float64", fits)
            }
        };
        if fits {
            return Found { score: 1, ..Found::default() };
        }
        let by_format =
            !format.is_empty() && !value.is_string() && !value.is_array() && format != found_format;
        if by_format {
            self.wrong_kind(path, format, found_format)
        } else {
            self.wrong_kind(path, &names(), found)
        }
    }

    fn wrong_kind(&self, path: &str, expected: &str, found: &str) -> Found {
        let detail = format!("{path} in body must be of type {expected}: {found:?}");
        let mut failed = Found::default();
        failed.add(FieldError {
            field: self.field(path),
            problem: Problem::TypeInvalid(found.into()),
            detail,
        });
        failed
    }

    /// Of length, pattern and format the first two stop at the first failure.
    fn text(&self, node: &Node, text: &str, path: &str, found: &mut Found) {
        if let Some(bounds) = &node.bounds
            && let Some(error) = self.length_and_pattern(bounds, text, path)
        {
            found.add(error);
        }
        if let Some(format) = node.format.as_deref()
            && !format::holds(format, text)
        {
            found.merge(self.wrong_kind(path, format, text));
        }
    }

    fn length_and_pattern(&self, bounds: &Bounds, text: &str, path: &str) -> Option<FieldError> {
        let length = i64::try_from(text.chars().count()).unwrap_or(i64::MAX);
        if let Some(most) = bounds.max_length.filter(|most| length > *most) {
            return Some(self.too_long(path, most));
        }
        if let Some(least) = bounds.min_length.filter(|least| length < *least) {
            return Some(self.invalid(path, text.into(), &format!("should be at least {least} chars long")));
        }
        let pattern = bounds.pattern.as_ref().filter(|pattern| !pattern.matches(text))?;
        Some(self.invalid(path, text.into(), &format!("should match '{}'", pattern.text)))
    }

    fn list(&self, node: &Node, list: &[Value], path: &str, old: Option<Former<'_>>) -> Found {
        let mut found = Found { score: 1, ..Found::default() };
        if let Some(items) = &node.items {
            let old = old.map(|old| old.elements());
            for (index, one) in list.iter().enumerate() {
                let was = old.as_ref().and_then(|old| old.find(one));
                found.merge(self.ratcheted(items, one, &format!("{path}[{index}]"), was));
            }
        }
        let Some(bounds) = &node.bounds else { return found };
        let size = count(list.len());
        if let Some(least) = bounds.min_items.filter(|least| size < *least) {
            found.add(self.invalid(path, size.into(), &format!("should have at least {least} items")));
        }
        if let Some(most) = bounds.max_items.filter(|most| size > *most) {
            found.add(self.too_many(path, list.len(), most));
        }
        found
    }

    fn fields(&self, node: &Node, fields: &Map<String, Value>, path: &str, old: Option<Former<'_>>) -> Found {
        let mut found = Found::default();
        if let Some(bounds) = &node.bounds {
            let size = count(fields.len());
            if let Some(least) = bounds.min_properties.filter(|least| size < *least) {
                found.add(self.invalid(
                    path,
                    size.into(),
                    &format!("should have at least {least} properties"),
                ));
            }
            if let Some(most) = bounds.max_properties.filter(|most| size > *most) {
                found.add(self.too_many(path, fields.len(), most));
            }
        }
        for (name, value) in fields {
            let was = old
                .filter(|_| !(path.is_empty() && matches!(name.as_str(), "apiVersion" | "kind")))
                .and_then(|old| old.field(name));
            match (node.properties.get(name.as_str()), &node.additional) {
                (Some(field), _) => {
                    found.merge(self.ratcheted(field, value, &super::child(path, name), was));
                }
                (None, Additional::Of(values)) => {
                    found.merge(self.ratcheted(values, value, &format!("{path}.{name}"), was));
                }
                (None, Additional::Never) => {
                    let detail = format!("{path}.{name} in body is a forbidden property");
                    found.add(FieldError::invalid(self.field(path), name.as_str(), detail));
                }
                (None, Additional::Unsaid | Additional::Any) => {}
            }
        }
        for name in node.required.iter().filter(|name| !fields.contains_key(&***name)) {
            found.add(FieldError::required(self.field(&format!("{path}.{name}")), ""));
        }
        found
    }

    fn one_of_the_allowed(&self, node: &Node, value: &Value, path: &str) -> Found {
        let mut found = Found::default();
        if !node.enumeration.is_empty() && !node.enumeration.iter().any(|allowed| equals(value, allowed)) {
            let allowed: Vec<String> = node
                .enumeration
                .iter()
                .map(|allowed| {
                    format!("{:?}", allowed.as_str().map_or_else(|| allowed.to_string(), str::to_owned))
                })
                .collect();
            found.add(FieldError {
                field: self.field(path),
                problem: Problem::NotSupported(value.clone()),
                detail: format!("supported values: {}", allowed.join(", ")),
            });
        }
        found
    }

    fn invalid(&self, path: &str, value: Value, words: &str) -> FieldError {
        FieldError::invalid(self.field(path), value, format!("{path} in body {words}"))
    }

    /// Combinations, and numbers out of the range of their type, are told without the field.
    pub(super) fn without_path(&self, words: &str) -> FieldError {
        FieldError::invalid(self.field(""), "", words)
    }

    /// A limit below zero is not told (`field.TooLong`).
    fn too_long(&self, path: &str, most: i64) -> FieldError {
        let field = self.field(path);
        match usize::try_from(most) {
            Ok(most) => FieldError::too_long(field, most),
            Err(_) => FieldError { field, problem: Problem::TooLong, detail: "value is too long".to_owned() },
        }
    }

    fn too_many(&self, path: &str, size: usize, most: i64) -> FieldError {
        let detail = match most {
            1 => "must have at most 1 item".to_owned(),
            0.. => format!("must have at most {most} items"),
            _ => "has too many items".to_owned(),
        };
        FieldError { field: self.field(path), problem: Problem::TooMany(size), detail }
    }

    /// The whole path of a field; Go prints none at all as `<nil>`.
    fn field(&self, path: &str) -> String {
        match (self.base, path.trim_start_matches('.')) {
            ("", "") => "<nil>".to_owned(),
            (base, "") => base.to_owned(),
            (base, path) => super::child(base, path),
        }
    }
}

/// Go converts numbers before it compares them to those of an enumeration.
fn equals(value: &Value, allowed: &Value) -> bool {
    match (value, allowed) {
        (Value::Null, _) => false,
        (Value::Number(value), Value::Number(allowed)) => match (allowed.as_i64(), value.as_i64()) {
            (Some(allowed), Some(value)) => allowed == value,
            #[allow(clippy::cast_precision_loss)]
            (Some(allowed), None) => value.as_f64().is_some_and(|value| value.trunc() == allowed as f64),
            (None, _) => allowed.as_f64() == value.as_f64(),
        },
        _ => value == allowed,
    }
}

fn count(size: usize) -> i64 {
    i64::try_from(size).unwrap_or(i64::MAX)
}
