// SPDX-License-Identifier: MIT

//! The kinds of this operator. Kept by `kubewright create`: what you change here, it merges.

use kubewright::command::Operator;

/// The group apps.
pub mod apps {
    /// Deployment.
    pub mod deployment {
        pub mod controller;
    }
}

/// The group core.
pub mod core_ {
    /// Pod.
    pub mod pod {
        pub mod controller;
    }
}

/// Adds them to an operator.
pub fn register(mut operator: Operator) -> Operator {
    operator = operator.controller(apps::deployment::controller::controller);

    operator = operator.controller(core_::pod::controller::controller);

    operator
}
