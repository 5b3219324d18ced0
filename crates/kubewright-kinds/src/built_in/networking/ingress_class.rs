//! The kind `IngressClass` of `networking.k8s.io/v1`.

use kubewright_spec::Version;
use kubewright_table as table;

use crate::BuiltIn;
use crate::rules;
use crate::rules::declared::{Declared, Mistake};

/// What its types declare from v1.37 on.
const DECLARED: &[Declared] =
    &[("spec.parameters.kind", Mistake::Required), ("spec.parameters.name", Mistake::Required)];

/// All that is known of it.
pub static INGRESS_CLASS: BuiltIn = BuiltIn {
    columns: table::network::INGRESS_CLASSES,
    rules: rules::networking::ingress_classes(),
    since: &[(Version::V1_37, |kind| kind.rules.declared = DECLARED)],
    ..BuiltIn::cluster_scoped("io.k8s.api.networking.v1.IngressClass", "networking.k8s.io/ingressclasses")
};
