// SPDX-License-Identifier: MIT

//! The operator imported.

pub mod kinds;

use kubewright::command::Operator;

/// The operator with all of its kinds. What else it needs is added here.
pub fn operator() -> Operator {
    kinds::register(Operator::new("imported", env!("CARGO_PKG_VERSION")))
}
