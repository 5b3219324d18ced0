//! The kind `SelfSubjectRulesReview` of `authorization.k8s.io/v1`.

use kubewright_identity::authz::review::Asks;

use crate::{Behaviour, BuiltIn, Role, Verbs};

/// All that is known of it.
pub static SELF_SUBJECT_RULES_REVIEW: BuiltIn = BuiltIn {
    verbs: Verbs::CreateOnly,
    behaviour: Behaviour { role: Role::AccessReview(Asks::OwnRules), ..Behaviour::BUILT_IN },
    ..BuiltIn::cluster_scoped(
        "io.k8s.api.authorization.v1.SelfSubjectRulesReview",
        "authorization.k8s.io/selfsubjectrulesreviews",
    )
};
