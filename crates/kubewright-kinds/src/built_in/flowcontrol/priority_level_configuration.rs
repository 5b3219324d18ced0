//! The kind `PriorityLevelConfiguration` of `flowcontrol.apiserver.k8s.io/v1`.

use kubewright_table as table;

use crate::rules;
use crate::{Behaviour, BuiltIn, LeftAlone, Role, Subresource};

/// All that is known of it.
pub static PRIORITY_LEVEL_CONFIGURATION: BuiltIn = BuiltIn {
    subresources: &[Subresource::Status],
    columns: table::flow::LEVELS,
    rules: rules::flow::priority_levels(),
    behaviour: Behaviour { role: Role::PriorityLevel, metadata_of_status_writes: &[], ..Behaviour::BUILT_IN },
    left_alone: LeftAlone { status: &[&["spec"], &["metadata"]], ..LeftAlone::BUILT_IN },
    ..BuiltIn::cluster_scoped(
        "io.k8s.api.flowcontrol.v1.PriorityLevelConfiguration",
        "flowcontrol.apiserver.k8s.io/prioritylevelconfigurations",
    )
};
