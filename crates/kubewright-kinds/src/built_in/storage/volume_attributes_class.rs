//! The kind `VolumeAttributesClass` of `storage.k8s.io/v1`.

use kubewright_table as table;

use crate::rules;
use crate::{Behaviour, BuiltIn, Plugin};

/// All that is known of it.
pub static VOLUME_ATTRIBUTES_CLASS: BuiltIn = BuiltIn {
    short_names: &["vac"],
    columns: table::storage::ATTRIBUTES_CLASSES,
    rules: rules::storage::attributes_classes(),
    behaviour: Behaviour { deletion_answers_object: true, ..Behaviour::BUILT_IN },
    plugins: &[Plugin::StorageObjectInUseProtection],
    finalizer_in_use: Some("kubernetes.io/vac-protection"),
    ..BuiltIn::cluster_scoped(
        "io.k8s.api.storage.v1.VolumeAttributesClass",
        "storage.k8s.io/volumeattributesclasses",
    )
};
