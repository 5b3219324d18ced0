//! The kind `Role` of `rbac.authorization.k8s.io/v1`.

use k8s_openapi::api::rbac::v1::Role;

use crate::kinds::BuiltIn;
use crate::kinds::rules;

/// All that is known of it.
pub static ROLE: BuiltIn = BuiltIn { rules: rules::rbac::roles(), ..BuiltIn::of::<Role>() };
