//! Rules (`x-kubernetes-validations`): compiled once with their schema, evaluated on every write of an object
//! (`apiextensions-apiserver/pkg/apiserver/schema/cel`).

mod compile;
mod declare;
mod evaluate;
pub(in crate::schema) mod field_path;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use kubewright_cel::DeclType;

use super::node::{Additional, Node};

pub(in crate::schema) use compile::{Compiled, compile};
pub(in crate::schema) use evaluate::{Budget, Finding};

/// The rules of a schema and of all below it, where there are any.
#[derive(Debug)]
pub(super) struct Rules {
    node: Arc<Node>,
    declaration: DeclType,
    own: Vec<Compiled>,
    properties: BTreeMap<Box<str>, Rules>,
    values: Option<Box<Rules>>,
    items: Option<Box<Rules>>,
}

impl Rules {
    /// The rules of a schema; `None` where it has none. `resource`: it is that of a custom or embedded resource.
    pub(super) fn of(node: &Arc<Node>, resource: bool) -> Option<Self> {
        if !any(node) {
            return None;
        }
        let declaration = declare::declaration(node, resource);
        if !declaration.is_exposed() {
            // What rules cannot see is not checked by them.
            return None;
        }
        let below = |node: &Arc<Node>| Self::of(node, node.embedded_resource);
        let properties = node.properties.iter();
        Some(Self {
            node: Arc::clone(node),
            own: compile(node, &declaration),
            properties: properties.filter_map(|(name, field)| Some((name.clone(), below(field)?))).collect(),
            values: match &node.additional {
                Additional::Of(values) => below(values).map(Box::new),
                _ => None,
            },
            items: node.items.as_ref().and_then(below).map(Box::new),
            declaration,
        })
    }
}

/// What rules see of a value of a schema; `None` where they see nothing.
pub(in crate::schema) fn declaration(node: &Node, resource: bool) -> Option<DeclType> {
    Some(declare::declaration(node, resource)).filter(DeclType::is_exposed)
}

/// Whether a schema has rules, or one below it.
pub(super) fn any(node: &Node) -> bool {
    let values = match &node.additional {
        Additional::Of(values) => Some(values),
        _ => None,
    };
    !node.rules.is_empty()
        || node.properties.values().chain(&node.items).chain(values).any(|below| any(below))
}
