//! The kind `ReplicaSet` of `apps/v1`.

use kubewright_table as table;

use crate::rules::{self, Rules, warnings};
use crate::{BuiltIn, Plugin, Subresource};

/// All that is known of it.
pub static REPLICA_SET: BuiltIn = BuiltIn {
    short_names: &["rs"],
    categories: &["all"],
    subresources: &[Subresource::Scale, Subresource::Status],
    columns: table::workloads::REPLICA_SETS,
    rules: Rules { warn: warnings::of_named_template, ..rules::apps::replica_sets() },
    plugins: &[Plugin::PodSecurity],
    ..BuiltIn::namespaced("io.k8s.api.apps.v1.ReplicaSet", "apps/replicasets")
};
