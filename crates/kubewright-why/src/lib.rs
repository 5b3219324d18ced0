//! Why an object of Kubernetes is not ready, not deleted, not scheduled or not reconciled.
//!
//! Two steps: [`gather`] reads what is needed through a client, within limits, and gives a [`Picture`]: objects, what is known to be
//! absent, and what could not be read. [`explain`] is a pure function of it: a [`Report`], the tree of the object and what it
//! made, down to the causes. Each [`Cause`] is found by a small function in `causes`, with its evidence and what to do next.
//!
//! Nothing is written to the cluster, and of Secrets and ConfigMaps the metadata alone is read.

mod cause;
mod causes;
mod explain;
mod gather;
mod kinds;
mod object;
mod picture;
mod report;
mod text;

pub use cause::{Cause, Family};
pub use explain::explain;
pub use gather::{GatherError, Target, TargetError, gather};
pub use object::{Id, Object};
pub use picture::{Picture, Unread};
pub use report::{Finding, Node, Report};
