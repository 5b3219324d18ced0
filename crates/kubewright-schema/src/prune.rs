//! Decoding of custom resources: metadata is read as Go reads it, the rest is pruned by the schema
//! (`apiextensions-apiserver/pkg/apiserver/schema/{objectmeta,pruning}`).

use kubewright_meta::{FieldError, cost};
use kubewright_spec::Version;
use serde_json::{Map, Value};

use super::decode::Reading;
use super::node::{Additional, Node};
use super::{built_in, decode};

const META: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// Prunes a custom resource in place. Returns the paths of its unknown fields: those of metadata first, then the others in
/// order.
///
/// # Errors
/// Metadata that does not decode.
pub fn object(root: &Node, object: &mut Value) -> Result<Vec<String>, String> {
    let mut unknown = metadata_of(root, object)?;
    unknown.append(&mut unknown_of(root, object));
    Ok(unknown)
}

/// Makes what a configuration or admission has made of a custom resource what is read of it once it is stored: its metadata is read, and what
/// is unknown goes. Returns whether that is less.
pub fn as_read(root: &Node, object: &mut Value) -> bool {
    let has_empty = STORED_EMPTY.iter().any(|name| object["metadata"].get(name).is_some_and(says_nothing));
    if has_empty {
        // What does not decode is not here any more.
        let _ = metadata_of(root, object);
    }
    !unknown_of(root, object).is_empty() || has_empty
}

/// The members of metadata that say something to admission although there is nothing in them, and that are stored so.
const STORED_EMPTY: [&str; 6] =
    ["annotations", "deletionGracePeriodSeconds", "finalizers", "generateName", "labels", "ownerReferences"];

/// As [`metadata_of`], of what was applied, which kube-apiserver does not decode: members of metadata without contents stay.
///
/// # Errors
/// Metadata that does not decode.
pub fn applied(root: &Node, object: &mut Value) -> Result<(), String> {
    let sent = &object["metadata"];
    let empty = STORED_EMPTY.into_iter().filter_map(|name| Some((name.to_owned(), sent.get(name)?)));
    let empty: Vec<(String, Value)> =
        empty.filter(|(_, value)| says_nothing(value)).map(|(name, value)| (name, value.clone())).collect();
    metadata_of(root, object)?;
    if let Some(read) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        read.extend(empty);
    }
    Ok(())
}

/// Whether a member of metadata has no contents, or texts that are none.
fn says_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(texts) => texts.is_empty() || texts.values().any(Value::is_null),
        _ => false,
    }
}

/// Removes what is unknown from a custom resource, beside its metadata. Returns its paths in order.
fn unknown_of(root: &Node, object: &mut Value) -> Vec<String> {
    let mut pruner = Pruner::default();
    pruner.value(Some(root), true, object);
    pruner.unknown.sort();
    pruner.unknown
}

/// Reads the metadata of a custom resource and of those in it, in place. Returns the paths of the unknown fields of metadata.
///
/// # Errors
/// Metadata that does not decode.
pub fn metadata_of(root: &Node, object: &mut Value) -> Result<Vec<String>, String> {
    let mut unknown = metadata(object, "")?;
    embedded_in(root, object, "", &mut unknown).map_err(|error| error.to_string())?;
    Ok(unknown)
}

/// Removes what is unknown from a value of a schema.
pub fn value(node: &Node, value: &mut Value) {
    Pruner::default().value(Some(node), node.embedded_resource, value);
}

/// Decodes the metadata of a value that stands at `path`, and of all resources that are embedded in it.
///
/// # Errors
/// Metadata that does not decode, or a type that is no text.
pub fn embedded_at(node: &Node, value: &mut Value, path: &str) -> Result<(), FieldError> {
    embedded(node, value, path, &mut Vec::new())
}

