//! The kind `ResourceClaim` of `resource.k8s.io/v1`.

use kubewright_spec::Version;
use kubewright_table as table;

use crate::rules;
use crate::rules::declared::{Declared, Mistake};
use crate::{Behaviour, BuiltIn, Counted, LeftAlone, Role, Subresource};

/// What is checked by declaration from v1.37 on.
const DECLARED: &[Declared] = &[
    ("spec", Mistake::Immutable),
    ("spec.devices.requests", Mistake::Other),
    ("spec.devices.requests", Mistake::Duplicate("resource/v1.DeviceRequest")),
    ("spec.devices.requests[*].exactly.selectors", Mistake::Other),
    ("spec.devices.requests[*].exactly.allocationMode", Mistake::Other),
    ("spec.devices.requests[*].exactly.tolerations[*].key", Mistake::Other),
    ("spec.devices.requests[*].exactly.tolerations[*].operator", Mistake::Required),
    ("spec.devices.requests[*].exactly.tolerations[*].operator", Mistake::Other),
    ("spec.devices.requests[*].exactly.tolerations[*].effect", Mistake::Other),
    ("spec.devices.requests[*].firstAvailable", Mistake::Other),
    ("spec.devices.requests[*].firstAvailable", Mistake::Duplicate("resource/v1.DeviceSubRequest")),
    ("spec.devices.requests[*].firstAvailable[*].deviceClassName", Mistake::Required),
    ("spec.devices.requests[*].firstAvailable[*].deviceClassName", Mistake::Other),
    ("spec.devices.requests[*].firstAvailable[*].selectors", Mistake::Other),
    ("spec.devices.requests[*].firstAvailable[*].allocationMode", Mistake::Other),
    ("spec.devices.requests[*].firstAvailable[*].tolerations[*].key", Mistake::Other),
    ("spec.devices.requests[*].firstAvailable[*].tolerations[*].operator", Mistake::Required),
    ("spec.devices.requests[*].firstAvailable[*].tolerations[*].operator", Mistake::Other),
    ("spec.devices.requests[*].firstAvailable[*].tolerations[*].effect", Mistake::Other),
    ("spec.devices.constraints", Mistake::Other),
    ("spec.devices.constraints[*].requests", Mistake::Other),
    ("spec.devices.constraints[*].requests", Mistake::Duplicate("string")),
    ("spec.devices.constraints[*].matchAttribute", Mistake::Other),
    ("spec.devices.constraints[*].distinctAttribute", Mistake::Other),
    ("spec.devices.config", Mistake::Other),
    ("spec.devices.config[*].requests", Mistake::Other),
    ("spec.devices.config[*].requests", Mistake::Duplicate("string")),
    ("spec.devices.config[*].opaque.driver", Mistake::Required),
    ("spec.devices.config[*].opaque.driver", Mistake::Other),
    ("status.allocation.devices.results", Mistake::Other),
    ("status.allocation.devices.results[*].driver", Mistake::Required),
    ("status.allocation.devices.results[*].driver", Mistake::Other),
    ("status.allocation.devices.results[*].pool", Mistake::Required),
    ("status.allocation.devices.results[*].pool", Mistake::Other),
    ("status.allocation.devices.results[*].shareID", Mistake::Other),
    ("status.allocation.devices.config", Mistake::Other),
    ("status.allocation.devices.config[*].source", Mistake::Required),
    ("status.allocation.devices.config[*].source", Mistake::Other),
    ("status.allocation.devices.config[*].requests", Mistake::Other),
    ("status.allocation.devices.config[*].requests", Mistake::Duplicate("string")),
    ("status.allocation.devices.config[*].opaque.driver", Mistake::Required),
    ("status.allocation.devices.config[*].opaque.driver", Mistake::Other),
    ("status.reservedFor", Mistake::Duplicate("resource/v1.ResourceClaimConsumerReference")),
    ("status.devices", Mistake::Duplicate("resource/v1.AllocatedDeviceStatus")),
    ("status.devices[*].shareID", Mistake::Other),
    ("status.devices[*].networkData.interfaceName", Mistake::Other),
    ("status.devices[*].networkData.ips", Mistake::Duplicate("string")),
    ("status.devices[*].networkData.hardwareAddress", Mistake::Other),
];

/// All that is known of it.
pub static RESOURCE_CLAIM: BuiltIn = BuiltIn {
    subresources: &[Subresource::Status],
    columns: table::devices::CLAIMS,
    rules: rules::devices::claims(),
    behaviour: Behaviour {
        role: Role::DeviceClaim,
        status_has_no_table: true,
        metadata_of_status_writes: &[],
        deletion_answers_object: true,
        ..Behaviour::BUILT_IN
    },
    left_alone: LeftAlone { status: &[&["metadata"], &["spec"]], ..LeftAlone::BUILT_IN },
    counted: Counted::Devices,
    since: &[(Version::V1_37, |kind| kind.rules.declared = DECLARED)],
    ..BuiltIn::namespaced("io.k8s.api.resource.v1.ResourceClaim", "resource.k8s.io/resourceclaims")
};
