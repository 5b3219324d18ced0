//! The Common Expression Language as kube-apiserver v1.36 speaks it: parsed, type checked, estimated, and evaluated on a budget,
//! with Kubernetes' libraries of functions and with the messages that a client of kube-apiserver sees.
//!
//! ```
//! use kubewright_cel::{Bindings, DeclField, DeclType, Environment, Value, limits};
//!
//! let schema = DeclType::object([DeclField::new("replicas", DeclType::integer(), true)]).named("selfType");
//! let environment = Environment::new().variable("self", schema.clone());
//! let rule = environment.compile("self.replicas <= 3")?;
//! assert!(rule.estimate().max < limits::ESTIMATED_RULE_COST_LIMIT);
//!
//! let object = serde_json::json!({"replicas": 5});
//! let mut bindings = Bindings::new();
//! bindings.bind("self", Value::declared(&object, &schema)?);
//! let evaluation = rule.evaluate(&bindings, limits::PER_CALL_LIMIT);
//! assert_eq!(evaluation.result?.as_bool(), Some(false));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Why it is not built on `cel` and `kube-cel`
//!
//! `cel` parses with a generated parser that needs some 40 KiB of stack for a pair of parentheses without optimization: fifty of
//! them overflow a thread of 2 MiB, and kube-apiserver takes 250. It has no type checker and no costs, so that neither the
//! errors at registration nor the limits could be had; `kube-cel` is a library of functions over its values. What is left of
//! them would be a grammar, and functions that differ from Kubernetes' in their errors and their costs.
//!
//! # What bounds an evaluation
//!
//! Parsing, checking and planning recurse as deep as the expression is nested, which is bounded; evaluation is bounded by its
//! cost, which counts as in kube-apiserver; what can grow without costing much (the results of `replace`, lists in lists that
//! are the same, patterns that an expression makes itself and that have to be compiled) has a bound of its own.

mod authorizer;
mod bindings;
mod check;
mod compile;
mod cost;
mod declaration;
mod device;
mod environment;
mod error;
pub mod escaping;
mod eval;
mod library;
pub mod limits;
pub mod pattern;
mod program;
mod syntax;
mod types;
mod value;

pub use authorizer::{Attributes, Authorizer, Decision, ResourceAttributes, Subject};
pub use bindings::Bindings;
pub use cost::CostEstimate;
pub use declaration::{DeclField, DeclType, ListKind};
pub use device::Device;
pub use environment::Environment;
pub use error::{CompileErrors, EvaluationError, Issue};
pub use eval::pattern_size;
pub use library::{Cidr, IpAddress, NamedFormat, Quantity, Semver, Url};
pub use program::{Evaluation, Program};
pub use types::{ObjectType, Param, Type};
pub use value::{AuthorizerCheck, Duration, Key, List, Map, Object, Opaque, Text, Timestamp, Value};
