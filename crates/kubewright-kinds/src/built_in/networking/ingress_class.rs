//! The kind `IngressClass` of `networking.k8s.io/v1`.

use kubewright_table as table;

use crate::BuiltIn;
use crate::rules;

/// All that is known of it.
pub static INGRESS_CLASS: BuiltIn = BuiltIn {
    columns: table::network::INGRESS_CLASSES,
    rules: rules::networking::ingress_classes(),
    ..BuiltIn::cluster_scoped("io.k8s.api.networking.v1.IngressClass", "networking.k8s.io/ingressclasses")
};
