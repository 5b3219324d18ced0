//! The kind `ServiceAccount` of `v1`.

use k8s_openapi::api::core::v1::ServiceAccount;

use crate::kinds::rules::{self, Rules, warnings};
use crate::kinds::{Behaviour, BuiltIn, Subresource};
use crate::table;

/// All that is known of it.
pub static SERVICE_ACCOUNT: BuiltIn = BuiltIn {
    short_names: &["sa"],
    subresources: &[Subresource::Token],
    columns: table::config::SERVICE_ACCOUNTS,
    rules: Rules { warn: warnings::of_service_account, ..rules::coordination::service_accounts() },
    behaviour: Behaviour { deletion_answers_object: true, ..Behaviour::BUILT_IN },
    ..BuiltIn::of::<ServiceAccount>()
};
