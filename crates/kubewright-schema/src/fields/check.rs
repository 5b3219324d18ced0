//! Whether a configuration fits the schema of what it is applied to, in the words of
//! `sigs.k8s.io/structured-merge-diff/v6/typed`, `validate.go`.

use std::collections::BTreeSet;

use kubewright_meta::cost;
use serde_json::{Map, Value};

use super::item;
use super::printed::{in_go, plain, type_name};
use super::shape::{Form, List, ListKind, Object, Scalar, Shape};

/// What is wrong with a configuration.
#[must_use]
pub(super) fn check(shape: Shape<'_>, value: &Value) -> Option<String> {
    Checker { path: String::new(), errors: Vec::new(), refuses_twins: true }.found(shape, value)
}

/// Why an object does not fit a schema: its lists may have items twice (`typed.AllowDuplicates`).
pub(super) fn misfit(shape: Shape<'_>, value: &Value) -> Option<String> {
    Checker { path: String::new(), errors: Vec::new(), refuses_twins: false }.found(shape, value)
}

struct Checker {
    path: String,
    errors: Vec<String>,
    /// Whether items that have the same key are an error.
    refuses_twins: bool,
}

impl Checker {
    fn found(mut self, shape: Shape<'_>, value: &Value) -> Option<String> {
        self.value(shape, value);
        match self.errors.as_slice() {
            [] => None,
            [one] => Some(one.clone()),
            many => Some(format!("errors:\n  {}", many.join("\n  "))),
        }
    }

    fn report(&mut self, what: &str) {
        let path = &self.path;
        self.errors.push(if path.is_empty() { what.to_owned() } else { format!("{path}: {what}") });
    }

    fn value(&mut self, shape: Shape<'_>, value: &Value) {
        cost::step();
        match shape.form(Some(value)) {
            None => self.report("schema error: invalid atom: inlined"),
            Some(_) if value.is_null() => {}
            Some(Form::Scalar(scalar)) => self.scalar(scalar, value),
            Some(Form::Object(object)) => match value {
                Value::Object(members) => self.object(&object, members),
                other => self.report(&format!("expected map, got &{{{}}}", plain(other))),
            },
            Some(Form::List(list)) => match value {
                Value::Array(items) => self.list(&list, items),
                other => self.report(&format!("expected list, got &{{{}}}", plain(other))),
            },
        }
    }

    fn scalar(&mut self, scalar: Scalar, value: &Value) {
        match (scalar, value) {
            (Scalar::Numeric | Scalar::Untyped, Value::Number(_))
            | (Scalar::String | Scalar::Untyped, Value::String(_))
            | (Scalar::Boolean | Scalar::Untyped, Value::Bool(_)) => {}
            (Scalar::Numeric, other) => {
                self.report(&format!("expected numeric (int or float), got {}", type_name(other)));
            }
            (Scalar::String, other) => {
                self.report(&format!(
                    "expected string, got &value.valueUnstructured{{Value:{}}}",
                    in_go(other)
                ));
            }
            (Scalar::Boolean, other) => self.report(&format!("expected boolean, got &{{{}}}", plain(other))),
            (Scalar::Untyped, other) => {
                self.report(&format!("expected any scalar, got &{{{}}}", plain(other)));
            }
        }
    }

    /// Nothing is said of the members after one that is not known.
    fn object(&mut self, object: &Object<'_>, members: &Map<String, Value>) {
        let length = self.path.len();
        for (name, value) in members {
            self.path.push('.');
            self.path.push_str(name);
            let shape = object.field(name);
            match shape {
                Some(shape) => self.value(shape, value),
                None => self.report("field not declared in schema"),
            }
            self.path.truncate(length);
            if shape.is_none() {
                return;
            }
        }
    }

    /// Nothing is said of the items after one that cannot be told apart.
    fn list(&mut self, list: &List<'_>, items: &[Value]) {
        let length = self.path.len();
        let mut seen = BTreeSet::new();
        for (at, value) in items.iter().enumerate() {
            if list.kind == ListKind::Atomic {
                self.path.push_str(&format!("[{at}]"));
            } else {
                match item::element(list, value) {
                    Err(why) => return self.report(&format!("element {at}: {why}")),
                    Ok(step) => {
                        if self.refuses_twins && seen.contains(&step) {
                            self.report(&format!("duplicate entries for key {step}"));
                        }
                        self.path.push_str(&step.to_string());
                        seen.insert(step);
                    }
                }
            }
            self.value(list.items, value);
            self.path.truncate(length);
        }
    }
}
