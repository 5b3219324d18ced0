// SPDX-License-Identifier: MIT

//! The kinds of this operator. Kept by `kubewright create`: what you change here, it merges.

use kubewright::command::Operator;

/// The group cache.example.com.
pub mod cache {
    /// Memcached.
    pub mod memcached {
        pub mod controller;
        pub mod v1alpha1;

        // The version that is stored, and that the controller works with.
        pub use self::v1alpha1::*;
    }
}

/// Adds them to an operator.
pub fn register(mut operator: Operator) -> Operator {
    operator = operator.definition::<cache::memcached::Memcached>();
    operator = operator.controller(cache::memcached::controller::controller);

    operator
}
