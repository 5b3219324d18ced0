//! The group `admissionregistration.k8s.io`: webhooks and policies (`pkg/apis/admissionregistration/validation`).

mod bindings;
mod expressions;
mod matching;
mod policies;
mod reserved;
pub(crate) mod webhook_path;
pub(crate) mod webhook_url;
mod webhooks;

pub(crate) use bindings::rules as binding_rules;
pub(crate) use policies::{mutating_rules, rules as policies};
pub(crate) use webhooks::{mutating as mutating_webhooks, validating as validating_webhooks};
