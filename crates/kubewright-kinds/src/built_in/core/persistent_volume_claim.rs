//! The kind `PersistentVolumeClaim` of `v1`.

use kubewright_table as table;

use crate::rules::{self, Rules, warnings};
use crate::{Behaviour, BuiltIn, Counted, Plugin, Subresource};

/// All that is known of it.
pub static PERSISTENT_VOLUME_CLAIM: BuiltIn = BuiltIn {
    short_names: &["pvc"],
    subresources: &[Subresource::Status],
    columns: table::storage::CLAIMS,
    rules: Rules { warn: warnings::storage::of_claim, ..rules::storage::claims::rules() },
    behaviour: Behaviour { deletion_answers_object: true, ..Behaviour::BUILT_IN },
    counted: Counted::Claims,
    plugins: &[
        Plugin::LimitRanger,
        Plugin::DefaultStorageClass,
        Plugin::StorageObjectInUseProtection,
        Plugin::PersistentVolumeClaimResize,
    ],
    finalizer_in_use: Some("kubernetes.io/pvc-protection"),
    ..BuiltIn::namespaced("io.k8s.api.core.v1.PersistentVolumeClaim", "/persistentvolumeclaims")
};
