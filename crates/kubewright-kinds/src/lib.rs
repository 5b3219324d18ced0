//! Kinds as data: what a kind is, which are built in, and how a CustomResourceDefinition becomes one.
//!
//! A [`Kind`] is a value: names, schema, columns, and the functions that are its own ([`rules`]). What follows from it alone
//! stands here too: its definitions ([`definition`], [`conversion`]), the views that clients have of it ([`table`],
//! [`discovery`], [`openapi`]), how its objects are stored and selected ([`encode`], [`Summary`], [`selector`]), and what
//! they count for ([`quota`]). All are pure functions. No engine is known here: nothing is looked up, written or watched.

pub mod conversion;
pub mod definition;
pub mod discovery;
pub mod encode;
pub mod expressions;
pub mod kinds;
pub mod openapi;
pub mod quota;
pub mod selector;
pub mod summary;
pub mod table;
#[cfg(test)]
#[path = "../../kubewright-schema/src/tests/values.rs"]
mod values;

pub use kinds::rules;
pub use kinds::{
    Behaviour, BuiltIn, Counted, Custom, CustomParts, Kind, Kinds, KnownScope, LeftAlone, Operation,
    Ownership, Plugin, PluginError, PluginSet, Plugins, Proxied, Role, RuntimeConfig, ScalePaths, Scope,
    ServedVersions, StoredAs, Subresource, Verbs,
};
pub use summary::Summary;
