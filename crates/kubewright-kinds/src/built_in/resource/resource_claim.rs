//! The kind `ResourceClaim` of `resource.k8s.io/v1`.

use kubewright_table as table;

use crate::rules;
use crate::{Behaviour, BuiltIn, Counted, LeftAlone, Role, Subresource};

/// All that is known of it.
pub static RESOURCE_CLAIM: BuiltIn = BuiltIn {
    subresources: &[Subresource::Status],
    columns: table::devices::CLAIMS,
    rules: rules::devices::claims(),
    behaviour: Behaviour {
        role: Role::DeviceClaim,
        metadata_of_status_writes: &[],
        deletion_answers_object: true,
        ..Behaviour::BUILT_IN
    },
    left_alone: LeftAlone { status: &[&["metadata"], &["spec"]], ..LeftAlone::BUILT_IN },
    counted: Counted::Devices,
    ..BuiltIn::namespaced("io.k8s.api.resource.v1.ResourceClaim", "resource.k8s.io/resourceclaims")
};
