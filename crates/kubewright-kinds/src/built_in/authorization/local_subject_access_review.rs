//! The kind `LocalSubjectAccessReview` of `authorization.k8s.io/v1`.

use k8s_openapi::api::authorization::v1::LocalSubjectAccessReview;
use kubewright_identity::authz::review::Asks;

use crate::rules;
use crate::{Behaviour, BuiltIn, Role, Verbs};

/// All that is known of it.
pub static LOCAL_SUBJECT_ACCESS_REVIEW: BuiltIn = BuiltIn {
    verbs: Verbs::CreateOnly,
    rules: rules::reviews::access(true, true),
    behaviour: Behaviour { role: Role::AccessReview(Asks::InNamespace), ..Behaviour::BUILT_IN },
    ..BuiltIn::of::<LocalSubjectAccessReview>()
};
