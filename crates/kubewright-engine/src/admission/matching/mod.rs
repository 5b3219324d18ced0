//! Which requests a webhook or a policy is about: rules, selectors, and the version in which it wants to see the object
//! (`k8s.io/apiserver/pkg/admission/plugin/{webhook/predicates,policy/matching}`).

mod attributes;
mod cache;
mod constraints;
mod rule;

pub(super) use attributes::{Attributes, Gvk, converted};
pub(super) use cache::Cache;
pub(super) use constraints::Constraints;
