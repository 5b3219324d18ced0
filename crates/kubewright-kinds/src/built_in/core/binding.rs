//! The kind `Binding` of `v1`.

use crate::{Behaviour, BuiltIn, Role, Verbs};

/// All that is known of it.
pub static BINDING: BuiltIn = BuiltIn {
    verbs: Verbs::CreateOnly,
    behaviour: Behaviour { role: Role::Binding, ..Behaviour::BUILT_IN },
    ..BuiltIn::namespaced("io.k8s.api.core.v1.Binding", "/bindings")
};
