//! The group `authentication.k8s.io`.

pub mod self_subject_review;
pub mod token_review;

use super::BuiltIn;

/// Its kinds, in the order of discovery.
pub static KINDS: &[&BuiltIn] = &[&self_subject_review::SELF_SUBJECT_REVIEW, &token_review::TOKEN_REVIEW];
