//! The kind `ResourceClaimTemplate` of `resource.k8s.io/v1`.

use kubewright_table as table;

use crate::rules;
use crate::{Behaviour, BuiltIn, Role};

/// All that is known of it.
pub static RESOURCE_CLAIM_TEMPLATE: BuiltIn = BuiltIn {
    columns: table::devices::NAMED,
    rules: rules::devices::templates(),
    behaviour: Behaviour {
        role: Role::DeviceClaimTemplate,
        deletion_answers_object: true,
        ..Behaviour::BUILT_IN
    },
    ..BuiltIn::namespaced(
        "io.k8s.api.resource.v1.ResourceClaimTemplate",
        "resource.k8s.io/resourceclaimtemplates",
    )
};
