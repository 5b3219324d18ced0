//! CEL in admission: what the expressions of webhooks and policies may name, and their evaluation on a request
//! (`k8s.io/apiserver/pkg/admission/plugin/cel`).

mod authorizer;
mod compiler;
mod conditions;
mod environment;
mod request;
mod scope;

pub(crate) use compiler::{Compiler, Expression, Returns};
pub(super) use conditions::Conditions;
pub(crate) use environment::Names;
pub(super) use scope::{Budget, Scope};
