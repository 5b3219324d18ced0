//! The kind `Deployment` of `apps/v1`.

use kubewright_table as table;

use crate::rules::{self, Rules, warnings};
use crate::{Behaviour, BuiltIn, LeftAlone, Plugin, Subresource};

/// All that is known of it.
pub static DEPLOYMENT: BuiltIn = BuiltIn {
    short_names: &["deploy"],
    categories: &["all"],
    subresources: &[Subresource::Scale, Subresource::Status],
    columns: table::workloads::DEPLOYMENTS,
    rules: Rules { warn: warnings::of_named_template, ..rules::apps::deployments() },
    behaviour: Behaviour {
        metadata_of_status_writes: &["annotations", "finalizers", "ownerReferences"],
        ..Behaviour::BUILT_IN
    },
    left_alone: LeftAlone { status: &[&["spec"], &["metadata", "labels"]], ..LeftAlone::BUILT_IN },
    plugins: &[Plugin::PodSecurity],
    ..BuiltIn::namespaced("io.k8s.api.apps.v1.Deployment", "apps/deployments")
};
