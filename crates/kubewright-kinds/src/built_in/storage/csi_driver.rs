//! The kind `CSIDriver` of `storage.k8s.io/v1`.

use kubewright_table as table;

use crate::rules::{self, Rules, warnings};
use crate::{Behaviour, BuiltIn};

/// All that is known of it.
pub static CSI_DRIVER: BuiltIn = BuiltIn {
    columns: table::storage::DRIVERS,
    rules: Rules { warn: warnings::storage::of_driver, ..rules::storage::drivers() },
    behaviour: Behaviour { conditional_update: true, deletion_answers_object: true, ..Behaviour::BUILT_IN },
    ..BuiltIn::cluster_scoped("io.k8s.api.storage.v1.CSIDriver", "storage.k8s.io/csidrivers")
};
