//! The engine: what a verb does to an object of any kind.
//!
//! [`registry`] reads and writes objects, [`admission`] stands before each write, [`watch`] streams what was committed,
//! [`shape`] brings objects into the form that a client wants, and [`bootstrap`] writes what is in a cluster before
//! anybody has written to it. Calls and answers are values: no request is known here, and no connection.

pub mod admission;
pub mod bootstrap;
#[cfg(all(test, debug_assertions))]
mod cost;
pub mod registry;
pub mod shape;
pub mod watch;
