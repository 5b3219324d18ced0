//! Expressions of admission (CEL): what those of webhooks and policies may name, and compiling them
//! (`k8s.io/apiserver/pkg/admission/plugin/cel`). The admission of `kubewright-engine` evaluates them on requests.

mod compiler;
mod environment;

pub use compiler::{Compiler, Expression, Returns};
pub use environment::Names;
