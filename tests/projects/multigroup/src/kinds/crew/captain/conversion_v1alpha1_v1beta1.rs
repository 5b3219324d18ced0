// Copyright 2026 Example.
// SPDX-License-Identifier: MIT

//! Between v1alpha1 and v1beta1 of Captain: a field that is in both is carried over. Change this when they part.

use super::{v1alpha1, v1beta1};

impl From<v1alpha1::Captain> for v1beta1::Captain {
    fn from(old: v1alpha1::Captain) -> Self {
        Self {
            metadata: old.metadata,
            spec: v1beta1::CaptainSpec { foo: old.spec.foo },
            status: old.status.map(|status| v1beta1::CaptainStatus {
                observed_generation: status.observed_generation,
                conditions: status.conditions,
            }),
        }
    }
}

impl From<v1beta1::Captain> for v1alpha1::Captain {
    fn from(old: v1beta1::Captain) -> Self {
        Self {
            metadata: old.metadata,
            spec: v1alpha1::CaptainSpec { foo: old.spec.foo },
            status: old.status.map(|status| v1alpha1::CaptainStatus {
                observed_generation: status.observed_generation,
                conditions: status.conditions,
            }),
        }
    }
}
