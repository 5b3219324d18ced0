//! The kind `Lease` of `coordination.k8s.io/v1`.

use k8s_openapi::api::coordination::v1::Lease;

use crate::kinds::rules;
use crate::kinds::{Behaviour, BuiltIn};
use crate::table;

/// All that is known of it.
pub static LEASE: BuiltIn = BuiltIn {
    columns: table::cluster::LEASES,
    rules: rules::coordination::leases(),
    behaviour: Behaviour { create_on_update: true, conditional_update: true, ..Behaviour::BUILT_IN },
    ..BuiltIn::of::<Lease>()
};
