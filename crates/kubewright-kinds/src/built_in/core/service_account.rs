//! The kind `ServiceAccount` of `v1`.

use kubewright_meta::rules::fill;
use kubewright_table as table;
use serde_json::Value;

use crate::rules::{Again, Rules, warnings};
use crate::{Behaviour, BuiltIn, Subresource};

/// All that is known of it.
pub static SERVICE_ACCOUNT: BuiltIn = BuiltIn {
    short_names: &["sa"],
    subresources: &[Subresource::Token],
    columns: table::config::SERVICE_ACCOUNTS,
    rules: Rules { warn: warnings::of_service_account, ..RULES },
    behaviour: Behaviour { deletion_answers_object: true, ..Behaviour::BUILT_IN },
    ..BuiltIn::namespaced("io.k8s.api.core.v1.ServiceAccount", "/serviceaccounts")
};

/// The rules of service accounts, which are all metadata.
const RULES: Rules = Rules {
    again: Again::Metadata,
    prepare_create: keep_names_of_secrets,
    prepare_update: |account, _| keep_names_of_secrets(account),
    ..Rules::none()
};

/// Of the secrets only the names are kept.
fn keep_names_of_secrets(account: &mut Value) {
    fill::each(account, "secrets", |secret| {
        if let Some(fields) = secret.as_object_mut() {
            fields.retain(|field, _| field == "name");
        }
    });
}
