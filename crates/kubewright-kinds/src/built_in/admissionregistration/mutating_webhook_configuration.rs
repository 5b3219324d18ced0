//! The kind `MutatingWebhookConfiguration` of `admissionregistration.k8s.io/v1`.

use kubewright_table as table;

use crate::rules;
use crate::{Behaviour, BuiltIn, Role};

/// All that is known of it.
pub static MUTATING_WEBHOOK_CONFIGURATION: BuiltIn = BuiltIn {
    categories: &["api-extensions"],
    columns: table::admission::WEBHOOKS,
    rules: rules::admission::mutating_webhooks(),
    behaviour: Behaviour {
        role: Role::WebhookConfiguration,
        conditional_update: true,
        metadata_of_status_writes: &[],
        ..Behaviour::BUILT_IN
    },
    ..BuiltIn::cluster_scoped(
        "io.k8s.api.admissionregistration.v1.MutatingWebhookConfiguration",
        "admissionregistration.k8s.io/mutatingwebhookconfigurations",
    )
};
