//! The group `admissionregistration.k8s.io`: webhooks and policies (`pkg/apis/admissionregistration/validation`). What
//! CEL expressions say is checked by who compiles them.

mod matching;
mod policies;
mod webhooks;

pub(super) use policies::{binding_rules, mutating_rules, rules as policies};
pub(super) use webhooks::{mutating as mutating_webhooks, validating as validating_webhooks};
