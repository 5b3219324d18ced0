// Copyright 2026 Example.
// SPDX-License-Identifier: MIT

//! Between v1beta1 and v1 of Captain, by way of v1alpha1.

use super::{v1, v1alpha1, v1beta1};

impl From<v1beta1::Captain> for v1::Captain {
    fn from(old: v1beta1::Captain) -> Self {
        Self::from(v1alpha1::Captain::from(old))
    }
}

impl From<v1::Captain> for v1beta1::Captain {
    fn from(old: v1::Captain) -> Self {
        Self::from(v1alpha1::Captain::from(old))
    }
}
