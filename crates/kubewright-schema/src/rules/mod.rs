//! Rules (`x-kubernetes-validations`): compiled once with their schema, evaluated on every write of an object
//! (`apiextensions-apiserver/pkg/apiserver/schema/cel`).

mod compile;
mod declare;
mod evaluate;
pub mod field_path;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use kubewright_cel::DeclType;
use kubewright_meta::cost;

use super::node::{Additional, Node};

pub use compile::{Compiled, compile};
pub use evaluate::{Budget, Finding, UNDECLARED};

/// The rules of a schema and of all below it, where there are any.
#[derive(Debug)]
pub struct Rules {
    node: Arc<Node>,
    declaration: DeclType,
    own: Vec<Compiled>,
    /// It has rules, which cannot know what they are about.
    undeclared: bool,
    properties: BTreeMap<Box<str>, Rules>,
    values: Option<Box<Rules>>,
    items: Option<Box<Rules>>,
}

impl Rules {
    /// The rules of a schema; `None` where it has none. `resource`: it is that of a custom or embedded resource.
    pub fn of(node: &Arc<Node>, resource: bool) -> Option<Self> {
        if any(node) { Self::declared(node, resource, declare::declaration(node, resource)) } else { None }
    }

    /// The same, of what is declared already: what is declared of a whole schema says all of what is below
    /// (`validator` in `apiserver/schema/cel/validation.go`).
    fn declared(node: &Arc<Node>, resource: bool, declaration: DeclType) -> Option<Self> {
        cost::step();
        let is_declared = declaration.is_exposed();
        let elements = || declaration.of_elements().cloned().unwrap_or_else(DeclType::hidden);
        let field = |name: &str, field: &Arc<Node>| {
            // What rules cannot see is not checked by them.
            let seen = Some(&declaration).filter(|declaration| declaration.is_exposed())?;
            let given = seen.of_field(name).filter(|_| !declare::is_given(node, resource, name)).cloned();
            let of_field = given.unwrap_or_else(|| declare::declaration(field, field.embedded_resource));
            if of_field.is_exposed() {
                Self::declared(field, field.embedded_resource, of_field)
            } else {
                None
            }
        };
        let properties = node.properties.iter();
        let properties: BTreeMap<_, _> =
            properties.filter_map(|(name, one)| Some((name.clone(), field(name, one)?))).collect();
        let values = match &node.additional {
            Additional::Of(values) => Self::declared(values, values.embedded_resource, elements()),
            _ => None,
        };
        let items = node.items.as_ref();
        let items = items.and_then(|items| Self::declared(items, items.embedded_resource, elements()));
        let has_rules =
            !node.rules.is_empty() || !properties.is_empty() || values.is_some() || items.is_some();
        has_rules.then(|| Self {
            node: Arc::clone(node),
            own: if is_declared { compile(node, &declaration) } else { Vec::new() },
            undeclared: !is_declared && !node.rules.is_empty(),
            properties,
            values: values.map(Box::new),
            items: items.map(Box::new),
            declaration,
        })
    }
}

/// What rules see of a value of a schema; `None` where they see nothing.
pub fn declaration(node: &Node, resource: bool) -> Option<DeclType> {
    Some(declare::declaration(node, resource)).filter(DeclType::is_exposed)
}

/// Whether a schema has rules, or one below it.
pub fn any(node: &Node) -> bool {
    let values = match &node.additional {
        Additional::Of(values) => Some(values),
        _ => None,
    };
    !node.rules.is_empty()
        || node.properties.values().chain(&node.items).chain(values).any(|below| any(below))
}
