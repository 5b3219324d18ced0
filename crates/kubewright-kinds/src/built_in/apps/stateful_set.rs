//! The kind `StatefulSet` of `apps/v1`.

use kubewright_table as table;

use crate::rules::{self, Rules, warnings};
use crate::{BuiltIn, Plugin, Subresource};

/// All that is known of it.
pub static STATEFUL_SET: BuiltIn = BuiltIn {
    short_names: &["sts"],
    categories: &["all"],
    subresources: &[Subresource::Scale, Subresource::Status],
    columns: table::workloads::STATEFUL_SETS,
    rules: Rules { warn: warnings::of_stateful_set, ..rules::apps::stateful_sets() },
    plugins: &[Plugin::PodSecurity],
    ..BuiltIn::namespaced("io.k8s.api.apps.v1.StatefulSet", "apps/statefulsets")
};
