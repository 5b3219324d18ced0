//! The kind `ServiceCIDR` of `networking.k8s.io/v1`.

use kubewright_table as table;

use crate::rules;
use crate::{BuiltIn, LeftAlone, Subresource};

/// All that is known of it.
pub static SERVICE_CIDR: BuiltIn = BuiltIn {
    subresources: &[Subresource::Status],
    columns: table::network::SERVICE_CIDRS,
    rules: rules::networking::service_cidrs(),
    left_alone: LeftAlone { status: &[&["spec"], &["metadata"]], ..LeftAlone::BUILT_IN },
    ..BuiltIn::cluster_scoped("io.k8s.api.networking.v1.ServiceCIDR", "networking.k8s.io/servicecidrs")
};
