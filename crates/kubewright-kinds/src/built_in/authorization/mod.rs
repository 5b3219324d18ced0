//! The group `authorization.k8s.io`.

pub mod local_subject_access_review;
pub mod self_subject_access_review;
pub mod self_subject_rules_review;
pub mod subject_access_review;

use super::BuiltIn;

/// Its kinds, in the order of discovery.
pub static KINDS: &[&BuiltIn] = &[
    &local_subject_access_review::LOCAL_SUBJECT_ACCESS_REVIEW,
    &self_subject_access_review::SELF_SUBJECT_ACCESS_REVIEW,
    &self_subject_rules_review::SELF_SUBJECT_RULES_REVIEW,
    &subject_access_review::SUBJECT_ACCESS_REVIEW,
];
