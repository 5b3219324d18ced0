//! The kind `ResourceSlice` of `resource.k8s.io/v1`.

use kubewright_spec::Version;
use kubewright_table as table;

use crate::rules;
use crate::rules::declared::{Declared, Mistake};
use crate::selector::{Field, Fields, Refusal};
use crate::{Behaviour, BuiltIn};

/// What is checked by declaration from v1.37 on.
const DECLARED: &[Declared] = &[
    ("spec.devices[*].consumesCounters", Mistake::Other),
    ("spec.devices[*].consumesCounters", Mistake::Duplicate("resource/v1.DeviceCounterConsumption")),
    ("spec.devices[*].consumesCounters[*].counterSet", Mistake::Required),
    ("spec.devices[*].consumesCounters[*].counterSet", Mistake::Other),
    ("spec.devices[*].consumesCounters[*].counters", Mistake::Required),
    ("spec.devices[*].consumesCounters[*].counters", Mistake::Form),
    ("spec.devices[*].taints[*].effect", Mistake::Required),
    ("spec.devices[*].taints[*].effect", Mistake::Other),
    ("spec.sharedCounters", Mistake::Other),
    ("spec.sharedCounters", Mistake::Duplicate("resource/v1.CounterSet")),
    ("spec.sharedCounters[*].name", Mistake::Required),
    ("spec.sharedCounters[*].name", Mistake::Other),
    ("spec.sharedCounters[*].counters", Mistake::Required),
    ("spec.sharedCounters[*].counters", Mistake::Form),
];

/// All that is known of it.
pub static RESOURCE_SLICE: BuiltIn = BuiltIn {
    columns: table::devices::SLICES,
    rules: rules::devices::slices(),
    since: &[(Version::V1_37, |kind| kind.rules.declared = DECLARED)],
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
