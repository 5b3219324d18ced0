//! The kind `ResourceClaimTemplate` of `resource.k8s.io/v1`.

use kubewright_spec::Version;
use kubewright_table as table;

use crate::rules;
use crate::rules::declared::{Declared, Mistake};
use crate::{Behaviour, BuiltIn, Role};

/// What is checked by declaration from v1.37 on.
const DECLARED: &[Declared] = &[
    ("spec.spec.devices.requests", Mistake::Other),
    ("spec.spec.devices.requests", Mistake::Duplicate("resource/v1.DeviceRequest")),
    ("spec.spec.devices.requests[*].exactly.selectors", Mistake::Other),
    ("spec.spec.devices.requests[*].exactly.allocationMode", Mistake::Other),
    ("spec.spec.devices.requests[*].exactly.tolerations[*].key", Mistake::Other),
    ("spec.spec.devices.requests[*].exactly.tolerations[*].operator", Mistake::Required),
    ("spec.spec.devices.requests[*].exactly.tolerations[*].operator", Mistake::Other),
    ("spec.spec.devices.requests[*].exactly.tolerations[*].effect", Mistake::Other),
    ("spec.spec.devices.requests[*].firstAvailable", Mistake::Other),
    ("spec.spec.devices.requests[*].firstAvailable", Mistake::Duplicate("resource/v1.DeviceSubRequest")),
    ("spec.spec.devices.requests[*].firstAvailable[*].deviceClassName", Mistake::Required),
    ("spec.spec.devices.requests[*].firstAvailable[*].deviceClassName", Mistake::Other),
    ("spec.spec.devices.requests[*].firstAvailable[*].selectors", Mistake::Other),
    ("spec.spec.devices.requests[*].firstAvailable[*].allocationMode", Mistake::Other),
    ("spec.spec.devices.requests[*].firstAvailable[*].tolerations[*].key", Mistake::Other),
    ("spec.spec.devices.requests[*].firstAvailable[*].tolerations[*].operator", Mistake::Required),
    ("spec.spec.devices.requests[*].firstAvailable[*].tolerations[*].operator", Mistake::Other),
    ("spec.spec.devices.requests[*].firstAvailable[*].tolerations[*].effect", Mistake::Other),
    ("spec.spec.devices.constraints", Mistake::Other),
    ("spec.spec.devices.constraints[*].requests", Mistake::Other),
    ("spec.spec.devices.constraints[*].requests", Mistake::Duplicate("string")),
    ("spec.spec.devices.constraints[*].matchAttribute", Mistake::Other),
    ("spec.spec.devices.constraints[*].distinctAttribute", Mistake::Other),
    ("spec.spec.devices.config", Mistake::Other),
    ("spec.spec.devices.config[*].requests", Mistake::Other),
    ("spec.spec.devices.config[*].requests", Mistake::Duplicate("string")),
    ("spec.spec.devices.config[*].opaque.driver", Mistake::Required),
    ("spec.spec.devices.config[*].opaque.driver", Mistake::Other),
];

/// All that is known of it.
pub static RESOURCE_CLAIM_TEMPLATE: BuiltIn = BuiltIn {
    columns: table::devices::NAMED,
    rules: rules::devices::templates(),
    since: &[(Version::V1_37, |kind| kind.rules.declared = DECLARED)],
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
