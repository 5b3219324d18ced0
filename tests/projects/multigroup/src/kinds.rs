// Copyright 2026 Example.
// SPDX-License-Identifier: MIT

//! The kinds of this operator. Kept by `kubewright create`: what you change here, it merges.

use kubewright::{command::Operator, webhook::Webhooks};

/// The group crew.example.com.
pub mod crew {
    /// Captain.
    pub mod captain {
        use kubewright::webhook::Conversion;

        pub mod controller;
        mod conversion_v1alpha1_v1;
        mod conversion_v1alpha1_v1beta1;
        mod conversion_v1beta1_v1;
        pub mod defaulting;
        pub mod v1;
        pub mod v1alpha1;
        pub mod v1beta1;
        pub mod validation;

        // The version that is stored, and that the controller works with.
        pub use self::v1::*;

        /// Between its versions.
        pub fn conversion() -> Conversion<Captain> {
            Conversion::hub::<Captain>()
                .spoke::<v1alpha1::Captain>()
                .spoke::<v1beta1::Captain>()
                .keeping("crew.example.com/conversion-data")
        }
    }
}

/// The group sea-creatures.example.com.
pub mod sea_creatures {
    /// Captain.
    pub mod captain {
        pub mod controller;
        pub mod v1;

        // The version that is stored, and that the controller works with.
        pub use self::v1::*;
    }
}

/// The group ship.example.com.
pub mod ship {
    /// Frigate.
    pub mod frigate {
        pub mod v1;

        // The version that is stored, and that the controller works with.
        pub use self::v1::*;
    }
}

/// Adds them to an operator.
pub fn register(mut operator: Operator) -> Operator {
    operator = operator.definition::<crew::captain::Captain>();
    operator = operator.definition::<crew::captain::v1alpha1::Captain>();
    operator = operator.definition::<crew::captain::v1beta1::Captain>();
    operator = operator.controller(crew::captain::controller::controller);

    operator = operator.definition::<ship::frigate::Frigate>();

    operator = operator.definition::<sea_creatures::captain::Captain>();
    operator = operator.controller(sea_creatures::captain::controller::controller);

    operator = operator.webhooks(webhooks());

    operator
}

/// Their webhooks.
pub fn webhooks() -> Webhooks {
    let mut webhooks = Webhooks::new("multigroup");
    webhooks = webhooks.add(crew::captain::defaulting::webhook());
    webhooks = webhooks.add(crew::captain::validation::webhook());
    webhooks = webhooks.convert(crew::captain::conversion());

    webhooks
}
