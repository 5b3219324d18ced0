//! The functions of kube-apiserver's CEL environment (k8s.io/apiserver/pkg/cel/environment/base.go): what they are called and
//! take, and what they do.

mod authz;
mod conversions;
mod declarations;
mod formatting;
mod lists;
mod named_formats;
mod net;
mod numbers;
mod operators;
mod optional;
mod quantity;
mod regex;
mod semver;
mod sets;
mod strings;
mod times;
mod url;

pub(crate) use self::declarations::{Function, Overload, function};
pub(crate) use self::formatting::{Clause, FormatError, Formatter, format_string};
pub use self::named_formats::NamedFormat;
pub use self::net::{Cidr, IpAddress};
pub(crate) use self::numbers::show_double;
pub use self::quantity::Quantity;
pub(crate) use self::regex::{ILLEGAL, find, find_all};
pub use self::semver::Semver;
pub use self::url::Url;

use crate::error::EvaluationError;
use crate::types::Type;
use crate::value::{Opaque, Value};

/// What a function does.
pub(crate) type Implementation = for<'a> fn(&[Value<'a>]) -> Result<Value<'a>, EvaluationError>;

/// The largest text that a function makes. cel-go has no such bound, and no cost for the size of what `replace` makes.
const MAX_TEXT: usize = 1 << 25;

/// An overload that a call may mean.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Candidate {
    /// The types that it takes; none if it looks for itself.
    parameters: Option<&'static [Type]>,
    implementation: Implementation,
}

/// The overloads that a call may mean, with what they do.
pub(crate) fn candidates(function: &'static Function, overloads: &[usize]) -> Vec<Candidate> {
    if let Some(implementation) = operators::find(function.name) {
        return vec![Candidate { parameters: None, implementation }];
    }
    let overloads = overloads.iter().filter_map(|index| function.overloads.get(*index));
    let candidates = overloads.filter_map(|overload| {
        implementation(function.name, overload)
            .map(|implementation| Candidate { parameters: Some(&overload.parameters), implementation })
    });
    candidates.collect()
}

fn implementation(function: &str, overload: &Overload) -> Option<Implementation> {
    let id = overload.id;
    conversions::find(id)
        .or_else(|| strings::find(id))
        .or_else(|| lists::find(function, id))
        .or_else(|| times::find(id))
        .or_else(|| sets::find(id))
        .or_else(|| optional::find(id))
        .or_else(|| regex::implementation(id))
        .or_else(|| quantity::find(id))
        .or_else(|| semver::find(id))
        .or_else(|| net::find(id))
        .or_else(|| url::find(id))
        .or_else(|| named_formats::find(id))
        .or_else(|| authz::find(id))
}

/// Calls the first overload that takes the arguments.
pub(crate) fn dispatch<'a>(
    function: &Function,
    candidates: &[Candidate],
    args: &[Value<'a>],
) -> Result<Value<'a>, EvaluationError> {
    let candidate = candidates.iter().find(|candidate| candidate.takes(args));
    match candidate {
        Some(candidate) => (candidate.implementation)(args),
        None if is_plain(function.name) => Err(EvaluationError::no_such_overload()),
        None => {
            let types: Vec<String> = args.iter().map(|arg| arg.runtime_type().name().to_owned()).collect();
            Err(EvaluationError::new(format!("no such overload: {}({})", function.name, types.join(", "))))
        }
    }
}

/// The functions that refuse arguments without saying which.
fn is_plain(function: &str) -> bool {
    matches!(function, "contains" | "startsWith" | "endsWith" | "matches")
}

