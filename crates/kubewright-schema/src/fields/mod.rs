//! Who manages which fields: `metadata.managedFields` of every write, and server-side apply, as
//! `sigs.k8s.io/structured-merge-diff` and `k8s.io/apimachinery/pkg/util/managedfields` do it.
//!
//! Pure functions on JSON values. A [`Shape`] is what a schema means to them; a [`Set`] is a set of field paths;
//! [`Write`] is the door for the engine: [`Write::update`] for plain writes, [`Write::apply`] for configurations.

mod apply;
mod check;
mod codec;
mod compare;
mod conflict;
mod content;
mod differences;
mod element;
mod item;
mod last_applied;
mod managed;
mod merge;
mod mutation;
pub mod printed;
mod prune;
mod reconcile;
mod remove;
pub mod scale;
mod set;
mod shape;
#[cfg(test)]
mod tests;
mod update;
mod versions;

pub use apply::{about, type_of};
pub use compare::Difference;
pub use content::fields;
pub use element::Element;
pub use managed::{Entry, Managed, Manager, Operation, keep_times};
pub use merge::merge;
pub use mutation::mutate;
pub use remove::remove;
pub use set::{Set, Step, named};
pub use shape::Shape;
pub use update::{Write, disown};
pub use versions::{Version, Versions};
