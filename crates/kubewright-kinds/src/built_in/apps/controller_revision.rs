//! The kind `ControllerRevision` of `apps/v1`.

use kubewright_table as table;

use crate::BuiltIn;
use crate::rules;

/// All that is known of it.
pub static CONTROLLER_REVISION: BuiltIn = BuiltIn {
    columns: table::workloads::CONTROLLER_REVISIONS,
    rules: rules::apps::controller_revisions(),
    ..BuiltIn::namespaced("io.k8s.api.apps.v1.ControllerRevision", "apps/controllerrevisions")
};
