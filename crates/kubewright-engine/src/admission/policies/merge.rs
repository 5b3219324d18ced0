//! Merging an apply configuration into an object, without owners (`.../policy/mutating/patch/smd.go` over
//! `sigs.k8s.io/structured-merge-diff/v6/typed`): the configuration must fit the schema and touch nothing atomic; then
//! objects are merged field by field, and lists by their keys.

use std::borrow::Cow;
use std::sync::LazyLock;

use kubewright_kinds::Kind;
use kubewright_schema::fields::printed;
use kubewright_schema::{Additional, ListType, MapType, Node, Schema, Type};
use serde_json::{Map, Value, json};

/// The metadata of custom objects, which their schemas say nothing of.
static METADATA: LazyLock<Schema> =
    LazyLock::new(|| Schema::built_in("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"));
/// What custom objects say to be.
static TEXT: LazyLock<Schema> = LazyLock::new(|| Schema::custom(&json!({"type": "string"})));

/// What objects of a kind look like, with what all objects have.
fn root_of(kind: &Kind) -> Cow<'_, Node> {
    let root = kind.schema().root();
    if kind.custom.is_none() {
        return Cow::Borrowed(root);
    }
    let mut whole = Node::clone(root);
    for (field, schema) in [("apiVersion", &TEXT), ("kind", &TEXT), ("metadata", &METADATA)] {
        whole.properties.insert(field.into(), schema.root().clone());
    }
    Cow::Owned(whole)
}

/// The object with the configuration merged into it.
///
/// # Errors
/// Why it cannot be, in Kubernetes' words.
pub(super) fn merge(kind: &Kind, object: &Value, configuration: &Value) -> Result<Value, String> {
    let root = root_of(kind);
    let node = &*root;
    // Objects of built-in kinds are of their types.
    if kind.custom.is_some() {
        checked(node, object, "original")?;
    }
    checked(node, configuration, "patch")?;
    let mut atomics = Vec::new();
    find_atomics(node, configuration, "", &mut atomics);
    if !atomics.is_empty() {
        let atomics = atomics.join(", ");
        return Err(format!(
            "invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: {atomics}"
        ));
    }
    Ok(merged(Some(node), Some(object), configuration))
}

fn checked(node: &Node, value: &Value, of: &str) -> Result<(), String> {
    let mut complaints = Vec::new();
    check(node, value, "", &mut complaints);
    match complaints.as_slice() {
        [] => Ok(()),
        [one] => Err(format!("failed to convert {of} object to typed object: {one}")),
        many => {
            let many = many.join("\n  ");
            Err(format!("failed to convert {of} object to typed object: errors:\n  {many}"))
        }
    }
}

/// Whether a schema says nothing about what is in a value: it goes as it comes.
fn is_open(node: &Node) -> bool {
    node.kind.is_none() || node.preserve_unknown_fields || matches!(node.additional, Additional::Any)
}

fn check(node: &Node, value: &Value, path: &str, complaints: &mut Vec<String>) {
    let node = node.target();
    if value.is_null() || node.int_or_string {
        return;
    }
    let wanted = match (node.kind, value) {
        (None, _) | (Some(Type::String), Value::String(_)) | (Some(Type::Boolean), Value::Bool(_)) => return,
        (Some(Type::Integer | Type::Number), Value::Number(_)) => return,
        (Some(Type::Object), Value::Object(members)) => {
            for (name, member) in members {
                let path = format!("{path}.{name}");
                match node.field(name) {
                    Some(field) => check(field, member, &path, complaints),
                    None if is_open(node) => {}
                    None => complaints.push(format!("{path}: field not declared in schema")),
                }
            }
            return;
        }
        (Some(Type::Array), Value::Array(items)) => {
            if let Some(of) = &node.items {
                for (index, item) in items.iter().enumerate() {
                    check(of, item, &format!("{path}{}", element(node, item, index)), complaints);
                }
            }
            return;
        }
        (Some(Type::Object), _) => "map",
        (Some(Type::Array), _) => "list",
        (Some(Type::String), _) => "string",
        (Some(Type::Boolean), _) => "boolean",
        (Some(Type::Integer | Type::Number), _) => "numeric (int or float)",
    };
    // As Go prints it there: in full, by its type, or plainly (`sigs.k8s.io/structured-merge-diff/v6/typed`, `validate.go`, `helpers.go`).
    let shown = match wanted {
        "string" => format!("&value.valueUnstructured{{Value:{}}}", printed::in_go(value)),
        "map" | "list" | "boolean" => format!("&{{{}}}", printed::plain(value)),
        _ => printed::type_name(value).to_owned(),
    };
    complaints.push(format!("{path}: expected {wanted}, got {shown}"));
}

