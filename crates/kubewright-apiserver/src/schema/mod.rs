//! Schemas: what a kind's objects look like, for built-in kinds (from k8s-openapi's types) and for custom ones (the
//! structural schema of a CustomResourceDefinition) alike.
//!
//! [`Schema`] is the door. Behind it one tree of [`Node`]s serves [decoding](Schema::decode), [defaulting](Schema::default),
//! [validation](Schema::validate), patches and server-side apply. Descriptions are not part of the tree: OpenAPI documents
//! are made on demand from where the schema came from.

mod built_in;
mod decode;
mod default;
pub mod definition;
mod facts;
mod format;
mod names;
mod node;
mod openapi;
mod pattern;
mod prune;
mod scalar;
mod structural;
mod validate;
mod zeros;

use std::collections::BTreeMap;
use std::sync::Arc;

use schemars::{JsonSchema, SchemaGenerator};
use serde_json::Value;

pub use node::{Additional, Bounds, ListType, Logic, MapType, Merge, Node, Type};
pub use pattern::Pattern;
pub use scalar::quantity;

use crate::field::FieldError;

/// A structural schema.
#[derive(Clone, Debug)]
pub struct Schema {
    root: Arc<Node>,
    origin: Origin,
}

/// Where a schema came from.
#[derive(Clone, Debug)]
enum Origin {
    /// A type of k8s-openapi.
    BuiltIn { generate: fn(&mut SchemaGenerator) -> schemars::Schema },
    /// The text of an `openAPIV3Schema`.
    Custom { source: Arc<str> },
}

impl Schema {
    /// The schema of a built-in kind.
    #[must_use]
    pub fn built_in<T: JsonSchema>() -> Self {
        Self {
            root: built_in::of::<T>(),
            origin: Origin::BuiltIn { generate: SchemaGenerator::subschema_for::<T> },
        }
    }

    /// The schema of a custom kind: an `openAPIV3Schema` that [`definition::validate`] accepted.
    #[must_use]
    pub fn custom(schema: &Value) -> Self {
        Self {
            root: Arc::new(structural::node(schema)),
            origin: Origin::Custom { source: schema.to_string().into() },
        }
    }

    /// The schema of a whole object.
    #[must_use]
    pub fn root(&self) -> &Arc<Node> {
        &self.root
    }

    /// Checks JSON types and removes unknown fields. Returns the paths of the removed fields, such as
    /// `spec.containers[0].foo`.
    ///
    /// What comes out of a built-in kind is what Go would write back: nulls and empty optional lists and maps are gone;
    /// quantities, times and bytes are in canonical form. Doing it twice changes nothing more.
    ///
    /// # Errors
    /// Built-in kinds: the first value of a wrong type, in the words of Go's decoder (a 400). Custom kinds fail here
    /// only on their metadata: all other types are part of [`Schema::validate`].
    pub fn decode(&self, object: &mut Value) -> Result<Vec<String>, String> {
        match self.origin {
            Origin::BuiltIn { .. } => decode::decode(&self.root, object, ""),
            Origin::Custom { .. } => prune::object(&self.root, object),
        }
    }

    /// Sets the defaults of the schema in objects that are there. Custom kinds: nulls that the schema does not allow are
    /// dropped. Doing it twice changes nothing more.
    pub fn default(&self, object: &mut Value) {
        if matches!(self.origin, Origin::Custom { .. }) {
            default::drop_nulls(&self.root, object);
        }
        default::set(&self.root, object);
    }

    /// Whether it sets any default.
    #[must_use]
    pub fn has_defaults(&self) -> bool {
        default::any(&self.root)
    }

    /// Whether both were made from the same text.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        matches!(
            (&self.origin, &other.origin),
            (Origin::Custom { source: one }, Origin::Custom { source: other }) if one == other
        )
    }

    /// What breaks the schema of a custom kind. `old` is the object that an update replaces: what is unchanged may stay
    /// wrong. Built-in kinds: nothing; their rules say it ([`crate::kinds::rules`]), and [`Schema::unsupported_values`] what
    /// they leave out.
    #[must_use]
    pub fn validate(&self, object: &Value, old: Option<&Value>) -> Vec<FieldError> {
        match self.origin {
            Origin::BuiltIn { .. } => Vec::new(),
            Origin::Custom { .. } => validate::custom(&self.root, object, old),
        }
    }

    /// Values of a built-in kind that are none of those that the field allows, outside of metadata and status; only of
    /// fields of which nothing is `told` yet, at their own place or at one that Kubernetes names instead. Custom kinds: nothing, as [`Schema::validate`] tells them.
    #[must_use]
    pub fn unsupported_values(&self, object: &Value, told: &[FieldError]) -> Vec<FieldError> {
        match self.origin {
            Origin::BuiltIn { .. } => {
                let mut found = validate::enumerations(&self.root, object);
                found.retain(|one| !told.iter().any(|told| tells(told, one)));
                found
            }
            Origin::Custom { .. } => Vec::new(),
        }
    }

    /// As an OpenAPI v3 schema. Built-in kinds: a reference (`{"$ref": "#/components/schemas/io.k8s.api.apps.v1.Deployment"}`),
    /// and its type and all that it refers to are put into `components` by their names (those that are there are left
    /// alone). Custom kinds: the schema itself, with apiVersion, kind and metadata, of which only the latter is a reference.
    #[must_use]
    pub fn openapi(&self, components: &mut BTreeMap<String, Value>) -> Value {
        match &self.origin {
            Origin::BuiltIn { generate } => openapi::built_in(*generate, components),
            Origin::Custom { source } => openapi::custom(source, components),
        }
    }
}

/// Whether an error already tells of a value that is not supported: in its field; in the field around it; or in a field
/// whose path Kubernetes begins elsewhere (`metadata.taints[0].effect` of a node).
fn tells(told: &FieldError, one: &FieldError) -> bool {
    let below_root = |path: &str| path.split_once('.').map(|(_, rest)| rest.to_owned());
    let around = matches!(told.reason(), "FieldValueNotSupported")
        && one.field.strip_prefix(&told.field).is_some_and(|rest| rest.starts_with('.'));
    told.field == one.field
        || around
        || (told.problem == one.problem && below_root(&told.field) == below_root(&one.field))
}

#[cfg(test)]
mod tests;