/// Decodes the metadata of a resource that stands at `path`.
fn metadata(resource: &mut Value, path: &str) -> Result<Vec<String>, String> {
    let Some(fields) = resource.as_object_mut() else { return Ok(Vec::new()) };
    match fields.get_mut("metadata") {
        None => Ok(Vec::new()),
        Some(Value::Null) => {
            fields.remove("metadata");
            Ok(Vec::new())
        }
        Some(metadata) => decode::decode(
            &built_in::named(Version::DEFAULT, built_in::OBJECT_META),
            metadata,
            &join(path, "metadata"),
            Reading::PLAIN,
        ),
    }
}

/// Decodes the metadata of all embedded resources.
fn embedded(node: &Node, value: &mut Value, path: &str, unknown: &mut Vec<String>) -> Result<(), FieldError> {
    if node.embedded_resource && value.is_object() {
        for name in ["apiVersion", "kind"] {
            if let Some(wrong) = value.get(name).filter(|one| !one.is_string()) {
                return Err(FieldError::invalid(join(path, name), wrong.clone(), "must be a string"));
            }
        }
        let given = value.get("metadata").cloned().unwrap_or_default();
        if given.is_null() && value.get("metadata").is_some() {
            value["metadata"] = Value::Object(Map::new());
        }
        let found = metadata(value, path);
        unknown.extend(found.map_err(|why| FieldError::invalid(join(path, "metadata"), given, why))?);
    }
    embedded_in(node, value, path, unknown)
}

