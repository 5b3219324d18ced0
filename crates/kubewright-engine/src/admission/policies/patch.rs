//! What the expression of a mutation gives becomes a change of an object (`.../policy/mutating/patch`).

use kubewright_cel::{Object, Value as Cel};
use kubewright_kinds::Kind;
use kubewright_kinds::encode::set_type;
use kubewright_meta::object::read_doubles_back;
use kubewright_schema::fields::{Shape, mutate};
use kubewright_schema::patch::json::Failure;
use kubewright_schema::patch::{JsonPatch, explain};
use serde_json::{Map, Value};

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
    mutate(Shape::of(kind), object, &configuration).map_err(|why| format!("error applying patch: {why}"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use kubewright_kinds::Kinds;
    use kubewright_kinds::definition::{self, Versions};
    use serde_json::json;

    use super::*;

    fn merged(kind: &Kind, object: &Value, configuration: &Value) -> Result<Value, String> {
        mutate(Shape::of(kind), object, configuration)
    }

    fn pod(spec: &Value, configuration: &Value) -> Result<Value, String> {
        let kinds = Kinds::built_in();
        let pods = kinds.get("", "v1", "pods").expect("a built-in kind");
        let merged = merged(pods, &json!({"spec": spec}), &json!({"spec": configuration}))?;
        Ok(merged["spec"].clone())
    }

    /// Asked of kube-apiserver v1.36.3.
    #[test]
    fn custom_objects_have_metadata_that_their_schemas_do_not_tell() {
        let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {"a": {"type": "string"}}}}});
        let definition = json!({"metadata": {"name": "things.g"}, "spec": {"group": "g", "names": {"kind": "Thing", "plural": "things"}, "scope": "Namespaced",
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}]}});
        let versions = Versions::of(&definition, None, &BTreeSet::new());
        let kind = definition::kinds(&definition, &versions.into()).pop().expect("a version");
        let object =
            json!({"apiVersion": "g/v1", "kind": "Thing", "metadata": {"name": "a", "finalizers": ["x"]}});
        let labels = json!({"apiVersion": "g/v1", "kind": "Thing", "metadata": {"labels": {"a": "b"}, "finalizers": ["y"]}});
        let labelled = merged(&kind, &object, &labels).expect("it fits");
        let metadata = json!({"name": "a", "labels": {"a": "b"}, "finalizers": ["x", "y"]});
        assert_eq!(labelled["metadata"], metadata);
        let wrong = json!({"spec": {"a": 1}});
        let why = "failed to convert original object to typed object: .spec.a: expected string, got &value.valueUnstructured{Value:1}";
        assert_eq!(merged(&kind, &wrong, &labels), Err(why.to_owned()));
        let why = r#"failed to convert original object to typed object: .spec.a: expected string, got &value.valueUnstructured{Value:map[string]interface {}{"b":[]interface {}{}}}"#;
        assert_eq!(merged(&kind, &json!({"spec": {"a": {"b": []}}}), &labels), Err(why.to_owned()));
        let why = "failed to convert original object to typed object: .spec: expected map, got &{1.5}";
        assert_eq!(merged(&kind, &json!({"spec": 1.5}), &labels), Err(why.to_owned()));
    }

    #[test]
    fn lists_are_merged_by_their_keys_and_keep_their_order() {
        let spec = json!({"containers": [{"name": "a", "image": "i"}, {"name": "b", "args": ["x"]}]});
        let configuration = json!({"containers": [
            {"name": "b", "image": "j"}, {"name": "c", "image": "k"},
        ]});
        assert_eq!(
            pod(&spec, &configuration),
            Ok(json!({"containers": [
                {"name": "a", "image": "i"}, {"name": "b", "args": ["x"], "image": "j"},
                {"name": "c", "image": "k"}
            ]}))
        );
        let ports =
            json!({"containers": [{"name": "a", "ports": [{"containerPort": 80, "protocol": "TCP"}]}]});
        let named = json!({"containers": [{"name": "a", "ports": [{"containerPort": 80, "name": "web"}]}]});
        assert_eq!(
            pod(&ports, &named),
            Ok(json!({"containers": [{"name": "a", "ports": [
                {"containerPort": 80, "protocol": "TCP", "name": "web"}
            ]}]}))
        );
    }

    /// The answers are kube-apiserver v1.36's.
    #[test]
    fn what_does_not_fit_or_is_atomic_is_refused() {
        let spec = json!({"containers": [{"name": "a", "args": ["x"]}]});
        for (configuration, why) in [
            (
                json!({"containers": [{"name": "a", "args": ["y"]}]}),
                "invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: .spec.containers[0].args",
            ),
            (
                json!({"nodeSelector": {"a": "b"}, "tolerations": [{"key": "x"}]}),
                "invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: .spec.nodeSelector, .spec.tolerations",
            ),
            (
                json!({"junk": 1}),
                "failed to convert patch object to typed object: .spec.junk: field not declared in schema",
            ),
            (
                json!({"hostname": 1}),
                "failed to convert patch object to typed object: .spec.hostname: expected string, got &value.valueUnstructured{Value:1}",
            ),
        ] {
            assert_eq!(pod(&spec, &configuration), Err(why.to_owned()));
        }
    }
}
