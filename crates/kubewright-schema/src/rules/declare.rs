//! Schema nodes as the types that rules see (`k8s.io/apiserver/pkg/cel/common/schemas.go`, `SchemaDeclType`).

use std::sync::Arc;

use kubewright_cel::{DeclField, DeclType, ListKind};
use kubewright_meta::cost;
use serde_json::Value;

use super::super::node::{Additional, Bounds, ListType, Node, Type};

/// What rules see of a value. `resource`: it is the root of a custom or embedded resource, of which type and name are
/// always seen.
pub(super) fn declaration(node: &Node, resource: bool) -> DeclType {
    cost::step();
    let declared = plain(node, resource);
    if node.nullable { declared.nullable() } else { declared }
}

fn plain(node: &Node, resource: bool) -> DeclType {
    let bounds = node.bounds.as_deref();
    let most =
        |count: fn(&Bounds) -> Option<i64>| bounds.and_then(count).map(|most| most.try_into().unwrap_or(0));
    if node.int_or_string {
        return DeclType::int_or_string(most(|bounds| bounds.max_length));
    }
    match node.kind {
        Some(Type::Array) => match &node.items {
            Some(items) => {
                let kind = list_kind(node);
                DeclType::list(
                    declaration(items, items.embedded_resource),
                    kind,
                    most(|bounds| bounds.max_items),
                )
            }
            None => DeclType::hidden(),
        },
        Some(Type::Object) => match &node.additional {
            Additional::Of(values) => {
                let values = declaration(values, values.embedded_resource);
                DeclType::map(values, most(|bounds| bounds.max_properties))
            }
            _ => object(node, resource),
        },
        Some(Type::String) => text(node, most(|bounds| bounds.max_length)),
        Some(Type::Boolean) => DeclType::boolean(),
        Some(Type::Number) => DeclType::number(),
        Some(Type::Integer) => DeclType::integer(),
        None => DeclType::hidden(),
    }
}

fn list_kind(node: &Node) -> ListKind {
    match node.list_type() {
        Some(ListType::Set) => ListKind::Set,
        Some(ListType::Map) => {
            ListKind::Map(node.list_map_keys().iter().map(ToString::to_string).collect::<Vec<_>>().into())
        }
        Some(ListType::Atomic) | None => ListKind::Atomic,
    }
}

fn text(node: &Node, max_length: Option<u64>) -> DeclType {
    match (node.format.as_deref(), max_length) {
        (Some("byte"), most) => DeclType::bytes(most),
        (Some("duration"), _) => DeclType::duration(),
        (Some("date"), _) => DeclType::date(),
        (Some("date-time" | "datetime"), _) => DeclType::date_time(),
        (_, None) if !node.enumeration.is_empty() => {
            let lengths = node.enumeration.iter().filter_map(Value::as_str).map(str::len);
            DeclType::string_enum(lengths.max().unwrap_or(0) as u64)
        }
        (_, most) => DeclType::string(most),
    }
}

fn object(node: &Node, resource: bool) -> DeclType {
    let required = |name: &str, field: &Node| {
        field.default.is_none() && node.required.iter().any(|required| **required == *name)
    };
    let field = |name: &str, field: &Arc<Node>| {
        DeclField::new(name, declaration(field, field.embedded_resource), required(name, field))
    };
    let given = node.properties.iter();
    if !resource || says_type_and_name(node) {
        return DeclType::object(given.map(|(name, one)| field(name, one)));
    }
    let string = || DeclType::string(None);
    let metadata =
        DeclType::object(["name", "generateName"].map(|name| DeclField::new(name, string(), false)));
    let always = |name: &str| node.required.iter().any(|required| **required == *name);
    let known = [("kind", string()), ("apiVersion", string()), ("metadata", metadata)];
    let known = known.map(|(name, declared)| DeclField::new(name, declared, always(name)));
    let rest = given.filter(|(name, _)| !is_type_or_name(name));
    DeclType::object(rest.map(|(name, one)| field(name, one)).chain(known))
}

/// Whether rules see another thing in this field than what its schema says: the type and the names of a resource.
pub(super) fn is_given(node: &Node, resource: bool, name: &str) -> bool {
    resource && is_type_or_name(name) && !says_type_and_name(node)
}

fn is_type_or_name(name: &str) -> bool {
    matches!(name, "kind" | "apiVersion" | "metadata")
}

/// Whether a schema says the type and the names of a resource itself (`WithTypeAndObjectMeta`).
fn says_type_and_name(node: &Node) -> bool {
    let is = |fields: &Node, name: &str, kind: Type| {
        fields.properties.get(name).is_some_and(|field| field.kind == Some(kind))
    };
    is(node, "kind", Type::String)
        && is(node, "apiVersion", Type::String)
        && node.properties.get("metadata").is_some_and(|metadata| {
            metadata.kind == Some(Type::Object)
                && is(metadata, "name", Type::String)
                && is(metadata, "generateName", Type::String)
        })
}
