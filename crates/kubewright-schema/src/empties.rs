//! Lists and maps that are there and have no entries.
//!
//! Go reads `[]` as a slice that is not nil. Defaults, rules and owners of fields see that it was given; what is encoded has it only
//! where its field has no `omitempty`, and protobuf not even there. So an object that was sent is not the object that is read back.
//! Nor is it of times with parts of a second, which rules compare: they are written without; and a time that is Go's zero is
//! written as `null`.

use std::borrow::Cow;

use kubewright_meta::cost;
use serde_json::Value;

use super::node::{Additional, Coding, Node};
use super::{as_sent, scalar};

/// What becomes of lists and maps without entries when an object of a built-in type is decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Empties {
    /// They are as good as absent.
    Dropped,
    /// Lists stay, and, until an object is settled, maps in lists that are one value.
    Lists,
    /// All stay.
    All,
}

/// How an object is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// As JSON: a list without entries is written where its field is always written.
    Json,
    /// As protobuf, which knows no list without entries: it is read back as none.
    Protobuf,
    /// Not yet: as JSON, but lists that are one value have all that stands in them. Owners of fields are told of it, as Go compares such
    /// lists as they are in memory (`sigs.k8s.io/structured-merge-diff/v6/value`, `listReflect.EqualsUsing`).
    Owned,
}

impl Encoding {
    /// Leaves out what is not written. Returns whether bytes without contents are among it, which protobuf has, though they are read as none;
    /// or bytes of a map that are none, which protobuf has not, though they are read as bytes without contents.
    pub(crate) fn leave_out(self, node: &Node, value: &mut Value) -> bool {
        cost::step();
        let node = node.target();
        let mut has_bytes = false;
        match value {
            Value::Object(members) if !members.is_empty() => {
                if let Additional::Of(values) = &node.additional {
                    for value in members.values_mut() {
                        has_bytes |= self.leave_out_entry(values, value);
                    }
                    return has_bytes;
                }
                if let (Coding::SchemaOr(_), Some(schema)) = (node.coding, &node.items) {
                    return self.leave_out(schema, value);
                }
                members.retain(|name, value| {
                    let Some(field) = node.properties.get(name.as_str()) else { return true };
                    if !is_empty(field, value) && !is_no_schema(field, value) {
                        has_bytes |= self.leave_out(field, value);
                        return true;
                    }
                    has_bytes |= value.is_string();
                    let shown = is_shown(node, name);
                    if shown && self == Self::Protobuf {
                        *value = Value::Null;
                    }
                    shown
                });
            }
            Value::Array(items) => {
                if let Some(item) = self.items(node) {
                    for value in items {
                        has_bytes |= self.leave_out(item, value);
                    }
                }
            }
            Value::String(time) if node.coding.is_time() && scalar::is_zero_time(time) => {
                *value = Value::Null;
            }
            Value::String(time) if node.coding == Coding::Time => scalar::cut(time),
            _ => {}
        }
        has_bytes
    }

    /// As [`Self::leave_out`], of a value of a map, where bytes may be none: these are read as bytes without contents, and stored otherwise.
    fn leave_out_entry(self, node: &Node, value: &mut Value) -> bool {
        if !value.is_null() {
            return self.leave_out(node, value);
        }
        let is_bytes = node.format.as_deref() == Some("byte");
        if is_bytes && self == Self::Protobuf {
            *value = "".into();
        }
        is_bytes
    }

    /// The value as it is written.
    pub(crate) fn written<'v>(self, node: &Node, value: &'v Value) -> Cow<'v, Value> {
        if !self.leaves_out(node, value) {
            return Cow::Borrowed(value);
        }
        let mut written = value.clone();
        self.leave_out(node, &mut written);
        Cow::Owned(written)
    }

    /// Whether anything is left out.
    fn leaves_out(self, node: &Node, value: &Value) -> bool {
        cost::step();
        let node = node.target();
        match value {
            Value::Object(members) => match (&node.additional, node.coding, &node.items) {
                (Additional::Of(values), ..) => members.values().any(|value| self.leaves_out(values, value)),
                (_, Coding::SchemaOr(_), Some(schema)) => self.leaves_out(schema, value),
                _ => members.iter().any(|(name, value)| {
                    let field = node.properties.get(name.as_str());
                    field.is_some_and(|field| {
                        if is_empty(field, value) || is_no_schema(field, value) {
                            !is_shown(node, name)
                        } else {
                            self.leaves_out(field, value)
                        }
                    })
                }),
            },
            Value::Array(items) => {
                self.items(node).is_some_and(|item| items.iter().any(|value| self.leaves_out(item, value)))
            }
            Value::String(time) => match node.coding {
                Coding::Time => time.contains('.') || scalar::is_zero_time(time),
                Coding::MicroTime => scalar::is_zero_time(time),
                _ => false,
            },
            _ => false,
        }
    }

    /// What the items of a list are, where anything is left out of them.
    fn items(self, list: &Node) -> Option<&Node> {
        let enters = self != Self::Owned || !as_sent::is_one_value(list);
        list.items.as_deref().filter(|_| enters)
    }
}

