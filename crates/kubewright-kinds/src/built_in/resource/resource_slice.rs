//! The kind `ResourceSlice` of `resource.k8s.io/v1`.

use kubewright_spec::Version;
use kubewright_table as table;

use crate::rules;
use crate::selector::{Field, Fields, Refusal};
use crate::{Behaviour, BuiltIn};

/// All that is known of it.
pub static RESOURCE_SLICE: BuiltIn = BuiltIn {
    columns: table::devices::SLICES,
    rules: rules::devices::slices(),
    behaviour: Behaviour { deletion_answers_object: true, ..Behaviour::BUILT_IN },
    fields: Fields {
        own: &[
            Field::of("spec.nodeName"),
            Field::of("spec.driver"),
            Field { since: Version::V1_37, ..Field::of("spec.pool.name") },
        ],
        refusal: Refusal::UnsupportedForType("resource.k8s.io/v1, Kind=ResourceSlice"),
    },
    ..BuiltIn::cluster_scoped("io.k8s.api.resource.v1.ResourceSlice", "resource.k8s.io/resourceslices")
};
