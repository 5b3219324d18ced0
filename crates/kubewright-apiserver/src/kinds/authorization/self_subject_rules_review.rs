//! The kind `SelfSubjectRulesReview` of `authorization.k8s.io/v1`.

use k8s_openapi::api::authorization::v1::SelfSubjectRulesReview;

use crate::kinds::{BuiltIn, Verbs};

/// All that is known of it.
pub static SELF_SUBJECT_RULES_REVIEW: BuiltIn =
    BuiltIn { verbs: Verbs::CreateOnly, ..BuiltIn::of::<SelfSubjectRulesReview>() };
