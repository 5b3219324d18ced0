//! CEL in admission: the expressions of webhooks and policies, evaluated on a request
//! (`k8s.io/apiserver/pkg/admission/plugin/cel`).

mod authorizer;
mod conditions;
mod request;
mod scope;

pub(super) use conditions::Conditions;
pub(super) use scope::{Budget, Scope};
