//! The validation of custom resources, and what is stored of them, in the order of kube-apiserver
//! (`apiextensions-apiserver/pkg/registry/customresource/{strategy,status_strategy,validator}.go`).

use kubewright_kinds::{Kind, ScalePaths, Subresource};
use kubewright_meta::FieldError;
use kubewright_meta::go;
use kubewright_schema::fields::printed;
use kubewright_schema::{Candidate, Extent};
use serde_json::Value;

use crate::request::type_of_body;

/// Adds what is wrong with a custom object to the `errors` of its metadata. Built-in kinds: nothing. Of one that says to be of
/// another kind that is told, and what values, scale and metadata as of a new object have is not. Returns warnings of what
/// is wrong, but was so before.
pub(super) fn check(kind: &Kind, candidate: Candidate<'_>, errors: &mut Vec<FieldError>) -> Vec<String> {
    if kind.custom.is_none() {
        return Vec::new();
    }
    let schema = kind.schema();
    let mistyped = type_of_body::errors_of_custom(kind, candidate.object);
    if mistyped.is_empty() {
        errors.extend(schema.value_errors(candidate));
        if let Some(Subresource::CustomScale(paths)) = kind.subresource("scale") {
            scale(paths, candidate, errors);
        }
    } else {
        if candidate.old.is_none() {
            errors.clear();
        }
        errors.extend(mistyped);
    }
    errors.extend(schema.structure_errors(candidate));
    let (broken, warnings) = schema.rule_errors(candidate, errors);
    errors.extend(broken);
    warnings
}

/// Prunes what configurations and admission have made of a custom object, before it is stored. Returns whether kube-apiserver would store
/// what was pruned, and then not read it. The next write of what is read is a write then, although nothing changes.
pub(super) fn prune(kind: &Kind, object: &mut Value) -> bool {
    kind.custom.as_ref().is_some_and(|custom| custom.versions.prune(&kind.version, object))
}

/// What is wrong with the numbers and the selector that the scale subresource shows.
fn scale(paths: &ScalePaths, candidate: Candidate<'_>, errors: &mut Vec<FieldError>) {
    let mut number = |path: &str| match at(candidate.object, path) {
        Ok(None) => {}
        Ok(Some(Value::Number(number))) if number.is_i64() => {
            let number = number.as_i64().unwrap_or_default();
            if number < 0 {
                errors.push(FieldError::invalid(path, number, "should be a non-negative integer"));
            } else if number > i64::from(i32::MAX) {
                let detail = format!("should be less than or equal to {}", i32::MAX);
                errors.push(FieldError::invalid(path, number, detail));
            }
        }
        Ok(Some(other)) => errors.push(FieldError::invalid(path, 0, wrong_type(path, other, "int64"))),
        Err(why) => errors.push(FieldError::invalid(path, 0, why)),
    };
    if candidate.part == Extent::Whole {
        number(&paths.spec_replicas);
    }
    number(&paths.status_replicas);
    if let Some(path) = &paths.label_selector {
        let wrong = match at(candidate.object, path) {
            Ok(None | Some(Value::String(_))) => return,
            Ok(Some(other)) => wrong_type(path, other, "string"),
            Err(why) => why,
        };
        errors.push(FieldError::invalid(path, "", wrong));
    }
}

/// The member at a path such as `.spec.replicas`, or why there cannot be one (`unstructured.NestedFieldNoCopy`).
fn at<'a>(object: &'a Value, path: &str) -> Result<Option<&'a Value>, String> {
    let mut here = object;
    let mut gone = String::new();
    for name in path.trim_start_matches('.').split('.') {
        gone.push('.');
        gone.push_str(name);
        here = match here {
            Value::Object(fields) => match fields.get(name) {
                Some(inner) => inner,
                None => return Ok(None),
            },
            Value::Null => return Ok(None),
            other => return Err(wrong_type(&gone, other, "map[string]interface{}")),
        };
    }
    Ok(Some(here))
}

fn wrong_type(path: &str, found: &Value, expected: &str) -> String {
    let (shown, kind) = match found {
        Value::Null => ("<nil>".to_owned(), "<nil>"),
        Value::Bool(value) => (value.to_string(), "bool"),
        Value::Number(number) if number.is_i64() => (number.to_string(), "int64"),
        Value::Number(number) => (go::printed(number.as_f64().unwrap_or_default()), "float64"),
        Value::String(text) => (text.clone(), "string"),
        Value::Array(_) => (printed::plain(found), "[]interface {}"),
        Value::Object(_) => (printed::plain(found), "map[string]interface {}"),
    };
    format!("{path} accessor error: {shown} is of the type {kind}, expected {expected}")
}
