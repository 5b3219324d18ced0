//! The kind `CSINode` of `storage.k8s.io/v1`.

use kubewright_spec::Version;
use kubewright_table as table;

use crate::rules::{self, Again};
use crate::{Behaviour, BuiltIn};

/// All that is known of it.
pub static CSI_NODE: BuiltIn = BuiltIn {
    columns: table::storage::CSI_NODES,
    rules: rules::storage::nodes(),
    behaviour: Behaviour { conditional_update: true, deletion_answers_object: true, ..Behaviour::BUILT_IN },
    since: &[(Version::V1_36, |kind| kind.rules.again = Again::Metadata)],
    ..BuiltIn::cluster_scoped("io.k8s.api.storage.v1.CSINode", "storage.k8s.io/csinodes")
};
