//! The kind `CSIStorageCapacity` of `storage.k8s.io/v1`.

use k8s_openapi::api::storage::v1::CSIStorageCapacity;

use crate::rules::{self, Rules, warnings};
use crate::{Behaviour, BuiltIn};

/// All that is known of it.
pub static CSI_STORAGE_CAPACITY: BuiltIn = BuiltIn {
    rules: Rules { warn: warnings::storage::of_capacity, ..rules::storage::capacities() },
    behaviour: Behaviour { conditional_update: true, ..Behaviour::BUILT_IN },
    ..BuiltIn::of::<CSIStorageCapacity>()
};
