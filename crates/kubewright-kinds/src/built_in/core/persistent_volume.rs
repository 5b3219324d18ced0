//! The kind `PersistentVolume` of `v1`.

use kubewright_table as table;

use crate::rules::{self, Rules, warnings};
use crate::{Behaviour, BuiltIn, Plugin, Subresource};

/// All that is known of it.
pub static PERSISTENT_VOLUME: BuiltIn = BuiltIn {
    short_names: &["pv"],
    subresources: &[Subresource::Status],
    columns: table::storage::VOLUMES,
    rules: Rules { warn: warnings::storage::of_volume, ..rules::storage::volumes() },
    behaviour: Behaviour { deletion_answers_object: true, ..Behaviour::BUILT_IN },
    plugins: &[Plugin::StorageObjectInUseProtection],
    finalizer_in_use: Some("kubernetes.io/pv-protection"),
    ..BuiltIn::cluster_scoped("io.k8s.api.core.v1.PersistentVolume", "/persistentvolumes")
};
