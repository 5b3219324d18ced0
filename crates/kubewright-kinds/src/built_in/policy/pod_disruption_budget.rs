//! The kind `PodDisruptionBudget` of `policy/v1`.

use kubewright_table as table;

use crate::rules;
use crate::{Behaviour, BuiltIn, Subresource};

/// All that is known of it.
pub static POD_DISRUPTION_BUDGET: BuiltIn = BuiltIn {
    short_names: &["pdb"],
    subresources: &[Subresource::Status],
    columns: table::scaling::DISRUPTION_BUDGETS,
    rules: rules::policy::budgets(),
    behaviour: Behaviour { conditional_update: true, ..Behaviour::BUILT_IN },
    ..BuiltIn::namespaced("io.k8s.api.policy.v1.PodDisruptionBudget", "policy/poddisruptionbudgets")
};
