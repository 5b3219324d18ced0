//! What is asked of the engine: the object and who asks, options, and bodies. All of it is values; no engine is known here.

pub(crate) mod body;
pub(crate) mod continue_token;
mod list_options;
mod options;
pub(crate) mod part;
pub(crate) mod place;
mod said;
pub(crate) mod type_of_body;
mod version;

use std::sync::Arc;

use kubewright_identity::authn::User;
use kubewright_identity::authz::Attributes;
use kubewright_kinds::Kind;
use kubewright_store::Name;

pub use body::{FieldValidation, default, review_of};
pub use list_options::{DeletedTogether, ListOptions, VersionMatch};
pub(crate) use options::Parsed;
pub use options::{DeleteOptions, Propagation, WriteOptions};
pub use part::part_of;
pub(crate) use version::{parse_version, version_of};

/// One object (or, with an empty name, one place) of a kind, and who asks.
#[derive(Clone, Copy)]
pub struct Call<'a> {
    /// The kind, in the version asked for.
    pub kind: &'a Arc<Kind>,
    /// Empty for cluster-wide kinds, and for all namespaces.
    pub namespace: &'a str,
    /// Empty where no single object is meant.
    pub name: &'a str,
    /// Who asks.
    pub user: &'a User,
}

impl<'a> Call<'a> {
    /// The key of the object in its collection.
    #[must_use]
    pub fn key(&self) -> Name {
        key(self.namespace, self.name)
    }

    /// What authorization is asked about who does this with the object.
    pub(crate) fn attributes(self, verb: &'a str) -> Attributes<'a> {
        Attributes {
            verb,
            group: &self.kind.group,
            version: &self.kind.version,
            resource: &self.kind.plural,
            namespace: self.namespace,
            name: self.name,
            ..Attributes::default()
        }
    }
}

/// The key of an object: `namespace/name`, or the name alone.
pub(crate) fn key(namespace: &str, name: &str) -> Name {
    if namespace.is_empty() { name.into() } else { format!("{namespace}/{name}").into() }
}
