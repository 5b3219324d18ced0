//! The kind `ClusterTrustBundle` of `certificates.k8s.io/v1`, since v1.37.

use kubewright_table as table;

use crate::rules;
use crate::selector::{Field, Fields};
use crate::{Behaviour, BuiltIn, Plugin};

/// All that is known of it.
pub static CLUSTER_TRUST_BUNDLE: BuiltIn = BuiltIn {
    columns: table::certificates::TRUST_BUNDLES,
    rules: rules::trust_bundles::rules(),
    behaviour: Behaviour { conditional_update: true, ..Behaviour::BUILT_IN },
    fields: Fields::of(&[Field::of("spec.signerName")]),
    plugins: &[Plugin::ClusterTrustBundleAttest],
    ..BuiltIn::cluster_scoped(
        "io.k8s.api.certificates.v1.ClusterTrustBundle",
        "certificates.k8s.io/clustertrustbundles",
    )
};
