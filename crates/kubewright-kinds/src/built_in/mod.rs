//! The descriptor of a built-in kind: all that is known of it, in one value. Each kind has one, in a file of its own in
//! the folder of its group; the groups list theirs.
//!
//! Some are of some versions of Kubernetes alone (`Kind::of_version`).

pub mod admissionregistration;
pub mod apiextensions;
pub mod apiregistration;
pub mod apps;
pub mod authentication;
pub mod authorization;
pub mod autoscaling;
pub mod batch;
pub mod certificates;
#[cfg(test)]
mod columns;
pub mod coordination;
pub mod core;
pub mod discovery;
pub mod events;
pub mod flowcontrol;
#[cfg(test)]
mod messages;
pub mod networking;
pub mod node;
pub mod policy;
pub mod rbac;
pub mod resource;
pub mod scheduling;
#[cfg(test)]
mod served;
pub mod storage;
pub mod storagemigration;

use kubewright_schema::Schema;
use kubewright_spec::Version;
use kubewright_table::Printer;
use serde_json::Value;

use super::behaviour::{Behaviour, Counted};
use super::kind::{Kind, Scope, Subresource, Verbs};
use super::ownership::LeftAlone;
use super::plugins::Plugin;
use super::rules::Rules;
use crate::selector::Fields;

/// The groups, in the order of Kubernetes' discovery.
static GROUPS: [&[&BuiltIn]; 22] = [
    core::KINDS,
    apiregistration::KINDS,
    apps::KINDS,
    events::KINDS,
    authentication::KINDS,
    authorization::KINDS,
    autoscaling::KINDS,
    batch::KINDS,
    certificates::KINDS,
    networking::KINDS,
    policy::KINDS,
    rbac::KINDS,
    storage::KINDS,
    admissionregistration::KINDS,
    apiextensions::KINDS,
    scheduling::KINDS,
    coordination::KINDS,
    node::KINDS,
    discovery::KINDS,
    resource::KINDS,
    flowcontrol::KINDS,
    storagemigration::KINDS,
];

/// All that is known of a built-in kind of Kubernetes, as its first version has it that is served; what later ones have otherwise
/// stands under `since`. What a descriptor does not say is as in most kinds ([`BuiltIn::namespaced`]). Names, types, fields, and what is
/// served below it are by version without a word here: the tables of `kubewright-spec` have them.
pub struct BuiltIn {
    /// API group; empty for core.
    pub group: &'static str,
    /// API version within the group.
    pub version: &'static str,
    /// CamelCase name, as in `kind:`.
    pub kind: &'static str,
    /// Lower-case plural, as in URLs.
    pub plural: &'static str,
    /// Whether its objects live in namespaces.
    pub scope: Scope,
    /// Abbreviations for kubectl.
    pub short_names: &'static [&'static str],
    /// Groups of kinds that kubectl lists together.
    pub categories: &'static [&'static str],
    /// What can be done with it.
    pub verbs: Verbs,
    /// What is served below an object.
    pub subresources: &'static [Subresource],
    /// What its clients are warned of, where it is deprecated (`k8s.io/apiserver/pkg/endpoints/deprecation`).
    pub deprecation: Option<&'static str>,
    /// The collection of the store that is named after it.
    pub(crate) named_after: &'static str,
    /// The columns of its table, and what stands in them.
    pub columns: Printer,
    /// Its own functions: defaults, preparation, validation, warnings.
    pub rules: Rules,
    /// How the engine treats its objects.
    pub behaviour: Behaviour,
    /// Which fields a write leaves alone.
    pub left_alone: LeftAlone,
    /// The fields that its objects can be selected by.
    pub fields: Fields,
    /// How its objects count for quotas.
    pub counted: Counted,
    /// The admission plugins that look at its objects, beyond those that look at all.
    pub plugins: &'static [Plugin],
    /// The finalizer that holds an object as long as it is in use (StorageObjectInUseProtection).
    pub finalizer_in_use: Option<&'static str>,
    /// How its objects are stored, where that is as another kind.
    pub stored_as: Option<StoredAs>,
    /// Where kube-apiserver would keep its objects (`pkg/kubeapiserver/default_storage_factory_builder.go`), where that is
    /// not under its plural.
    pub storage_prefix: Option<&'static str>,
    /// The name of its type in Kubernetes' OpenAPI documents.
    pub type_name: &'static str,
    /// What is otherwise from a version of Kubernetes on, in the order of versions. (A rule that differs in one place asks
    /// `rules::version` there.)
    pub since: &'static [Since],
}

