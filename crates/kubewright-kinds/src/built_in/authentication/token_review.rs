//! The kind `TokenReview` of `authentication.k8s.io/v1`.

use crate::rules;
use crate::{Behaviour, BuiltIn, Role, Verbs};

/// All that is known of it.
pub static TOKEN_REVIEW: BuiltIn = BuiltIn {
    verbs: Verbs::CreateOnly,
    rules: rules::reviews::tokens(),
    behaviour: Behaviour { role: Role::TokenReview, ..Behaviour::BUILT_IN },
    ..BuiltIn::cluster_scoped(
        "io.k8s.api.authentication.v1.TokenReview",
        "authentication.k8s.io/tokenreviews",
    )
};
