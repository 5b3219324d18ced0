//! The kind `Ingress` of `networking.k8s.io/v1`.

use k8s_openapi::api::networking::v1::Ingress;
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
    ..BuiltIn::of::<Ingress>()
};
