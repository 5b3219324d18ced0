//! Expressions of admission (CEL): what those of webhooks and policies may name, and compiling them
//! (`k8s.io/apiserver/pkg/admission/plugin/cel`). [`crate::admission`] evaluates them on requests.

mod compiler;
mod environment;

pub(crate) use compiler::{Compiler, Expression, Returns};
pub(crate) use environment::Names;
