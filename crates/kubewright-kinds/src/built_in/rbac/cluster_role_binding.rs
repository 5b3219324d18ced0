//! The kind `ClusterRoleBinding` of `rbac.authorization.k8s.io/v1`.

use kubewright_table as table;

use crate::rules;
use crate::{Behaviour, BuiltIn};

/// All that is known of it.
pub static CLUSTER_ROLE_BINDING: BuiltIn = BuiltIn {
    columns: table::rbac::BINDINGS,
    rules: rules::rbac::cluster_role_bindings(),
    behaviour: Behaviour { create_on_update: true, ..Behaviour::BUILT_IN },
    ..BuiltIn::cluster_scoped(
        "io.k8s.api.rbac.v1.ClusterRoleBinding",
        "rbac.authorization.k8s.io/clusterrolebindings",
    )
};