fn embedded_in(
    node: &Node,
    value: &mut Value,
    path: &str,
    unknown: &mut Vec<String>,
) -> Result<(), FieldError> {
    match value {
        Value::Object(fields) => {
            for (name, one) in fields {
                if let Some(field) = node.properties.get(name.as_str()) {
                    embedded(field, one, &join(path, name), unknown)?;
                } else if let Some(values) = node.field(name) {
                    embedded(values, one, &format!("{path}[{name}]"), unknown)?;
                }
            }
        }
        Value::Array(list) => {
            if let Some(items) = &node.items {
                for (index, one) in list.iter_mut().enumerate() {
                    embedded(items, one, &format!("{path}[{index}]"), unknown)?;
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
    Ok(())
}

#[derive(Default)]
struct Pruner {
    unknown: Vec<String>,
    path: String,
}

impl Pruner {
    /// Without a schema everything in an object is unknown. `resource`: apiVersion, kind and metadata are beyond the schema.
    fn value(&mut self, node: Option<&Node>, resource: bool, value: &mut Value) {
        let keeps = node.is_some_and(|node| node.preserve_unknown_fields);
        self.kept(node, resource, keeps, value);
    }

    /// `keeps`: fields that the schema does not know stay. (Lists hand this down to their elements.)
    fn kept(&mut self, node: Option<&Node>, resource: bool, keeps: bool, value: &mut Value) {
        cost::step();
        let length = self.path.len();
        match value {
            Value::Object(fields) => {
                let mut gone = Vec::new();
                for (name, one) in fields.iter_mut() {
                    if resource && META.contains(&name.as_str()) {
                        continue;
                    }
                    match node.map_or(Place::Unknown, |node| Place::of(node, name)) {
                        Place::Known(field) => {
                            self.enter(name);
                            self.value(field, field.is_some_and(|field| field.embedded_resource), one);
                            self.path.truncate(length);
                        }
                        Place::Unknown if keeps => {}
                        Place::Unknown => {
                            self.enter(name);
                            self.unknown.push(self.path.clone());
                            self.path.truncate(length);
                            gone.push(name.clone());
                        }
                    }
                }
                for name in gone {
                    fields.remove(&name);
                }
            }
            Value::Array(list) => {
                let items = node.and_then(|node| node.items.as_deref());
                if items.is_none() && keeps {
                    return;
                }
                for (index, one) in list.iter_mut().enumerate() {
                    self.path.push_str(&format!("[{index}]"));
                    let keeps = keeps || items.is_some_and(|items| items.preserve_unknown_fields);
                    self.kept(items, items.is_some_and(|items| items.embedded_resource), keeps, one);
                    self.path.truncate(length);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    fn enter(&mut self, name: &str) {
        if !self.path.is_empty() {
            self.path.push('.');
        }
        self.path.push_str(name);
    }
}

/// Where a field stands in a schema.
enum Place<'a> {
    /// It has a schema; or none, and whatever is in it is unknown.
    Known(Option<&'a Node>),
    /// The schema does not know it.
    Unknown,
}

impl<'a> Place<'a> {
    fn of(node: &'a Node, name: &str) -> Self {
        match (node.properties.get(name), &node.additional) {
            (Some(field), _) => Self::Known(Some(field)),
            (None, Additional::Of(values)) => Self::Known(Some(values)),
            (None, Additional::Any | Additional::Never) => Self::Known(None),
            (None, Additional::Unsaid) => Self::Unknown,
        }
    }
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::structural;
    use super::*;

    fn pruned(schema: &Value, mut given: Value) -> (Value, Vec<String>) {
        let unknown = object(&structural::node(schema), &mut given).unwrap();
        (given, unknown)
    }

    fn schema() -> Value {
        json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
            "a": {"type": "string"},
            "keep": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {
                "known": {"type": "object", "properties": {"x": {"type": "string"}}}}},
            "items": {"type": "array", "items": {"type": "object", "properties": {"n": {"type": "string"}}}},
            "any": {"type": "object", "additionalProperties": true},
            "pod": {"type": "object", "x-kubernetes-embedded-resource": true, "properties": {
                "spec": {"type": "object", "properties": {"x": {"type": "string"}}}}}}}}})
    }

    #[test]
    fn unknown_fields_go_and_are_told() {
        let (object, unknown) = pruned(
            &schema(),
            json!({"apiVersion": "g/v1", "kind": "K", "metadata": {"name": "a", "bogus": 1}, "other": 1,
                "spec": {"b": 1, "a": "x", "items": [{"n": "1", "m": "2"}],
                    "keep": {"any": {"thing": [1]}, "known": {"x": "y", "z": "gone"}}}}),
        );
        assert_eq!(
            object,
            json!({"apiVersion": "g/v1", "kind": "K", "metadata": {"name": "a"},
                "spec": {"a": "x", "items": [{"n": "1"}], "keep": {"any": {"thing": [1]}, "known": {"x": "y"}}}})
        );
        assert_eq!(unknown, ["metadata.bogus", "other", "spec.b", "spec.items[0].m", "spec.keep.known.z"]);
    }

    #[test]
    fn an_embedded_resource_keeps_what_it_is() {
        let (object, unknown) = pruned(
            &schema(),
            json!({"spec": {"pod": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "nme": 1},
                "spec": {"x": "1", "y": "2"}}}}),
        );
        assert_eq!(
            object,
            json!({"spec": {"pod": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"x": "1"}}}})
        );
        assert_eq!(unknown, ["spec.pod.metadata.nme", "spec.pod.spec.y"]);
    }

    #[test]
    fn values_of_which_nothing_is_said_lose_what_is_in_them() {
        let (object, _) = pruned(&schema(), json!({"spec": {"any": {"a": 1, "b": {"c": 1}}}}));
        assert_eq!(object, json!({"spec": {"any": {"a": 1, "b": {}}}}));
    }

    #[test]
    fn a_root_that_preserves_keeps_everything() {
        let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        let given = json!({"spec": {"a": {"b": [1, "x", null]}}, "anything": true});
        assert_eq!(pruned(&schema, given.clone()), (given, vec![]));
    }

    #[test]
    fn metadata_that_does_not_decode_is_an_error() {
        for (metadata, why) in [
            (
                json!({"labels": {"a": 5}}),
                "json: cannot unmarshal number into Go struct field ObjectMeta.labels of type string",
            ),
            (
                json!({"name": 5}),
                "json: cannot unmarshal number into Go struct field ObjectMeta.name of type string",
            ),
            (json!("x"), "json: cannot unmarshal string into Go value of type v1.ObjectMeta"),
        ] {
            let mut given = json!({"metadata": metadata});
            assert_eq!(object(&structural::node(&schema()), &mut given), Err(why.to_owned()));
        }
    }
}
