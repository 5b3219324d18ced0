//! The kind `ResourceQuota` of `v1`.

use kubewright_table as table;

use crate::rules;
use crate::{Behaviour, BuiltIn, Counted, Subresource};

/// All that is known of it.
pub static RESOURCE_QUOTA: BuiltIn = BuiltIn {
    short_names: &["quota"],
    subresources: &[Subresource::Status],
    columns: table::config::RESOURCE_QUOTAS,
    rules: rules::limits::quotas(),
    behaviour: Behaviour { deletion_answers_object: true, ..Behaviour::BUILT_IN },
    counted: Counted::Aliased,
    ..BuiltIn::namespaced("io.k8s.api.core.v1.ResourceQuota", "/resourcequotas")
};
