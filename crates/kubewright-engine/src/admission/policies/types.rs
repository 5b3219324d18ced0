//! The types of the objects that a policy is about, for the check of its expressions
//! (`k8s.io/apiserver/pkg/cel/common/schemas.go` over the OpenAPI of kube-apiserver v1.36). Only types count here: nothing
//! is estimated.

use kubewright_cel::{DeclField, DeclType, ListKind};
use kubewright_kinds::built_in::core::config_map::CONFIG_MAP;
use kubewright_kinds::{Kind, Kinds};
use kubewright_schema::{Additional, Node, Type};

/// The type of the objects of a kind.
pub(super) fn of_kind(kinds: &Kinds, kind: &Kind) -> DeclType {
    let root = kind.schema().root();
    let mut fields = fields(root.target(), &mut Vec::new());
    if kind.custom.is_some() {
        fields.retain(|(name, _)| !matches!(name.as_str(), "apiVersion" | "kind" | "metadata"));
        for name in ["apiVersion", "kind"] {
            fields.push((name.to_owned(), DeclType::string(None)));
        }
        let metadata = kinds.find(&CONFIG_MAP).and_then(|kind| {
            let metadata = kind.schema().root().field("metadata").cloned()?;
            declare(&metadata, &mut Vec::new())
        });
        fields.extend(metadata.map(|metadata| ("metadata".to_owned(), metadata)));
    }
    object(fields).named(&kind.kind)
}

/// The type of a value; `None` where expressions cannot reach it, because OpenAPI gives it no type of its own.
fn declare(node: &Node, above: &mut Vec<Box<str>>) -> Option<DeclType> {
    let node = node.target();
    let name = node.name.as_deref().unwrap_or_default();
    match name.rsplit('.').next().unwrap_or_default() {
        "Quantity" | "JSON" => return None,
        "IntOrString" => return Some(DeclType::int_or_string(None)),
        "RawExtension" | "FieldsV1" => return Some(DeclType::object([])),
        short if short.starts_with("JSONSchemaPropsOr") => return None,
        _ => {}
    }
    if node.int_or_string {
        return Some(DeclType::int_or_string(None));
    }
    Some(match node.kind? {
        Type::Array => DeclType::list(declare(node.items.as_ref()?, above)?, ListKind::Atomic, None),
        Type::Object => match &node.additional {
            Additional::Of(values) => DeclType::map(declare(values, above)?, None),
            // A type inside of itself shows none of its fields.
            _ if !name.is_empty() && above.iter().any(|one| **one == *name) => DeclType::object([]),
            _ => {
                above.push(name.into());
                let fields = fields(node, above);
                above.pop();
                object(fields)
            }
        },
        Type::String => match node.format.as_deref() {
            Some("byte") => DeclType::bytes(None),
            Some("duration") => DeclType::duration(),
            Some("date") => DeclType::date(),
            Some("date-time") => DeclType::date_time(),
            _ => DeclType::string(None),
        },
        Type::Boolean => DeclType::boolean(),
        Type::Integer => DeclType::integer(),
        Type::Number => DeclType::number(),
    })
}

fn fields(node: &Node, above: &mut Vec<Box<str>>) -> Vec<(String, DeclType)> {
    let fields = node.properties.iter();
    fields.filter_map(|(name, field)| Some((name.to_string(), declare(field, above)?))).collect()
}

fn object(fields: Vec<(String, DeclType)>) -> DeclType {
    DeclType::object(fields.into_iter().map(|(name, declared)| DeclField::new(&name, declared, false)))
}