/// A version, and what it and all later ones have otherwise.
pub type Since = (Version, fn(&mut Kind));

/// What the objects of a kind are stored as: those of another one, with which it shares a collection.
pub struct StoredAs {
    /// The kind that is stored.
    pub kind: &'static BuiltIn,
    /// Turns an object into a stored one.
    pub to_storage: fn(&mut Value),
    /// Turns a stored object into one of the kind.
    pub from_storage: fn(&mut Value),
}

impl BuiltIn {
    /// `group/version`, or the version alone for core.
    #[must_use]
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.to_owned()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    /// The kind that its objects are stored as: mostly itself.
    #[must_use]
    pub fn stored(&self) -> &Self {
        self.stored_as.as_ref().map_or(self, |other| other.kind)
    }

    /// The collection of the store that holds its objects.
    #[must_use]
    pub fn collection(&self) -> &'static str {
        self.stored().named_after
    }

    /// What most kinds are whose objects live in namespaces. `type_name` is that of Kubernetes' OpenAPI documents, whose last two
    /// parts are version and kind (`io.k8s.api.apps.v1.Deployment`); `collection` is group and plural (`apps/deployments`, and
    /// `/pods` for core).
    #[must_use]
    pub const fn namespaced(type_name: &'static str, collection: &'static str) -> Self {
        let (before_kind, kind) = split_at_last(type_name, b'.');
        let (_, version) = split_at_last(before_kind, b'.');
        let (group, plural) = split_at_last(collection, b'/');
        Self {
            group,
            version,
            kind,
            plural,
            scope: Scope::Namespaced,
            short_names: &[],
            categories: &[],
            verbs: Verbs::All,
            subresources: &[],
            deprecation: None,
            named_after: collection,
            columns: Printer::NAME_AND_CREATION,
            rules: Rules::none(),
            behaviour: Behaviour::BUILT_IN,
            left_alone: LeftAlone::BUILT_IN,
            fields: Fields::NONE,
            counted: Counted::Objects,
            plugins: &[],
            finalizer_in_use: None,
            stored_as: None,
            storage_prefix: None,
            type_name,
            since: &[],
        }
    }

    /// As [`namespaced`](Self::namespaced), of a kind whose objects live in no namespace.
    #[must_use]
    pub const fn cluster_scoped(type_name: &'static str, collection: &'static str) -> Self {
        Self { scope: Scope::Cluster, ..Self::namespaced(type_name, collection) }
    }

    /// Its schema in a version of Kubernetes.
    #[must_use]
    pub fn schema(&self, version: Version) -> Schema {
        let schema = Schema::of_version(version, self.type_name);
        if self.rules.keeps_empty_maps { schema.keeping_empty_maps() } else { schema }
    }

    /// The descriptors of all kinds, in the order of Kubernetes' discovery.
    pub fn all() -> impl Iterator<Item = &'static Self> {
        GROUPS.iter().copied().flatten().copied()
    }
}

/// What stands before the last separator, and after it.
const fn split_at_last(text: &'static str, separator: u8) -> (&'static str, &'static str) {
    let bytes = text.as_bytes();
    let mut at = bytes.len();
    while at > 0 {
        at -= 1;
        if bytes[at] == separator {
            let (before, after) = text.split_at(at);
            return (before, after.split_at(1).1);
        }
    }
    panic!("a name of parts")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_collection_is_named_after_the_kind_that_is_stored() {
        for kind in BuiltIn::all() {
            let stored = kind.stored();
            assert_eq!(kind.collection(), format!("{}/{}", stored.group, stored.plural));
        }
    }
}
