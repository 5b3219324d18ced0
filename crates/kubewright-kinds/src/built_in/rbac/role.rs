//! The kind `Role` of `rbac.authorization.k8s.io/v1`.

use kubewright_spec::Version;

use crate::rules;
use crate::rules::declared::{Declared, Mistake};
use crate::{Behaviour, BuiltIn};

/// What its types declare from v1.37 on.
const DECLARED: &[Declared] = &[("rules[*].verbs", Mistake::Required)];

/// All that is known of it.
pub static ROLE: BuiltIn = BuiltIn {
    rules: rules::rbac::roles(),
    behaviour: Behaviour { create_on_update: true, ..Behaviour::BUILT_IN },
    since: &[(Version::V1_37, |kind| kind.rules.declared = DECLARED)],
    ..BuiltIn::namespaced("io.k8s.api.rbac.v1.Role", "rbac.authorization.k8s.io/roles")
};
