//! The kind `RoleBinding` of `rbac.authorization.k8s.io/v1`.

use kubewright_spec::Version;
use kubewright_table as table;

use crate::rules;
use crate::rules::declared::{Declared, Mistake};
use crate::{Behaviour, BuiltIn};

/// What its types declare from v1.37 on.
const DECLARED: &[Declared] = &[("subjects[*].name", Mistake::Required), ("roleRef.name", Mistake::Required)];

/// All that is known of it.
pub static ROLE_BINDING: BuiltIn = BuiltIn {
    columns: table::rbac::BINDINGS,
    rules: rules::rbac::role_bindings(),
    behaviour: Behaviour { create_on_update: true, ..Behaviour::BUILT_IN },
    since: &[(Version::V1_37, |kind| kind.rules.declared = DECLARED)],
    ..BuiltIn::namespaced("io.k8s.api.rbac.v1.RoleBinding", "rbac.authorization.k8s.io/rolebindings")
};
