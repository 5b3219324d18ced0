//! Approves the client certificates of kubelets, if who asks may have them (`approver/sarapprove.go`).

use k8s_openapi::api::authorization::v1::{ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec};
use kube::Api;
use kube::api::PostParams;
use kubewright_runtime::{Context, Controller, Error, Key, Outcome, Reconciler};
use kubewright_serve::authority::CertificateRequest;

use super::{APPROVED, Condition, Csr, DENIED, KUBELET_CLIENT, has, issued, kubelet, read, usages};

/// The controller.
pub(crate) fn controller() -> Controller {
    Controller::new("certificatesigningrequest-approving-controller", Approver).for_kind::<Csr>()
}

struct Approver;

impl Reconciler for Approver {
    async fn reconcile(&self, ctx: &Context, key: &Key) -> Result<Outcome, Error> {
        let Some(csr) = ctx.get::<Csr>(key) else { return Ok(Outcome::Done) };
        if !issued(&csr).is_empty() || has(&csr, APPROVED) || has(&csr, DENIED) {
            return Ok(Outcome::Done);
        }
        let permissions = recognize(&csr, &read(&csr)?);
        for permission in permissions {
            if is_allowed(ctx, &csr, permission).await? {
                return approve(ctx, &csr, permission).await;
            }
        }
        if permissions.is_empty() {
            return Ok(Outcome::Done);
        }
        let tried: Vec<_> = permissions.iter().map(|permission| permission.subresource).collect();
        let tried = tried.join(" ");
        let why =
            format!("recognized csr {:?} as [{tried}] but subject access review was not approved", key.name);
        Err(Error::new(why))
    }
}

/// What somebody needs the right to create, as a subresource of CertificateSigningRequests, to have it approved.
#[derive(Debug, PartialEq)]
struct Permission {
    subresource: &'static str,
    message: &'static str,
}

/// In the order in which they are tried.
const PERMISSIONS: [Permission; 2] = [
    Permission {
        subresource: "selfnodeclient",
        message: "Auto approving self kubelet client certificate after SubjectAccessReview.",
    },
    Permission {
        subresource: "nodeclient",
        message: "Auto approving kubelet client certificate after SubjectAccessReview.",
    },
];

/// Which of them each does: for the kubelet's own certificate both, for another's the second, for all else none.
fn recognize(csr: &Csr, request: &CertificateRequest) -> &'static [Permission] {
    let of_kubelet =
        csr.spec.signer_name == KUBELET_CLIENT && kubelet::check_client(request, usages(csr)).is_ok();
    match (of_kubelet, csr.spec.username.as_deref() == Some(request.common_name())) {
        (true, true) => &PERMISSIONS,
        (true, false) => &PERMISSIONS[1..],
        (false, _) => &[],
    }
}

async fn is_allowed(ctx: &Context, csr: &Csr, permission: &Permission) -> Result<bool, Error> {
    let asked = csr.spec.clone();
    let review = SubjectAccessReview {
        spec: SubjectAccessReviewSpec {
            user: asked.username,
            uid: asked.uid,
            groups: asked.groups,
            extra: asked.extra,
            resource_attributes: Some(ResourceAttributes {
                group: Some("certificates.k8s.io".into()),
                resource: Some("certificatesigningrequests".into()),
                verb: Some("create".into()),
                subresource: Some(permission.subresource.into()),
                version: Some("*".into()),
                ..ResourceAttributes::default()
            }),
            ..SubjectAccessReviewSpec::default()
        },
        ..SubjectAccessReview::default()
    };
    let reviews = Api::<SubjectAccessReview>::all(ctx.client().clone());
    let answer = reviews.create(&PostParams::default(), &review).await?;
    Ok(answer.status.is_some_and(|status| status.allowed))
}

async fn approve(ctx: &Context, csr: &Csr, permission: &Permission) -> Result<Outcome, Error> {
    let requests = Api::<Csr>::all(ctx.client().clone());
    let name = csr.metadata.name.as_deref().unwrap_or_default();
    let _: Csr = requests
        .replace_subresource("approval", name, &PostParams::default(), &approved(csr, permission))
        .await?;
    Ok(Outcome::Done)
}

fn approved(csr: &Csr, permission: &Permission) -> Csr {
    let mut csr = csr.clone();
    let conditions = csr.status.get_or_insert_default().conditions.get_or_insert_default();
    conditions.push(Condition {
        type_: APPROVED.into(),
        status: "True".into(),
        reason: Some("AutoApproved".into()),
        message: Some(permission.message.into()),
        ..Condition::default()
    });
    csr
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::tests::{csr, pem};
    use super::*;

    fn tried(signer: &str, organization: &str, name: &str) -> Vec<&'static str> {
        let pem = pem(organization, name, &[]);
        let csr = csr(signer, &pem, &["digital signature", "client auth"], &json!({}));
        let found = recognize(&csr, &read(&csr).expect("a request"));
        found.iter().map(|permission| permission.subresource).collect()
    }

    #[test]
    fn who_asks_for_his_own_certificate_may_be_allowed_that_alone() {
        let both = tried(KUBELET_CLIENT, "system:nodes", "system:node:a");
        assert_eq!(both, ["selfnodeclient", "nodeclient"]);
        assert_eq!(tried(KUBELET_CLIENT, "system:nodes", "system:node:b"), ["nodeclient"]);
    }

    #[test]
    fn what_is_no_client_certificate_of_a_kubelet_is_not_approved() {
        assert!(tried(KUBELET_CLIENT, "team", "system:node:a").is_empty());
        assert!(tried("example.com/mine", "system:nodes", "system:node:a").is_empty());
    }

    #[test]
    fn an_approval_leaves_other_conditions_as_they_are() {
        let status = json!({"conditions": [{"type": "Other", "status": "True"}]});
        let csr = approved(&csr("a.b/c", "", &[], &status), &PERMISSIONS[1]);
        let kinds: Vec<_> = super::super::conditions(&csr).iter().map(|one| one.type_.as_str()).collect();
        assert_eq!(kinds, ["Other", "Approved"]);
    }
}
