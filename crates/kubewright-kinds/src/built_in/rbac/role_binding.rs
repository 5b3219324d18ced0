//! The kind `RoleBinding` of `rbac.authorization.k8s.io/v1`.

use kubewright_table as table;

use crate::rules;
use crate::{Behaviour, BuiltIn};

/// All that is known of it.
pub static ROLE_BINDING: BuiltIn = BuiltIn {
    columns: table::rbac::BINDINGS,
    rules: rules::rbac::role_bindings(),
    behaviour: Behaviour { create_on_update: true, ..Behaviour::BUILT_IN },
    ..BuiltIn::namespaced("io.k8s.api.rbac.v1.RoleBinding", "rbac.authorization.k8s.io/rolebindings")
};
