//! Checks of authorization (k8s.io/apiserver/pkg/cel/library/authz.go).

use std::sync::Arc;

use super::{Implementation, named_formats};
use crate::authorizer::{Attributes, Decision, ResourceAttributes, Subject};
use crate::error::EvaluationError;
use crate::value::{AuthorizerCheck, Opaque, Value};

type Outcome<'a> = Result<Value<'a>, EvaluationError>;

pub(super) fn find(overload: &str) -> Option<Implementation> {
    Some(match overload {
        "authorizer_path" => path,
        "authorizer_group" => |args| match args {
            [Value::Opaque(Opaque::Authorizer(check)), Value::String(group)] => {
                Ok(Value::Opaque(Opaque::GroupCheck(check.clone(), (&**group).into())))
            }
            _ => no_overload(),
        },
        "authorizer_serviceaccount" => service_account,
        "groupcheck_resource" => resource,
        "resourcecheck_subresource" => |args| refine(args, |attributes, text| attributes.subresource = text),
        "resourcecheck_namespace" => |args| refine(args, |attributes, text| attributes.namespace = text),
        "resourcecheck_name" => |args| refine(args, |attributes, text| attributes.name = text),
        "authorizer_fieldselector" => {
            |args| refine(args, |attributes, text| attributes.field_selector = given(text))
        }
        "authorizer_labelselector" => {
            |args| refine(args, |attributes, text| attributes.label_selector = given(text))
        }
        "pathcheck_check" | "resourcecheck_check" => check,
        "decision_errored" => |args| decision(args, |decision| Value::Bool(decision.error.is_some())),
        "decision_error" => {
            |args| decision(args, |decision| Value::from(decision.error.clone().unwrap_or_default()))
        }
        "decision_allowed" => |args| decision(args, |decision| Value::Bool(decision.allowed)),
        "decision_reason" => |args| decision(args, |decision| Value::from(decision.reason.clone())),
        _ => return None,
    })
}

fn no_overload<'a>() -> Outcome<'a> {
    Err(EvaluationError::no_such_overload())
}

fn given(selector: String) -> Option<String> {
    (!selector.is_empty()).then_some(selector)
}

fn path<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    let [Value::Opaque(Opaque::Authorizer(check)), Value::String(path)] = args else { return no_overload() };
    if path.trim().is_empty() {
        return Err(EvaluationError::new("path must not be empty"));
    }
    Ok(Value::Opaque(Opaque::PathCheck(check.clone(), (&**path).into())))
}

fn service_account<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    let [Value::Opaque(Opaque::Authorizer(check)), Value::String(namespace), Value::String(name)] = args
    else {
        return no_overload();
    };
    if !named_formats::is_subdomain(name) {
        return Err(EvaluationError::new("Invalid service account name"));
    }
    if !named_formats::is_label(namespace) {
        return Err(EvaluationError::new("Invalid service account namespace"));
    }
    let subject = Subject::ServiceAccount { namespace: namespace.to_string(), name: name.to_string() };
    let check = AuthorizerCheck { authorizer: check.authorizer, subject: Arc::new(subject) };
    Ok(Value::Opaque(Opaque::Authorizer(check)))
}

fn resource<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    let [Value::Opaque(Opaque::GroupCheck(check, group)), Value::String(resource)] = args else {
        return no_overload();
    };
    if resource.trim().is_empty() {
        return Err(EvaluationError::new("resource must not be empty"));
    }
    let attributes = ResourceAttributes {
        group: group.to_string(),
        version: "*".to_owned(),
        resource: resource.to_string(),
        ..ResourceAttributes::default()
    };
    Ok(Value::Opaque(Opaque::ResourceCheck(check.clone(), Arc::new(attributes))))
}

fn refine<'a>(args: &[Value<'a>], set: fn(&mut ResourceAttributes, String)) -> Outcome<'a> {
    let [Value::Opaque(Opaque::ResourceCheck(check, attributes)), Value::String(text)] = args else {
        return no_overload();
    };
    let mut refined = (**attributes).clone();
    set(&mut refined, text.to_string());
    Ok(Value::Opaque(Opaque::ResourceCheck(check.clone(), Arc::new(refined))))
}

fn check<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    let (check, attributes) = match args {
        [Value::Opaque(Opaque::PathCheck(check, path)), Value::String(verb)] => {
            (check, Attributes::Path { path: path.to_string(), verb: verb.to_string() })
        }
        [Value::Opaque(Opaque::ResourceCheck(check, resource)), Value::String(verb)] => {
            (check, Attributes::Resource { resource: (**resource).clone(), verb: verb.to_string() })
        }
        _ => return no_overload(),
    };
    let decision = check.authorizer.authorize(&check.subject, &attributes);
    Ok(Value::Opaque(Opaque::Decision(Arc::new(decision))))
}

fn decision<'a>(args: &[Value<'a>], show: fn(&Decision) -> Value<'a>) -> Outcome<'a> {
    match args {
        [Value::Opaque(Opaque::Decision(decision))] => Ok(show(decision)),
        _ => no_overload(),
    }
}
