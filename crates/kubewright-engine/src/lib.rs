//! The engine: what a verb does to an object of any kind.
//!
//! [`request`] is what is asked, [`admission`] stands before each write, [`Engine`] holds the objects and what all verbs share,
//! [`verbs`] read and write them, [`watch`] streams what was committed, [`shape`] brings objects into the form that a client
//! wants, and [`bootstrap`] writes what is in a cluster before anybody has written to it. Requests, admission, the engine and
//! the verbs each know those before them alone; admission sees the cluster by a trait ([`admission::Objects`]). Calls and
//! answers are values: no request of a protocol is known here, and no connection.

pub mod admission;
pub mod bootstrap;
#[cfg(all(test, debug_assertions))]
mod cost;
mod engine;
mod reopen;
pub mod request;
pub mod shape;
mod tags;
pub mod verbs;
pub mod watch;

pub use engine::{ApiServices, Engine, NodePorts, Settings};
pub use reopen::reopened;
pub use tags::{tags, tags_of};
