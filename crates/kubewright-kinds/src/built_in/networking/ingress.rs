//! The kind `Ingress` of `networking.k8s.io/v1`.

use kubewright_table as table;

use crate::rules::{self, Rules, warnings};
use crate::{BuiltIn, Plugin, Subresource};

/// All that is known of it.
pub static INGRESS: BuiltIn = BuiltIn {
    short_names: &["ing"],
    subresources: &[Subresource::Status],
    columns: table::network::INGRESSES,
    rules: Rules { warn: warnings::of_ingress, ..rules::networking::ingresses() },
    plugins: &[Plugin::DefaultIngressClass],
    storage_prefix: Some("ingress"),
    ..BuiltIn::namespaced("io.k8s.api.networking.v1.Ingress", "networking.k8s.io/ingresses")
};
