//! The group `admissionregistration.k8s.io`: webhooks and policies (`pkg/apis/admissionregistration/validation`).

mod bindings;
mod expressions;
mod matching;
mod policies;
mod webhooks;

pub(super) use bindings::rules as binding_rules;
pub(super) use policies::{mutating_rules, rules as policies};
pub(super) use webhooks::{mutating as mutating_webhooks, validating as validating_webhooks};
