//! What expressions cost: while they run, and at least and at most by what is declared.

mod estimate;
mod functions;
mod runtime;
mod sizes;

pub(crate) use self::estimate::estimate;
pub(crate) use self::runtime::{CallCost, equality, matching};
pub use self::sizes::CostEstimate;
