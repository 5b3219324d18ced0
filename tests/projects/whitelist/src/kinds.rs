// Copyright 2026 TakanariKo.
// SPDX-License-Identifier: Apache-2.0

//! The kinds of this operator. Kept by `kubewright create`: what you change here, it merges.

use kubewright::command::Operator;

/// The group police.foo.bar.
pub mod police {
    /// WhiteList.
    pub mod whitelist {
        pub mod controller;
        pub mod v1beta1;

        // The version that is stored, and that the controller works with.
        pub use self::v1beta1::*;
    }
}

/// Adds them to an operator.
pub fn register(mut operator: Operator) -> Operator {
    operator = operator.definition::<police::whitelist::WhiteList>();
    operator = operator.controller(police::whitelist::controller::controller);

    operator
}
