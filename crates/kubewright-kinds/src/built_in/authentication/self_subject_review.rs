//! The kind `SelfSubjectReview` of `authentication.k8s.io/v1`.

use crate::{Behaviour, BuiltIn, Role, Verbs};

/// All that is known of it.
pub static SELF_SUBJECT_REVIEW: BuiltIn = BuiltIn {
    verbs: Verbs::CreateOnly,
    behaviour: Behaviour { role: Role::SelfSubjectReview, ..Behaviour::BUILT_IN },
    ..BuiltIn::cluster_scoped(
        "io.k8s.api.authentication.v1.SelfSubjectReview",
        "authentication.k8s.io/selfsubjectreviews",
    )
};
