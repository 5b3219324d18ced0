//! The kind `SubjectAccessReview` of `authorization.k8s.io/v1`.

use kubewright_identity::authz::review::Asks;

use crate::rules;
use crate::{Behaviour, BuiltIn, Role, Verbs};

/// All that is known of it.
pub static SUBJECT_ACCESS_REVIEW: BuiltIn = BuiltIn {
    verbs: Verbs::CreateOnly,
    rules: rules::reviews::access(),
    behaviour: Behaviour { role: Role::AccessReview(Asks::Anyone), ..Behaviour::BUILT_IN },
    ..BuiltIn::cluster_scoped(
        "io.k8s.api.authorization.v1.SubjectAccessReview",
        "authorization.k8s.io/subjectaccessreviews",
    )
};
