//! The kind `CSIStorageCapacity` of `storage.k8s.io/v1`.

use k8s_openapi::api::storage::v1::CSIStorageCapacity;

use crate::kinds::BuiltIn;
use crate::kinds::rules::{self, Rules, warnings};

/// All that is known of it.
pub static CSI_STORAGE_CAPACITY: BuiltIn = BuiltIn {
    rules: Rules { warn: warnings::storage::of_capacity, ..rules::storage::capacities() },
    ..BuiltIn::of::<CSIStorageCapacity>()
};
