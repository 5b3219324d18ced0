//! The kind `DeviceTaintRule` of `resource.k8s.io/v1`, which is served from v1.37 on.

use kubewright_table as table;

use crate::rules;
use crate::{Behaviour, BuiltIn, LeftAlone, Subresource};

/// All that is known of it.
pub static DEVICE_TAINT_RULE: BuiltIn = BuiltIn {
    subresources: &[Subresource::Status],
    columns: table::devices::TAINT_RULES,
    rules: rules::devices::taint_rules(),
    behaviour: Behaviour {
        conditional_update: true,
        status_has_no_table: true,
        metadata_of_status_writes: &[],
        deletion_answers_object: true,
        ..Behaviour::BUILT_IN
    },
    left_alone: LeftAlone { status: &[&["metadata"], &["spec"]], ..LeftAlone::BUILT_IN },
    ..BuiltIn::cluster_scoped("io.k8s.api.resource.v1.DeviceTaintRule", "resource.k8s.io/devicetaintrules")
};
