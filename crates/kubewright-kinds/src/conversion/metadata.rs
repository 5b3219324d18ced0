//! The metadata of a converted object: the webhook may change labels and annotations, nothing else.

use kubewright_meta::rules::metadata::{self, NameRule};
use serde_json::{Map, Value, json};

/// Whether it is still the same object (`validateConvertedObject`).
pub(super) fn is_same(original: &Value, converted: &Value) -> Result<(), String> {
    for (field, what) in [("name", "name"), ("namespace", "namespace"), ("uid", "UID")] {
        let of = |object: &Value| object["metadata"][field].as_str().unwrap_or_default().to_owned();
        let (was, is) = (of(original), of(converted));
        if was != is {
            return Err(format!("must have the same {what}: {was} != {is}"));
        }
    }
    Ok(())
}

/// Puts the metadata of the original in place, with the labels and annotations of the converted object
/// (`restoreObjectMeta`).
pub(super) fn restore(original: &Value, converted: &mut Value) -> Result<(), String> {
    let given = match converted.get("metadata") {
        None => return Err("missing metadata in converted object".to_owned()),
        Some(Value::Object(given)) => given,
        Some(other) => {
            return Err(format!("invalid metadata of type {} in converted object", go_type(other)));
        }
    };
    let mut restored = original["metadata"].as_object().cloned().unwrap_or_default();
    for field in ["labels", "annotations"] {
        match given.get(field) {
            None | Some(Value::Null) => drop(restored.remove(field)),
            Some(Value::Object(texts)) => {
                check(field, texts, original["metadata"].get(field))?;
                restored.insert(field.to_owned(), Value::Object(texts.clone()));
            }
            Some(other) => {
                return Err(format!(
                    "invalid metadata.{field} of type {} in converted object",
                    go_type(other)
                ));
            }
        }
    }
    converted["metadata"] = Value::Object(restored);
    Ok(())
}

/// What has changed must be valid.
fn check(field: &str, texts: &Map<String, Value>, was: Option<&Value>) -> Result<(), String> {
    if let Some((key, wrong)) = texts.iter().find(|(_, text)| !text.is_string()) {
        let found = go_type(wrong);
        return Err(format!("metadata.{field}[{key}] must be a string, but is {found} in converted object"));
    }
    if was.and_then(Value::as_object).is_some_and(|was| was == texts) {
        return Ok(());
    }
    let object = json!({"metadata": {"name": "any", field: texts}});
    let wrong = metadata::validate(&object, NameRule::PathSegment, false);
    // kube-apiserver says `annotation` here.
    let path = if field == "labels" { "metadata.labels" } else { "metadata.annotation" };
    let mut told: Vec<String> = wrong.iter().map(|error| format!("{path}: {}", error.body())).collect();
    match told.len() {
        0 => Ok(()),
        1 => Err(told.remove(0)),
        _ => Err(format!("[{}]", told.join(", "))),
    }
}

fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_i64() => "int64",
        Value::Number(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}
