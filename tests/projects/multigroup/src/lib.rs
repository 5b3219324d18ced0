// Copyright 2026 Example.
// SPDX-License-Identifier: MIT

//! The operator multigroup.

pub mod kinds;

use kubewright::command::Operator;

/// The operator with all of its kinds. What else it needs is added here.
pub fn operator() -> Operator {
    kinds::register(Operator::new("multigroup", env!("CARGO_PKG_VERSION")))
}
