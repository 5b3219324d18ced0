//! CertificateApproval, CertificateSigning and CertificateSubjectRestriction: who may approve and sign for a signer,
//! and what a signer never signs (`k8s.io/kubernetes/plugin/pkg/admission/certificates`).

use kubewright_identity::authz::Attributes;
use kubewright_kinds::Role;
use kubewright_kinds::rules::certificates::organizations;
use kubewright_meta::{ApiError, object};
use serde_json::Value;

use super::refusal::forbidden;
use super::{Operation, Review};

const GROUP: &str = "certificates.k8s.io";
const CLIENT_SIGNER: &str = "kubernetes.io/kube-apiserver-client";

/// Fills in what only the server knows of a decision: that it was made, and when. Not before everybody else has changed the
/// request: the controllers believe it (`k8s.io/kubernetes/pkg/registry/certificates/certificates`, which does it in its
/// strategies).
pub(super) fn complete(review: &Review<'_>, request: &mut Value) {
    let Some(old) = review.old.filter(|_| review.call.kind.behaviour.role == Role::SigningRequest) else {
        return;
    };
    if review.subresource == "status" {
        keep_decisions(request, old);
    }
    if matches!(review.subresource, "status" | "approval") {
        stamp(request, old, &object::time(review.registry.world().clock.now()));
    }
}

/// A write to the status does not decide: approvals and denials stay as they are.
fn keep_decisions(request: &mut Value, old: &Value) {
    for kind in ["Approved", "Denied"] {
        let of = |request: &Value| -> Vec<Value> {
            let conditions = request["status"]["conditions"].as_array().into_iter().flatten();
            conditions.filter(|condition| condition["type"] == kind).cloned().collect()
        };
        let before = of(old);
        if before.len() != of(request).len() {
            continue;
        }
        let mut before = before.into_iter();
        let Some(Value::Array(conditions)) = request["status"].get_mut("conditions") else { continue };
        for condition in conditions.iter_mut().filter(|condition| condition["type"] == kind) {
            if let Some(before) = before.next() {
                *condition = before;
            }
        }
    }
}

/// Conditions say when they were set, and since when they have their status.
fn stamp(request: &mut Value, old: &Value, now: &Value) {
    let before = old["status"]["conditions"].as_array().map_or(&[][..], Vec::as_slice);
    let Some(Value::Array(conditions)) = request["status"].get_mut("conditions") else { return };
    for condition in conditions.iter_mut().filter(|condition| condition.is_object()) {
        if !condition["lastUpdateTime"].is_string() {
            condition["lastUpdateTime"] = now.clone();
        }
        if !condition["lastTransitionTime"].is_string() {
            let same =
                |one: &&Value| one["type"] == condition["type"] && one["status"] == condition["status"];
            let since = before
                .iter()
                .find(same)
                .map(|one| &one["lastTransitionTime"])
                .filter(|time| time.is_string());
            condition["lastTransitionTime"] = since.unwrap_or(now).clone();
        }
    }
}

/// Asks whether an approval is its writer's to make.
///
/// # Errors
/// 403.
pub(super) fn validate_approval(review: &Review<'_>, request: &Value) -> Result<(), ApiError> {
    let ("approval", Operation::Update, Some(old)) = (review.subresource, review.operation, review.old)
    else {
        return Ok(());
    };
    let signer = signer_of(old);
    if is_authorized(review, "approve", signer) {
        return Ok(());
    }
    let why = format!("user not permitted to approve requests with signerName {signer:?}");
    Err(forbidden(review, request, &why))
}

/// Asks whether a signature is its writer's to make.
///
/// # Errors
/// 403.
pub(super) fn validate_signing(review: &Review<'_>, request: &Value) -> Result<(), ApiError> {
    let ("status", Operation::Update, Some(old)) = (review.subresource, review.operation, review.old) else {
        return Ok(());
    };
    let signer = signer_of(old);
    let signed = ["certificate", "conditions"]
        .iter()
        .any(|field| request["status"].get(field) != old["status"].get(field));
    if !signed || is_authorized(review, "sign", signer) {
        return Ok(());
    }
    let why = format!("user not permitted to sign requests with signerName {signer:?}");
    Err(forbidden(review, request, &why))
}

fn signer_of(request: &Value) -> &str {
    request["spec"]["signerName"].as_str().unwrap_or_default()
}

/// Whether the user may do this for the signer: for it alone, or for all of its domain
/// (`pkg/certauthorization`, `IsAuthorizedForSignerName`).
fn is_authorized(review: &Review<'_>, verb: &str, signer: &str) -> bool {
    let rights = review.registry.authorizer().rights(&review.registry.snapshot());
    let domain = format!("{}/*", signer.split('/').next().unwrap_or_default());
    [signer, domain.as_str()].into_iter().any(|name| {
        let what = Attributes {
            verb,
            group: GROUP,
            version: "*",
            resource: "signers",
            name,
            ..Attributes::default()
        };
        rights.authorize(review.call.user, &what).allowed()
    })
}

/// Nobody becomes a member of `system:masters` by a certificate of the cluster's.
///
/// # Errors
/// 403.
pub(super) fn validate_subject(review: &Review<'_>, request: &Value) -> Result<(), ApiError> {
    if signer_of(request) != CLIENT_SIGNER {
        return Ok(());
    }
    match organizations(request["spec"]["request"].as_str().unwrap_or_default()) {
        Ok(groups) if groups.iter().any(|group| group == "system:masters") => {
            let why = format!("use of {CLIENT_SIGNER} signer with system:masters group is not allowed");
            Err(forbidden(review, request, &why))
        }
        Ok(_) => Ok(()),
        Err(why) => Err(forbidden(review, request, &format!("failed to parse CSR: {why}"))),
    }
}