/// Whether a value is a list or a map without entries, or no bytes.
pub(crate) fn is_empty(field: &Node, value: &Value) -> bool {
    match value {
        Value::Array(items) => items.is_empty() && field.target().coding == Coding::Plain,
        Value::String(bytes) => bytes.is_empty() && field.format.as_deref() == Some("byte"),
        Value::Object(members) => {
            members.is_empty() && matches!(field.target().additional, Additional::Of(_))
        }
        _ => false,
    }
}

/// Whether a value says neither a schema nor a list of them: it is written as `null`, which is read as none.
fn is_no_schema(field: &Node, value: &Value) -> bool {
    matches!(field.target().coding, Coding::SchemaOr(_)) && value.as_array().is_some_and(Vec::is_empty)
}

fn is_shown(node: &Node, name: &str) -> bool {
    node.shown.iter().any(|(shown, _)| **shown == *name)
}

#[cfg(test)]
mod tests {
    use super::super::Schema;
    use super::*;
    use serde_json::json;

    fn written(of: &str, encoding: Encoding, object: &Value) -> Value {
        let schema = Schema::built_in(format!("io.k8s.api.{of}"));
        let mut object = object.clone();
        schema.decode(&mut object).unwrap();
        schema.leave_out(&mut object, encoding);
        object
    }

    #[test]
    fn an_empty_list_is_written_only_where_its_field_always_is() {
        let role = json!({"metadata": {"finalizers": []}, "rules": []});
        let of = "rbac.v1.ClusterRole";
        assert_eq!(written(of, Encoding::Json, &role), json!({"metadata": {}, "rules": []}));
        assert_eq!(written(of, Encoding::Protobuf, &role), json!({"metadata": {}, "rules": null}));
        let role = json!({"metadata": {}, "rules": [{"verbs": [], "apiGroups": [], "resources": ["a"]}]});
        let rule = |verbs: Value| json!({"metadata": {}, "rules": [{"verbs": verbs, "resources": ["a"]}]});
        assert_eq!(written(of, Encoding::Json, &role), rule(json!([])));
        assert_eq!(written(of, Encoding::Protobuf, &role), rule(json!(null)));
    }

    #[test]
    fn an_empty_struct_is_no_empty_map() {
        let pod = json!({"metadata": {}, "status": {}, "spec": {"containers": [], "volumes": [{"name": "a", "emptyDir": {}}]}});
        assert_eq!(written("core.v1.Pod", Encoding::Json, &pod), pod);
    }

    #[test]
    fn owners_are_told_what_stands_in_a_list_that_is_one_value() {
        let exists = json!([{"key": "a", "operator": "Exists", "values": []}]);
        let selector = json!({"matchExpressions": exists, "matchLabels": {}});
        let set = json!({"metadata": {"finalizers": []}, "spec": {"selector": selector, "template": {}}});
        let told = written("apps.v1.ReplicaSet", Encoding::Owned, &set);
        assert_eq!(told["spec"]["selector"], json!({"matchExpressions": exists}));
        assert_eq!(told["metadata"], json!({}));
        let ports = json!([{"name": "c", "ports": [], "args": []}]);
        let pod = json!({"metadata": {}, "spec": {"containers": ports}});
        let told = written("core.v1.Pod", Encoding::Owned, &pod);
        assert_eq!(
            told["spec"]["containers"],
            json!([{"name": "c", "resources": {}}]),
            "a map, which is compared by its fields"
        );
    }

    #[test]
    fn an_object_without_empty_lists_is_not_copied_to_be_looked_at() {
        let schema = Schema::built_in("io.k8s.api.core.v1.ConfigMap");
        let map = json!({"metadata": {"labels": {"a": ""}}, "data": {"a": "b"}});
        assert!(matches!(schema.as_json(&map), Cow::Borrowed(_)));
        let empty = json!({"metadata": {"labels": {}}});
        assert_eq!(*schema.as_json(&empty), json!({"metadata": {}}));
    }
}