impl Candidate {
    fn takes(&self, args: &[Value<'_>]) -> bool {
        let Some(parameters) = self.parameters else { return true };
        parameters.len() == args.len()
            && parameters.iter().zip(args).all(|(parameter, arg)| is_of(arg, parameter))
    }
}

/// Whether a value is of a type, as far as can be seen by the first of what is in it.
fn is_of(value: &Value<'_>, r#type: &Type) -> bool {
    match (r#type, value) {
        (Type::Dyn | Type::Any | Type::Param(_), _)
        | (Type::Null, Value::Null)
        | (Type::Bool, Value::Bool(_))
        | (Type::Int, Value::Int(_))
        | (Type::Uint, Value::Uint(_))
        | (Type::Double, Value::Double(_))
        | (Type::String, Value::String(_))
        | (Type::Bytes, Value::Bytes(_))
        | (Type::Timestamp, Value::Timestamp(_))
        | (Type::Duration, Value::Duration(_))
        | (Type::Optional(_), Value::Optional(_))
        | (Type::Type(_), Value::Type(_)) => true,
        (Type::List(element), Value::List(list)) => match list.get(0) {
            Some(Ok(first)) => is_of(&first, element),
            Some(Err(_)) => false,
            None => true,
        },
        (Type::Map(key, value), Value::Map(map)) => match map.keys().first() {
            Some(first) => {
                let matching = |found: &Value<'_>| is_of(found, value);
                is_of(first, key) && map.get(first).is_ok_and(|found| found.as_ref().is_none_or(matching))
            }
            None => true,
        },
        (Type::Object(_) | Type::Opaque(_), Value::Opaque(_)) => value.runtime_type() == *r#type,
        _ => false,
    }
}

/// A value as Go prints it in messages.
pub(crate) fn show(value: &Value<'_>) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(truth) => truth.to_string(),
        Value::Int(number) => number.to_string(),
        Value::Uint(number) => number.to_string(),
        Value::Double(number) => show_double(*number),
        Value::String(text) => text.to_string(),
        Value::Timestamp(time) => time.to_string(),
        Value::Duration(duration) => duration.to_string(),
        Value::Type(named) => named.name().to_owned(),
        other => other.runtime_type().name().to_owned(),
    }
}

/// The name of the type that a value has in cel-go, where messages show it.
pub(crate) fn go_type(value: &Value<'_>) -> &'static str {
    match value {
        Value::Null => "types.Null",
        Value::Bool(_) => "types.Bool",
        Value::Int(_) => "types.Int",
        Value::Uint(_) => "types.Uint",
        Value::Double(_) => "types.Double",
        Value::String(_) => "types.String",
        Value::Bytes(_) => "types.Bytes",
        Value::Timestamp(_) => "types.Timestamp",
        Value::Duration(_) => "types.Duration",
        Value::List(_) => "*types.baseList",
        Value::Map(_) => "*types.baseMap",
        Value::Object(_) => "*dynamic.ObjectVal",
        Value::Optional(_) => "*types.Optional",
        Value::Type(_) => "*types.Type",
        Value::Hidden(_) => "*common.unknownPreserved",
        Value::Opaque(opaque) => match opaque {
            Opaque::Quantity(_) => "cel.Quantity",
            Opaque::Url(_) => "cel.URL",
            Opaque::Ip(_) => "cel.IP",
            Opaque::Cidr(_) => "cel.CIDR",
            Opaque::Semver(_) => "cel.Semver",
            Opaque::Format(_) => "cel.Format",
            Opaque::Authorizer(_) => "library.authorizerVal",
            Opaque::PathCheck(..) => "library.pathCheckVal",
            Opaque::GroupCheck(..) => "library.groupCheckVal",
            Opaque::ResourceCheck(..) => "library.resourceCheckVal",
            Opaque::Decision(_) => "library.decisionVal",
        },
    }
}

/// Text that a function made, unless there is too much of it.
fn text<'a>(made: String) -> Result<Value<'a>, EvaluationError> {
    if made.len() > MAX_TEXT {
        return Err(too_large());
    }
    Ok(Value::from(made))
}

fn too_large() -> EvaluationError {
    EvaluationError::new("result is too large")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_declared_overload_does_something() {
        let elsewhere = [
            "_&&_",
            "_||_",
            "_==_",
            "_!=_",
            "_?._",
            "_?_:_",
            "_[_]",
            "_[?_]",
            "@not_strictly_false",
            "or",
            "orValue",
        ];
        for function in declarations::all().filter(|function| !elsewhere.contains(&function.name)) {
            for (index, overload) in function.overloads.iter().enumerate() {
                assert_eq!(candidates(function, &[index]).len(), 1, "{}", overload.id);
            }
        }
    }
}
