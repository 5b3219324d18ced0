// SPDX-License-Identifier: MIT

//! The kinds of this operator. Kept by `kubewright create`: what you change here, it merges.

use kubewright::command::Operator;

/// The group certs.example.com.
pub mod certs_example_com {
    /// Certificate.
    pub mod certificate {
        pub mod controller;
        pub mod v1;

        // The version that is stored, and that the controller works with.
        pub use self::v1::*;
    }
}

/// The group db.example.com.
pub mod db_example_com {
    /// Postgresql.
    pub mod postgresql {
        pub mod controller;
        pub mod v1;

        // The version that is stored, and that the controller works with.
        pub use self::v1::*;
    }
}

/// The group flow.example.com.
pub mod flow_example_com {
    /// Workflow.
    pub mod workflow {
        pub mod v2;

        // The version that is stored, and that the controller works with.
        pub use self::v2::*;
    }
}

/// The group gateway.example.com.
pub mod gateway_example_com {
    /// HTTPRoute.
    pub mod httproute {
        pub mod v1beta1;

        // The version that is stored, and that the controller works with.
        pub use self::v1beta1::*;
    }
}

/// Adds them to an operator.
pub fn register(mut operator: Operator) -> Operator {
    operator = operator.controller(certs_example_com::certificate::controller::controller);

    operator = operator.controller(db_example_com::postgresql::controller::controller);

    operator
}
