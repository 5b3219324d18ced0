//! The kind `Service` of `v1`.

use kubewright_meta::rules::metadata::NameRule;
use kubewright_spec::Version;
use kubewright_table as table;

use crate::rules::{self, Rules, warnings};
use crate::selector::{Field, Fields};
use crate::{Behaviour, BuiltIn, Counted, Plugin, Proxied, Role, Subresource};

/// All that is known of it.
pub static SERVICE: BuiltIn = BuiltIn {
    short_names: &["svc"],
    categories: &["all"],
    subresources: &[Subresource::Proxy(Proxied::Service), Subresource::Status],
    columns: table::network::SERVICES,
    rules: Rules { warn: warnings::addresses::of_service, ..rules::services::rules() },
    behaviour: Behaviour {
        role: Role::Service,
        create_on_update: true,
        deletion_answers_object: true,
        ..Behaviour::BUILT_IN
    },
    fields: Fields::of(&[Field::of("spec.clusterIP"), Field::of("spec.type")]),
    counted: Counted::Services,
    plugins: &[Plugin::DenyServiceExternalIPs],
    // The feature RelaxedServiceNameValidation.
    since: &[(Version::V1_36, |kind| kind.rules.name = NameRule::Label)],
    storage_prefix: Some("services/specs"),
    ..BuiltIn::namespaced("io.k8s.api.core.v1.Service", "/services")
};
