//! The kind `Binding` of `v1`.

use k8s_openapi::api::core::v1::Binding;

use crate::{Behaviour, BuiltIn, Role, Verbs};

/// All that is known of it.
pub static BINDING: BuiltIn = BuiltIn {
    verbs: Verbs::CreateOnly,
    behaviour: Behaviour { role: Role::Binding, ..Behaviour::BUILT_IN },
    ..BuiltIn::of::<Binding>()
};
