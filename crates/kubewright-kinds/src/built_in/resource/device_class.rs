//! The kind `DeviceClass` of `resource.k8s.io/v1`.

use kubewright_meta::rules::metadata::NameRule;
use kubewright_spec::Version;
use kubewright_table as table;

use crate::rules;
use crate::rules::declared::{Declared, Mistake};
use crate::{Behaviour, BuiltIn};

/// What is checked by declaration from v1.37 on.
const DECLARED: &[Declared] = &[
    ("spec.selectors", Mistake::Other),
    ("spec.config", Mistake::Other),
    ("spec.config[*].opaque.driver", Mistake::Required),
    ("spec.config[*].opaque.driver", Mistake::Other),
    ("spec.extendedResourceName", Mistake::Other),
];

/// All that is known of it.
pub static DEVICE_CLASS: BuiltIn = BuiltIn {
    columns: table::devices::NAMED,
    rules: rules::devices::classes(),
    since: &[
        (Version::V1_36, |kind| kind.rules.name = NameRule::LongName),
        (Version::V1_37, |kind| kind.rules.declared = DECLARED),
    ],
    behaviour: Behaviour { deletion_answers_object: true, ..Behaviour::BUILT_IN },
    ..BuiltIn::cluster_scoped("io.k8s.api.resource.v1.DeviceClass", "resource.k8s.io/deviceclasses")
};
