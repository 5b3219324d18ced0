//! The group `rbac.authorization.k8s.io`.

pub mod cluster_role;
pub mod cluster_role_binding;
pub mod role;
pub mod role_binding;

use super::BuiltIn;

/// Its kinds, in the order of discovery.
pub static KINDS: &[&BuiltIn] = &[
    &cluster_role_binding::CLUSTER_ROLE_BINDING,
    &cluster_role::CLUSTER_ROLE,
    &role_binding::ROLE_BINDING,
    &role::ROLE,
];
