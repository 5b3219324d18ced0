//! The kind `PriorityClass` of `scheduling.k8s.io/v1`.

use k8s_openapi::api::scheduling::v1::PriorityClass;

use crate::kinds::rules;
use crate::kinds::{BuiltIn, Plugin};
use crate::table;

/// All that is known of it.
pub static PRIORITY_CLASS: BuiltIn = BuiltIn {
    short_names: &["pc"],
    columns: table::cluster::PRIORITY_CLASSES,
    rules: rules::coordination::priority_classes(),
    plugins: &[Plugin::Priority],
    ..BuiltIn::of::<PriorityClass>()
};
