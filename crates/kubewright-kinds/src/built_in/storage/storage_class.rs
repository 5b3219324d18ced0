//! The kind `StorageClass` of `storage.k8s.io/v1`.

use kubewright_spec::Version;
use kubewright_table as table;

use crate::rules::declared::{Declared, Mistake};
use crate::rules::{self, Rules, warnings};
use crate::{Behaviour, BuiltIn};

/// What its types declare from v1.37 on.
const DECLARED: &[Declared] = &[
    ("provisioner", Mistake::Required),
    ("provisioner", Mistake::Immutable),
    ("parameters", Mistake::Immutable),
    ("reclaimPolicy", Mistake::Immutable),
    ("volumeBindingMode", Mistake::Immutable),
];

/// All that is known of it.
pub static STORAGE_CLASS: BuiltIn = BuiltIn {
    short_names: &["sc"],
    columns: table::storage::CLASSES,
    rules: Rules { warn: warnings::storage::of_class, ..rules::storage::classes() },
    behaviour: Behaviour { deletion_answers_object: true, ..Behaviour::BUILT_IN },
    since: &[(Version::V1_37, |kind| kind.rules.declared = DECLARED)],
    ..BuiltIn::cluster_scoped("io.k8s.api.storage.v1.StorageClass", "storage.k8s.io/storageclasses")
};
