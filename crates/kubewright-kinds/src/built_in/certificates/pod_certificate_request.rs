//! The kind `PodCertificateRequest` of `certificates.k8s.io/v1`, since v1.37.

use kubewright_table as table;

use crate::rules;
use crate::selector::{Field, Fields};
use crate::{Behaviour, BuiltIn, LeftAlone, Role, Subresource};

/// All that is known of it.
pub static POD_CERTIFICATE_REQUEST: BuiltIn = BuiltIn {
    subresources: &[Subresource::Status],
    columns: table::certificates::POD_REQUESTS,
    rules: rules::pod_certificates::rules(),
    behaviour: Behaviour {
        role: Role::PodCertificateRequest,
        conditional_update: true,
        metadata_of_status_writes: &[],
        ..Behaviour::BUILT_IN
    },
    left_alone: LeftAlone { status: &[&["spec"], &["metadata"]], ..LeftAlone::BUILT_IN },
    fields: Fields::of(&[
        Field::of("spec.signerName"),
        Field::of("spec.podName"),
        Field::of("spec.nodeName"),
    ]),
    ..BuiltIn::namespaced(
        "io.k8s.api.certificates.v1.PodCertificateRequest",
        "certificates.k8s.io/podcertificaterequests",
    )
};
