//! The kind `FlowSchema` of `flowcontrol.apiserver.k8s.io/v1`.

use kubewright_table as table;

use crate::rules;
use crate::{Behaviour, BuiltIn, LeftAlone, Role, Subresource};

/// All that is known of it.
pub static FLOW_SCHEMA: BuiltIn = BuiltIn {
    subresources: &[Subresource::Status],
    columns: table::flow::SCHEMAS,
    rules: rules::flow::flow_schemas(),
    behaviour: Behaviour { role: Role::FlowSchema, metadata_of_status_writes: &[], ..Behaviour::BUILT_IN },
    left_alone: LeftAlone { status: &[&["spec"], &["metadata"]], ..LeftAlone::BUILT_IN },
    ..BuiltIn::cluster_scoped(
        "io.k8s.api.flowcontrol.v1.FlowSchema",
        "flowcontrol.apiserver.k8s.io/flowschemas",
    )
};
