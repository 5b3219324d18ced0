//! Who may do what for the signer of a certificate (`k8s.io/kubernetes/pkg/certauthorization`).

use kubewright_identity::authz::Attributes;
use serde_json::Value;

use super::Review;

/// The signer that a request names.
pub(in crate::admission) fn signer_of(request: &Value) -> &str {
    request["spec"]["signerName"].as_str().unwrap_or_default()
}

/// Whether the user may do this for the signer: for it alone, or for all of its domain
/// (`IsAuthorizedForSignerName`).
pub(in crate::admission) fn is_authorized(review: &Review<'_>, verb: &str, signer: &str) -> bool {
    let rights = review.objects.rights();
    let domain = format!("{}/*", signer.split('/').next().unwrap_or_default());
    [signer, domain.as_str()].into_iter().any(|name| {
        let what = Attributes {
            verb,
            group: "certificates.k8s.io",
            version: "*",
            resource: "signers",
            name,
            ..Attributes::default()
        };
        rights.authorize(review.call.user, &what).allowed()
    })
}
