//! Merging a configuration into an object without owners, as mutating policies do
//! (`k8s.io/apiserver/pkg/admission/plugin/policy/mutating/patch/smd.go`).

use serde_json::Value;

use super::check::{check, misfit};
use super::merge::merge;
use super::shape::{ListKind, Shape};

/// The object with all that a configuration says, which has to fit the schema and to leave alone what is one value.
///
/// # Errors
/// Why it cannot be merged, in the words of kube-apiserver.
pub fn mutate(shape: Shape<'_>, object: &Value, configuration: &Value) -> Result<Value, String> {
    if let Some(why) = check(shape, configuration) {
        return Err(format!("failed to convert patch object to typed object: {why}"));
    }
    let mut atomics = Vec::new();
    find_atomics(shape, configuration, "", &mut atomics);
    if !atomics.is_empty() {
        let atomics = atomics.join(", ");
        return Err(format!(
            "invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: {atomics}"
        ));
    }
    if let Some(why) = misfit(shape, object) {
        return Err(format!("failed to convert original object to typed object: {why}"));
    }
    merge(shape, object, configuration).map_err(|why| format!("failed to merge patch: {why}"))
}

/// The lists and objects of a configuration that are one value, among the fields that have a name in the schema.
fn find_atomics(shape: Shape<'_>, value: &Value, path: &str, found: &mut Vec<String>) {
    let forms = shape.forms();
    match value {
        Value::Object(members) => {
            let Some(object) = forms.object else { return };
            if object.atomic {
                found.push(path.to_owned());
            }
            for (name, member) in members {
                if let Some(field) = object.named(name) {
                    find_atomics(field, member, &format!("{path}.{name}"), found);
                }
            }
        }
        Value::Array(items) => {
            let Some(list) = forms.list else { return };
            if list.kind == ListKind::Atomic {
                found.push(path.to_owned());
            }
            for (index, item) in items.iter().enumerate() {
                find_atomics(list.items, item, &format!("{path}[{index}]"), found);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::structural;

    /// Asked of kube-apiserver v1.36.3.
    #[test]
    fn an_object_whose_items_have_no_keys_is_not_changed() {
        let item =
            json!({"type": "object", "properties": {"name": {"type": "string"}, "a": {"type": "string"}}});
        let list = json!({"type": "array", "items": item, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]});
        let root = structural::node(&json!({"type": "object", "properties": {"list": list}}));
        let shape = Shape::Node { node: &root, preserves: false, object: true };
        let labels = json!({"metadata": {"labels": {"a": "b"}}});
        let told = mutate(shape, &json!({"list": [{"a": "x"}]}), &labels);
        let why = "failed to convert original object to typed object: .list: element 0: associative list with keys has an element that omits all key fields [\"name\"] (and doesn't have default values for any key fields)";
        assert_eq!(told, Err(why.to_owned()));
        let twins = json!({"list": [{"name": "n", "a": "x"}, {"name": "n"}]});
        assert!(
            mutate(shape, &twins, &labels).is_ok(),
            "twins that are there already are none of its business"
        );
    }
}
