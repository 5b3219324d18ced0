//! The kind `CertificateSigningRequest` of `certificates.k8s.io/v1`.

use kubewright_table as table;

use crate::rules;
use crate::selector::{Field, Fields};
use crate::{Behaviour, BuiltIn, LeftAlone, Plugin, Role, Subresource};

/// All that is known of it.
pub static CERTIFICATE_SIGNING_REQUEST: BuiltIn = BuiltIn {
    short_names: &["csr"],
    subresources: &[Subresource::Approval, Subresource::Status],
    columns: table::cluster::SIGNING_REQUESTS,
    rules: rules::certificates::signing_requests(),
    behaviour: Behaviour { role: Role::SigningRequest, ..Behaviour::BUILT_IN },
    left_alone: LeftAlone {
        main: &[&["spec"]],
        status: &[&["spec"], &["status", "conditions"]],
        approval: &[&["spec"], &["status", "certificate"]],
        ..LeftAlone::BUILT_IN
    },
    fields: Fields::of(&[Field::of("spec.signerName")]),
    plugins: &[
        Plugin::CertificateApproval,
        Plugin::CertificateSigning,
        Plugin::CertificateSubjectRestriction,
    ],
    ..BuiltIn::cluster_scoped(
        "io.k8s.api.certificates.v1.CertificateSigningRequest",
        "certificates.k8s.io/certificatesigningrequests",
    )
};
