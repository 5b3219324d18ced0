//! The kind `LimitRange` of `v1`.

use crate::rules;
use crate::{Behaviour, BuiltIn};

/// All that is known of it.
pub static LIMIT_RANGE: BuiltIn = BuiltIn {
    short_names: &["limits"],
    rules: rules::limits::limit_ranges(),
    behaviour: Behaviour { names_itself: true, create_on_update: true, ..Behaviour::BUILT_IN },
    ..BuiltIn::namespaced("io.k8s.api.core.v1.LimitRange", "/limitranges")
};
