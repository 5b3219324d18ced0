//! The kind `ComponentStatus` of `v1`: how the other programs of a control plane are, asked anew by each request
//! (`pkg/registry/core/componentstatus`).

use kubewright_table as table;

use crate::{Behaviour, BuiltIn, Role, Verbs};

/// All that is known of it.
pub static COMPONENT_STATUS: BuiltIn = BuiltIn {
    short_names: &["cs"],
    verbs: Verbs::ReadOnly,
    deprecation: Some("v1 ComponentStatus is deprecated in v1.19+"),
    columns: table::cluster::COMPONENTS,
    behaviour: Behaviour { role: Role::ComponentStatus, ..Behaviour::BUILT_IN },
    ..BuiltIn::cluster_scoped("io.k8s.api.core.v1.ComponentStatus", "/componentstatuses")
};
