//! What the expression of a mutation gives becomes a change of an object (`.../policy/mutating/patch`).

use kubewright_cel::{Object, Value as Cel};
use kubewright_kinds::Kind;
use kubewright_kinds::encode::set_type;
use kubewright_meta::object::read_doubles_back;
use kubewright_schema::patch::json::Failure;
use kubewright_schema::patch::{JsonPatch, explain};
use serde_json::{Map, Value};

use super::merge::merge;

/// The object after a list of `JSONPatch{...}`. One whose `test` does not hold changes nothing.
///
/// # Errors
/// Why it cannot be applied.
pub(super) fn by_json_patch(value: &Cel<'_>, object: &Value) -> Result<Value, String> {
    let Cel::List(list) = value else {
        return Err("type mismatch: JSONPatchType.expression should evaluate to array".to_owned());
    };
    let mut operations = Vec::new();
    for item in list.values().map_err(|why| why.to_string())? {
        match &item {
            Cel::Object(operation) => operations.push(operation_of(operation)?),
            _ => {
                let what = "type mismatch: JSONPatchType.expression should evaluate to array of JSONPatch";
                return Err(what.to_owned());
            }
        }
    }
    let bytes = Value::Array(operations).to_string().into_bytes();
    match JsonPatch::parse(&bytes).map_err(|error| error.message)?.apply(object) {
        Ok(mut patched) => {
            read_doubles_back(&mut patched);
            Ok(patched)
        }
        Err(Failure::Test) => Ok(object.clone()),
        Err(_) => Err(format!("JSON Patch: {}", explain(&bytes, object))),
    }
}

fn operation_of(operation: &Object<'_>) -> Result<Value, String> {
    let mut members = Map::new();
    for (name, value) in &operation.fields {
        if &**name == "value" {
            check_types(value)?;
        }
        let value = value.to_json().map_err(|why| {
            format!("JSONPath valueExpression evaluated to a type that could not marshal to JSON: {why}")
        })?;
        members.insert(name.to_string(), value);
    }
    Ok(Value::Object(members))
}

/// The types of all `Object{...}` are those of the fields in which they stand.
fn check_types(value: &Cel<'_>) -> Result<(), String> {
    let Cel::Object(object) = value else { return Ok(()) };
    let mut wrong = Vec::new();
    find_wrong_types(value, &object.type_name, &mut wrong);
    if wrong.is_empty() { Ok(()) } else { Err(format!("type mismatch: {}", wrong.join("\n"))) }
}

fn find_wrong_types(value: &Cel<'_>, expected: &str, wrong: &mut Vec<String>) {
    match value {
        Cel::Object(object) => {
            if &*object.type_name != expected {
                wrong.push(format!(
                    "unexpected type name {:?}, expected {expected:?}, which matches field name path from root Object type",
                    &*object.type_name
                ));
            }
            for (name, field) in &object.fields {
                find_wrong_types(field, &format!("{expected}.{name}"), wrong);
            }
        }
        Cel::List(list) => {
            list.iter().flatten().for_each(|item| find_wrong_types(&item, expected, wrong));
        }
        Cel::Map(map) => {
            let values = map.keys().into_iter().filter_map(|key| map.get(&key).ok().flatten());
            values.for_each(|item| find_wrong_types(&item, expected, wrong));
        }
        _ => {}
    }
}

/// The object with the fields of an `Object{...}` merged into it, as server-side apply merges, but without owners.
///
/// # Errors
/// Why it cannot be merged.
pub(super) fn by_configuration(value: &Cel<'_>, object: &Value, kind: &Kind) -> Result<Value, String> {
    check_types(value)?;
    let mut configuration = value.to_json().map_err(|why| why.to_string())?;
    set_type(kind, &mut configuration);
    merge(kind, object, &configuration).map_err(|why| format!("error applying patch: {why}"))
}
