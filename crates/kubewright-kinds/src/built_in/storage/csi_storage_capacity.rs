//! The kind `CSIStorageCapacity` of `storage.k8s.io/v1`.

use crate::rules::{self, Rules, warnings};
use crate::{Behaviour, BuiltIn};

/// All that is known of it.
pub static CSI_STORAGE_CAPACITY: BuiltIn = BuiltIn {
    rules: Rules { warn: warnings::storage::of_capacity, ..rules::storage::capacities() },
    behaviour: Behaviour { conditional_update: true, ..Behaviour::BUILT_IN },
    ..BuiltIn::namespaced("io.k8s.api.storage.v1.CSIStorageCapacity", "storage.k8s.io/csistoragecapacities")
};
