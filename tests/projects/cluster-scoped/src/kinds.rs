// SPDX-License-Identifier: MIT

//! The kinds of this operator. Kept by `kubewright create`: what you change here, it merges.

use kubewright::command::Operator;

/// The group fleet.example.com.
pub mod fleet {
    /// Harbour.
    pub mod harbour {
        pub mod controller;
        pub mod v1;

        // The version that is stored, and that the controller works with.
        pub use self::v1::*;
    }
}

/// Adds them to an operator.
pub fn register(mut operator: Operator) -> Operator {
    operator = operator.definition::<fleet::harbour::Harbour>();
    operator = operator.controller(fleet::harbour::controller::controller);

    operator
}
