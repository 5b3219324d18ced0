//! Kinds as data: what a kind is, which are built in, and how a CustomResourceDefinition becomes one.
//!
//! A [`Kind`] is a value: names, schema, columns, and the functions that are its own ([`rules`]). Of a built-in kind one
//! descriptor says all that is known of it ([`built_in`]: a folder for each group, a file for each kind). What follows from a
//! kind alone stands here too: its definitions ([`definition`], [`conversion`]), how its objects are stored and selected
//! ([`encode`], [`Summary`], [`selector`]), and what expressions of webhooks and policies may name ([`expressions`]). All are pure
//! functions. No engine is known here: nothing is looked up, written or watched.

mod behaviour;
pub mod built_in;
pub mod conversion;
pub mod definition;
pub mod encode;
pub mod expressions;
mod kind;
mod kinds;
mod operation;
mod ownership;
mod plugins;
pub mod rules;
mod runtime_config;
pub mod selector;
pub mod summary;
pub mod unreadable;
#[cfg(test)]
#[path = "../../kubewright-schema/src/tests/values.rs"]
mod values;
mod versions;

pub use behaviour::{Behaviour, Counted, Role};
pub use built_in::{BuiltIn, Since, StoredAs};
pub use kind::{Custom, CustomParts, Kind, Proxied, ScalePaths, Scope, Subresource, Verbs};
pub use kinds::Kinds;
pub use operation::Operation;
pub use ownership::{LeftAlone, Ownership};
pub use plugins::{Plugin, PluginError, PluginSet, Plugins};
pub use runtime_config::RuntimeConfig;
pub use summary::Summary;
pub use versions::{Conversions, KnownVersions, Wanted};
