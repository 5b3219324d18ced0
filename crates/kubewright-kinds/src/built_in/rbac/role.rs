//! The kind `Role` of `rbac.authorization.k8s.io/v1`.

use k8s_openapi::api::rbac::v1::Role;

use crate::rules;
use crate::{Behaviour, BuiltIn};

/// All that is known of it.
pub static ROLE: BuiltIn = BuiltIn {
    rules: rules::rbac::roles(),
    behaviour: Behaviour { create_on_update: true, ..Behaviour::BUILT_IN },
    ..BuiltIn::of::<Role>()
};
