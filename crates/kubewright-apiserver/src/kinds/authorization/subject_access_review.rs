//! The kind `SubjectAccessReview` of `authorization.k8s.io/v1`.

use k8s_openapi::api::authorization::v1::SubjectAccessReview;

use crate::kinds::rules;
use crate::kinds::{BuiltIn, Verbs};

/// All that is known of it.
pub static SUBJECT_ACCESS_REVIEW: BuiltIn = BuiltIn {
    verbs: Verbs::CreateOnly,
    rules: rules::reviews::access(true, false),
    ..BuiltIn::of::<SubjectAccessReview>()
};
