//! The kind `RuntimeClass` of `node.k8s.io/v1`.

use k8s_openapi::api::node::v1::RuntimeClass;

use crate::kinds::rules::{self, Rules, warnings};
use crate::kinds::{Behaviour, BuiltIn};
use crate::table;

/// All that is known of it.
pub static RUNTIME_CLASS: BuiltIn = BuiltIn {
    columns: table::cluster::RUNTIME_CLASSES,
    rules: Rules { warn: warnings::of_runtime_class, ..rules::coordination::runtime_classes() },
    behaviour: Behaviour { create_on_update: true, conditional_update: true, ..Behaviour::BUILT_IN },
    ..BuiltIn::of::<RuntimeClass>()
};
