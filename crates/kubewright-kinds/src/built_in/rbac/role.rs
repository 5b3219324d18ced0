//! The kind `Role` of `rbac.authorization.k8s.io/v1`.

use crate::rules;
use crate::{Behaviour, BuiltIn};

/// All that is known of it.
pub static ROLE: BuiltIn = BuiltIn {
    rules: rules::rbac::roles(),
    behaviour: Behaviour { create_on_update: true, ..Behaviour::BUILT_IN },
    ..BuiltIn::namespaced("io.k8s.api.rbac.v1.Role", "rbac.authorization.k8s.io/roles")
};