/// How an item of a list is called in a path.
fn element(list: &Node, item: &Value, index: usize) -> String {
    match list.list_type() {
        Some(ListType::Map) => {
            let keys = list.list_map_keys().iter();
            let keys: Vec<String> = keys.map(|key| format!("{key}={}", item[&**key])).collect();
            format!("[{}]", keys.join(","))
        }
        Some(ListType::Set) => format!("[={item}]"),
        Some(ListType::Atomic) | None => format!("[{index}]"),
    }
}

fn find_atomics(node: &Node, value: &Value, path: &str, found: &mut Vec<String>) {
    let atomic = match value {
        Value::Object(_) => node.map_type() == Some(MapType::Atomic),
        Value::Array(_) => {
            !matches!(node.list_type(), Some(ListType::Map | ListType::Set)) && node.target().kind.is_some()
        }
        _ => return,
    };
    if atomic {
        found.push(path.to_owned());
    }
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                if let Some(field) = node.target().properties.get(name.as_str()) {
                    find_atomics(field, member, &format!("{path}.{name}"), found);
                }
            }
        }
        Value::Array(items) => {
            if let Some(of) = &node.target().items {
                for (index, item) in items.iter().enumerate() {
                    find_atomics(of, item, &format!("{path}[{index}]"), found);
                }
            }
        }
        _ => {}
    }
}

fn merged(node: Option<&Node>, old: Option<&Value>, new: &Value) -> Value {
    match (old, new) {
        (Some(Value::Object(old)), Value::Object(new)) => Value::Object(merged_objects(node, old, new)),
        (Some(Value::Array(old)), Value::Array(new)) => match node {
            Some(node) => Value::Array(merged_lists(node, old, new)),
            None => Value::Array(new.clone()),
        },
        _ => new.clone(),
    }
}

fn merged_objects(
    node: Option<&Node>,
    old: &Map<String, Value>,
    new: &Map<String, Value>,
) -> Map<String, Value> {
    let mut result = old.clone();
    for (name, value) in new {
        let field = node.and_then(|node| node.field(name)).map(|field| &**field);
        result.insert(name.clone(), merged(field, old.get(name), value));
    }
    result
}

/// What only the object has keeps its place; the rest comes in the order of the configuration.
fn merged_lists(list: &Node, old: &[Value], new: &[Value]) -> Vec<Value> {
    let key = |item: &Value| identity(list, item);
    let in_new = |item: &Value| new.iter().any(|one| key(one) == key(item));
    let items = list.target().items.as_deref();
    let mut result = Vec::with_capacity(old.len() + new.len());
    let (mut left, mut right) = (old.iter().peekable(), new.iter());
    loop {
        while let Some(item) = left.next_if(|item| !in_new(item)) {
            result.push(item.clone());
        }
        let Some(item) = right.next() else { break };
        let before = old.iter().find(|one| key(one) == key(item));
        if left.peek().is_some_and(|next| key(next) == key(item)) {
            left.next();
        }
        result.push(merged(items, before, item));
    }
    result.extend(left.filter(|item| !in_new(item)).cloned());
    result
}

/// What tells an item of a list from others: its keys, with their defaults, or all of it.
fn identity(list: &Node, item: &Value) -> Vec<Value> {
    if list.list_type() != Some(ListType::Map) {
        return vec![item.clone()];
    }
    let of = list.target().items.as_deref();
    let keys = list.list_map_keys().iter().map(|key| {
        let given = item.get(&**key).cloned();
        given.or_else(|| of?.field(key)?.default.clone()).unwrap_or_default()
    });
    keys.collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use kubewright_kinds::Kinds;
    use kubewright_kinds::definition::{self, Versions};

    fn pod(spec: &Value, configuration: &Value) -> Result<Value, String> {
        let kinds = Kinds::built_in();
        let pods = kinds.get("", "v1", "pods").expect("a built-in kind");
        let merged = merge(pods, &json!({"spec": spec}), &json!({"spec": configuration}))?;
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
        let merged = merge(&kind, &object, &labels).expect("it fits");
        let metadata = json!({"name": "a", "labels": {"a": "b"}, "finalizers": ["x", "y"]});
        assert_eq!(merged["metadata"], metadata);
        let wrong = json!({"spec": {"a": 1}});
        let why = "failed to convert original object to typed object: .spec.a: expected string, got &value.valueUnstructured{Value:1}";
        assert_eq!(merge(&kind, &wrong, &labels), Err(why.to_owned()));
        let why = r#"failed to convert original object to typed object: .spec.a: expected string, got &value.valueUnstructured{Value:map[string]interface {}{"b":[]interface {}{}}}"#;
        assert_eq!(merge(&kind, &json!({"spec": {"a": {"b": []}}}), &labels), Err(why.to_owned()));
        let why = "failed to convert original object to typed object: .spec: expected map, got &{1.5}";
        assert_eq!(merge(&kind, &json!({"spec": 1.5}), &labels), Err(why.to_owned()));
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
