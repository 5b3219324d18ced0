//! The kind `DeviceClass` of `resource.k8s.io/v1`.

use kubewright_table as table;

use crate::rules;
use crate::{Behaviour, BuiltIn};

/// All that is known of it.
pub static DEVICE_CLASS: BuiltIn = BuiltIn {
    columns: table::devices::NAMED,
    rules: rules::devices::classes(),
    behaviour: Behaviour { deletion_answers_object: true, ..Behaviour::BUILT_IN },
    ..BuiltIn::cluster_scoped("io.k8s.api.resource.v1.DeviceClass", "resource.k8s.io/deviceclasses")
};
