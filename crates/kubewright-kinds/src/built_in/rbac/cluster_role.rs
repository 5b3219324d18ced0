//! The kind `ClusterRole` of `rbac.authorization.k8s.io/v1`.

use kubewright_spec::Version;

use crate::rules;
use crate::rules::declared::{Declared, Mistake};
use crate::{Behaviour, BuiltIn};

/// What its types declare from v1.37 on.
const DECLARED: &[Declared] = &[("rules[*].verbs", Mistake::Required)];

/// All that is known of it.
pub static CLUSTER_ROLE: BuiltIn = BuiltIn {
    rules: rules::rbac::cluster_roles(),
    behaviour: Behaviour { create_on_update: true, ..Behaviour::BUILT_IN },
    since: &[(Version::V1_37, |kind| kind.rules.declared = DECLARED)],
    ..BuiltIn::cluster_scoped("io.k8s.api.rbac.v1.ClusterRole", "rbac.authorization.k8s.io/clusterroles")
};
