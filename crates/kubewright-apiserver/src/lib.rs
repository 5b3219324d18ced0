//! The Kubernetes API server as a tower service.
//!
//! A request goes through the rooms in this order: [`authn`] (who is it), [`authz`] (may they), [`registry`] (the object
//! engine, which asks the [`kinds`] entry, its [`schema`], [`patch`] and [`admission`]) and the store; [`watch`] streams
//! what was committed; [`quota`] counts what objects use; [`table`], [`discovery`] and [`openapi`] are other views of the same kinds, [`selector`] picks among objects. [`http`] is the
//! edge: the service itself, and the TLS listener around it.

pub mod admission;
pub mod authn;
pub mod authz;
pub mod bootstrap;
#[cfg(all(test, debug_assertions))]
mod cost;
pub mod discovery;
mod expressions;
pub mod fields;
pub mod http;
pub mod kinds;
pub mod kubelet;
pub mod openapi;
pub mod patch;
pub mod quota;
pub mod registry;
pub mod schema;
pub mod selector;
pub mod table;
pub mod trust;
pub mod watch;
pub mod webhook;
