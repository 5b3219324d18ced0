//! The kind `DaemonSet` of `apps/v1`.

use kubewright_table as table;

use crate::rules::{self, Rules, warnings};
use crate::{Behaviour, BuiltIn, Plugin, Subresource};

/// All that is known of it.
pub static DAEMON_SET: BuiltIn = BuiltIn {
    short_names: &["ds"],
    categories: &["all"],
    subresources: &[Subresource::Status],
    columns: table::workloads::DAEMON_SETS,
    rules: Rules { warn: warnings::of_spec_template, ..rules::apps::daemon_sets() },
    behaviour: Behaviour {
        annotations_of_version: &[rules::apps::TEMPLATE_GENERATION],
        ..Behaviour::BUILT_IN
    },
    plugins: &[Plugin::PodSecurity],
    ..BuiltIn::namespaced("io.k8s.api.apps.v1.DaemonSet", "apps/daemonsets")
};
