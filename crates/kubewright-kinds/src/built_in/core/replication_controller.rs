//! The kind `ReplicationController` of `v1`.

use kubewright_spec::Version;
use kubewright_table as table;

use crate::rules::declared::{Declared, Mistake};
use crate::rules::{self, Rules, warnings};
use crate::selector::{Field, Fields};
use crate::{Behaviour, BuiltIn, Counted, Plugin, Subresource};

/// What its types declare from v1.37 on.
const DECLARED: &[Declared] = &[("spec.replicas", Mistake::Other), ("spec.minReadySeconds", Mistake::Other)];

/// All that is known of it.
pub static REPLICATION_CONTROLLER: BuiltIn = BuiltIn {
    short_names: &["rc"],
    categories: &["all"],
    subresources: &[Subresource::Scale, Subresource::Status],
    columns: table::workloads::REPLICATION_CONTROLLERS,
    rules: Rules { warn: warnings::of_replication_controller, ..rules::apps::replication_controllers() },
    behaviour: Behaviour { orphans_by_default: true, ..Behaviour::BUILT_IN },
    fields: Fields::of(&[Field { default: "0", ..Field::of("status.replicas") }]),
    counted: Counted::Aliased,
    plugins: &[Plugin::PodSecurity],
    storage_prefix: Some("controllers"),
    since: &[(Version::V1_37, |kind| kind.rules.declared = DECLARED)],
    ..BuiltIn::namespaced("io.k8s.api.core.v1.ReplicationController", "/replicationcontrollers")
};
