//! Values as messages of Go programs show them.

use serde_json::Value;

/// The type of a value in Go.
pub fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

/// A value as Go prints it with `%v`.
pub fn plain(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(items) => format!("[{}]", items.iter().map(plain).collect::<Vec<_>>().join(" ")),
        Value::Object(members) => {
            let members: Vec<_> =
                members.iter().map(|(name, value)| format!("{name}:{}", plain(value))).collect();
            format!("map[{}]", members.join(" "))
        }
        scalar => scalar.to_string(),
    }
}

/// A value as Go prints it with `%#v`.
#[must_use]
pub fn in_go(value: &Value) -> String {
    match value {
        Value::Null => "interface {}(nil)".to_owned(),
        Value::Array(items) => {
            format!("[]interface {{}}{{{}}}", items.iter().map(in_go).collect::<Vec<_>>().join(", "))
        }
        Value::Object(members) => {
            let members: Vec<_> =
                members.iter().map(|(name, value)| format!("{name:?}:{}", in_go(value))).collect();
            format!("map[string]interface {{}}{{{}}}", members.join(", "))
        }
        scalar => scalar.to_string(),
    }
}

/// An error of Go's JSON decoder in the words of `k8s.io/apimachinery/pkg/runtime`, `converter.go`, by which typed
/// objects are made of what patches and configurations make.
pub(crate) fn converted(why: &str) -> String {
    if why.starts_with("illegal base64") {
        return format!("error decoding from json: {why}");
    }
    let Some((found, target)) = mismatch(why) else { return why.to_owned() };
    let kind = match found {
        "array" => "slice",
        "object" => "map",
        "number" => "int64",
        number if number.starts_with("number ") => {
            if number.contains(['.', 'e', 'E']) {
                "float64"
            } else {
                "int64"
            }
        }
        other => other,
    };
    // What a type with a name of its own is made of stands before the name.
    let (target, name) = target.split_once(' ').unwrap_or((target, target));
    let is_number = matches!(target, "uint8" | "int32" | "int64" | "float64");
    match (kind, target) {
        (_, map) if map.starts_with("map[") => format!("cannot restore map from {kind}"),
        (_, list) if list.starts_with("[]") => format!("cannot restore slice from {kind}"),
        (_, named) if named.contains('.') => format!("cannot restore struct from: {kind}"),
        ("int64" | "float64", _) if is_number || (kind, target) == ("int64", "string") => {
            format!("cannot convert {kind} to {name}")
        }
        _ => format!("unrecognized type: {target}"),
    }
}

/// What was found, and what was wanted, where a field of a struct is of a wrong type.
fn mismatch(why: &str) -> Option<(&str, &str)> {
    let (found, rest) = why.strip_prefix("json: cannot unmarshal ")?.split_once(" into Go struct field ")?;
    let (_, target) = rest.split_once(" of type ")?;
    Some((found, target))
}
