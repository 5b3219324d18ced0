//! The kind `DaemonSet` of `apps/v1`.

use k8s_openapi::api::apps::v1::DaemonSet;

use crate::kinds::rules::{self, Rules, warnings};
use crate::kinds::{BuiltIn, Plugin, Subresource};
use crate::table;

/// All that is known of it.
pub static DAEMON_SET: BuiltIn = BuiltIn {
    short_names: &["ds"],
    categories: &["all"],
    subresources: &[Subresource::Status],
    columns: table::workloads::DAEMON_SETS,
    rules: Rules { warn: warnings::of_spec_template, ..rules::apps::daemon_sets() },
    plugins: &[Plugin::PodSecurity],
    ..BuiltIn::of::<DaemonSet>()
};
