//! The kind `ConfigMap` of `v1`.

use kubewright_table as table;

use crate::rules;
use crate::{BuiltIn, Counted};

/// All that is known of it.
pub static CONFIG_MAP: BuiltIn = BuiltIn {
    short_names: &["cm"],
    columns: table::config::CONFIG_MAPS,
    rules: rules::config::config_maps(),
    counted: Counted::Aliased,
    ..BuiltIn::namespaced("io.k8s.api.core.v1.ConfigMap", "/configmaps")
};
