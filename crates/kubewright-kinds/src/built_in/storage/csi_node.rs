//! The kind `CSINode` of `storage.k8s.io/v1`.

use kubewright_spec::Version;
use kubewright_table as table;

use crate::rules::{self, Again};
use crate::{Behaviour, BuiltIn, LeftAlone, Subresource};

/// All that is known of it.
pub static CSI_NODE: BuiltIn = BuiltIn {
    // Since v1.37.
    subresources: &[Subresource::Status],
    columns: table::storage::CSI_NODES,
    rules: rules::storage::nodes(),
    behaviour: Behaviour {
        // Its rules empty it: in older versions there is none.
        born_with_status: true,
        conditional_update: true,
        metadata_of_status_writes: &[],
        deletion_answers_object: true,
        ..Behaviour::BUILT_IN
    },
    left_alone: LeftAlone { status: &[&["spec"], &["metadata"]], ..LeftAlone::BUILT_IN },
    since: &[(Version::V1_36, |kind| {
        kind.rules.again = Again::Metadata;
        kind.rules.change_again = false;
    })],
    ..BuiltIn::cluster_scoped("io.k8s.api.storage.v1.CSINode", "storage.k8s.io/csinodes")
};
