//! The kind `CustomResourceDefinition` of `apiextensions.k8s.io/v1`.

use kubewright_spec::Version;
use kubewright_table as table;

use crate::definition;
use crate::rules::{Finalizers, Generation, Rules};
use crate::{Behaviour, BuiltIn, Role, Subresource};

/// All that is known of it.
pub static CUSTOM_RESOURCE_DEFINITION: BuiltIn = BuiltIn {
    short_names: &["crd", "crds"],
    categories: &["api-extensions"],
    subresources: &[Subresource::Status],
    // The engine asks `schema::definition` for the rest, which needs to know the other definitions.
    rules: Rules {
        generation: Generation::Definitions,
        keeps_empty_maps: true,
        finalizers: Finalizers::Syntax,
        prepare_create: definition::begin,
        prepare_update: |definition, _| definition::store(definition),
        ..Rules::none()
    },
    behaviour: Behaviour {
        role: Role::Definition,
        conditional_update: true,
        status_has_no_table: true,
        ..Behaviour::BUILT_IN
    },
    // Until then name and creation time.
    since: &[(Version::V1_37, |kind| kind.columns.print_by(table::definitions::DEFINITIONS))],
    storage_prefix: Some("apiextensions.k8s.io/customresourcedefinitions"),
    ..BuiltIn::cluster_scoped(
        "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition",
        "apiextensions.k8s.io/customresourcedefinitions",
    )
};
