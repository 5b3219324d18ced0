//! The kind `StorageVersionMigration` of `storagemigration.k8s.io/v1`, since v1.37.

use kubewright_table as table;

use crate::rules;
use crate::{Behaviour, BuiltIn, LeftAlone, Subresource};

/// All that is known of it.
pub static STORAGE_VERSION_MIGRATION: BuiltIn = BuiltIn {
    subresources: &[Subresource::Status],
    columns: table::storage::MIGRATIONS,
    rules: rules::migrations::rules(),
    behaviour: Behaviour { conditional_update: true, metadata_of_status_writes: &[], ..Behaviour::BUILT_IN },
    left_alone: LeftAlone { status: &[&["spec"], &["metadata"]], ..LeftAlone::BUILT_IN },
    ..BuiltIn::cluster_scoped(
        "io.k8s.api.storagemigration.v1.StorageVersionMigration",
        "storagemigration.k8s.io/storageversionmigrations",
    )
};
