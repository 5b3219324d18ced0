//! The kind `APIService` of `apiregistration.k8s.io/v1`.

use kubewright_table as table;

use crate::rules;
use crate::{Behaviour, BuiltIn, LeftAlone, Role, Subresource};

/// All that is known of it.
pub static API_SERVICE: BuiltIn = BuiltIn {
    categories: &["api-extensions"],
    subresources: &[Subresource::Status],
    columns: table::cluster::API_SERVICES,
    rules: rules::api_services::rules(),
    behaviour: Behaviour {
        role: Role::ApiService,
        status_has_no_table: true,
        conditional_update: true,
        metadata_of_status_writes: &[],
        ..Behaviour::BUILT_IN
    },
    left_alone: LeftAlone { status: &[&["spec"], &["metadata"]], ..LeftAlone::BUILT_IN },
    storage_prefix: Some("apiregistration.k8s.io/apiservices"),
    ..BuiltIn::cluster_scoped(
        "io.k8s.kube-aggregator.pkg.apis.apiregistration.v1.APIService",
        "apiregistration.k8s.io/apiservices",
    )
};
