// Copyright 2026 TakanariKo.
// SPDX-License-Identifier: Apache-2.0

//! The operator foo-bar.

pub mod kinds;

use kubewright::command::Operator;

/// The operator with all of its kinds. What else it needs is added here.
pub fn operator() -> Operator {
    kinds::register(Operator::new("foo-bar", env!("CARGO_PKG_VERSION")))
}
