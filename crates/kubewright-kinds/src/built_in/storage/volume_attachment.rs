//! The kind `VolumeAttachment` of `storage.k8s.io/v1`.

use kubewright_spec::Version;
use kubewright_table as table;

use crate::rules;
use crate::rules::declared::{Declared, Mistake};
use crate::{Behaviour, BuiltIn, LeftAlone, Subresource};

/// What its types declare from v1.37 on.
const DECLARED: &[Declared] =
    &[("spec", Mistake::Immutable), ("spec.attacher", Mistake::Required), ("spec.attacher", Mistake::Other)];

/// All that is known of it.
pub static VOLUME_ATTACHMENT: BuiltIn = BuiltIn {
    subresources: &[Subresource::Status],
    columns: table::storage::ATTACHMENTS,
    rules: rules::storage::attachments(),
    behaviour: Behaviour {
        conditional_update: true,
        metadata_of_status_writes: &[],
        deletion_answers_object: true,
        ..Behaviour::BUILT_IN
    },
    left_alone: LeftAlone { status: &[&["spec"], &["metadata"]], ..LeftAlone::BUILT_IN },
    since: &[(Version::V1_37, |kind| kind.rules.declared = DECLARED)],
    ..BuiltIn::cluster_scoped("io.k8s.api.storage.v1.VolumeAttachment", "storage.k8s.io/volumeattachments")
};
