//! The kind `ClusterRole` of `rbac.authorization.k8s.io/v1`.

use crate::rules;
use crate::{Behaviour, BuiltIn};

/// All that is known of it.
pub static CLUSTER_ROLE: BuiltIn = BuiltIn {
    rules: rules::rbac::cluster_roles(),
    behaviour: Behaviour { create_on_update: true, ..Behaviour::BUILT_IN },
    ..BuiltIn::cluster_scoped("io.k8s.api.rbac.v1.ClusterRole", "rbac.authorization.k8s.io/clusterroles")
};
