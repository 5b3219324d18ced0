//! The kind `Secret` of `v1`.

use kubewright_table as table;

use crate::rules::{self, Rules, warnings};
use crate::selector::{Field, Fields};
use crate::{BuiltIn, Counted};

/// All that is known of it.
pub static SECRET: BuiltIn = BuiltIn {
    columns: table::config::SECRETS,
    rules: Rules { warn: warnings::of_secret, ..rules::config::secrets() },
    fields: Fields::of(&[Field::of("type")]),
    counted: Counted::Aliased,
    ..BuiltIn::namespaced("io.k8s.api.core.v1.Secret", "/secrets")
};
