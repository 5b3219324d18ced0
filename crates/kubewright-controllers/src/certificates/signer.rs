//! Signs what is approved for one of Kubernetes' own signers (`signer/signer.go`).

use std::fmt::Display;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use k8s_openapi::ByteString;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kubewright_runtime::{Context, Controller, Error, Event, Key, Outcome, Predicate, Reconciler, World};
use kubewright_serve::authority::{Authority, CertificateRequest};

use super::usages::purposes;
use super::{
    APPROVED, Condition, Csr, DENIED, FAILED, KUBELET_CLIENT, conditions, has, issued, kubelet, read, usages,
};

/// How long a certificate is good, and the least that somebody gets who asks for less.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 3600);
const SHORTEST: Duration = Duration::from_secs(10 * 60);

/// The controller, with the authority that the API server trusts. Without one it makes its own when it first has something
/// to sign: where there is no endpoint, there is nobody to show a certificate to.
pub(crate) fn controller(authority: Option<&Arc<Authority>>) -> Controller {
    let signer = Signing { authority: authority.cloned().map_or_else(OnceLock::new, OnceLock::from) };
    Controller::new("certificatesigningrequest-signing-controller", signer)
        .for_kind::<Csr>()
        .predicate(Predicate::of(|event: &Event<'_, Csr>| signer_of(event.object()).is_some()))
}

struct Signing {
    authority: OnceLock<Arc<Authority>>,
}

impl Signing {
    fn authority(&self, world: &World) -> Result<&Authority, Error> {
        if let Some(known) = self.authority.get() {
            return Ok(known);
        }
        let made = Arc::new(Authority::new(world).map_err(Error::new)?);
        Ok(self.authority.get_or_init(|| made))
    }
}

impl Reconciler for Signing {
    async fn reconcile(&self, ctx: &Context, key: &Key) -> Result<Outcome, Error> {
        let Some(csr) = ctx.get::<Csr>(key) else { return Ok(Outcome::Done) };
        let Some(signer) = signer_of(&csr).filter(|_| is_due(&csr)) else { return Ok(Outcome::Done) };
        let request = read(&csr)?;
        let mut csr = Csr::clone(&csr);
        match signer.check(&request, usages(&csr)) {
            Ok(()) => {
                let failed = |why: &dyn Display| Error::new(format!("error auto signing csr: {why}"));
                let purposes = purposes(usages(&csr)).map_err(|why| failed(&why))?;
                let ttl = lifetime(csr.spec.expiration_seconds);
                let signed = self.authority(ctx.world())?.sign(&request, purposes, ttl);
                let certificate = signed.map_err(|error| failed(&error))?;
                csr.status.get_or_insert_default().certificate = Some(ByteString(certificate.into_bytes()));
            }
            Err(why) => {
                let now = ctx.world().clock.now();
                let failed = csr.status.get_or_insert_default().conditions.get_or_insert_default();
                failed.push(Condition {
                    type_: FAILED.into(),
                    status: "True".into(),
                    reason: Some("SignerValidationFailure".into()),
                    message: Some(why),
                    last_update_time: Some(Time(now)),
                    ..Condition::default()
                });
            }
        }
        ctx.update_status(&csr).await?;
        Ok(Outcome::Done)
    }
}

/// Approved, and neither signed nor refused yet.
fn is_due(csr: &Csr) -> bool {
    let has_failed =
        |condition: &Condition| condition.type_ == FAILED && matches!(condition.status.as_str(), "" | "True");
    has(csr, APPROVED)
        && !has(csr, DENIED)
        && !conditions(csr).iter().any(has_failed)
        && issued(csr).is_empty()
}

/// Kubernetes' own signers.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Signer {
    KubeletServing,
    KubeletClient,
    Client,
    LegacyUnknown,
}

fn signer_of(csr: &Csr) -> Option<Signer> {
    match csr.spec.signer_name.as_str() {
        "kubernetes.io/kubelet-serving" => Some(Signer::KubeletServing),
        KUBELET_CLIENT => Some(Signer::KubeletClient),
        "kubernetes.io/kube-apiserver-client" => Some(Signer::Client),
        "kubernetes.io/legacy-unknown" => Some(Signer::LegacyUnknown),
        _ => None,
    }
}

impl Signer {
    /// Why it does not sign such a request.
    fn check(self, request: &CertificateRequest, usages: &[String]) -> Result<(), String> {
        match self {
            Self::KubeletServing => kubelet::check_serving(request, usages),
            Self::KubeletClient => kubelet::check_client(request, usages),
            Self::Client => check_client_usages(usages),
            Self::LegacyUnknown => Ok(()),
        }
    }
}

fn check_client_usages(usages: &[String]) -> Result<(), String> {
    let allowed = ["client auth", "digital signature", "key encipherment"];
    if let Some(other) = usages.iter().find(|usage| !allowed.contains(&usage.as_str())) {
        return Err(format!("invalid usage for client certificate: {other}"));
    }
    if usages.iter().any(|usage| usage == "client auth") {
        return Ok(());
    }
    Err("missing required usage for client certificate: client auth".to_owned())
}

fn lifetime(asked: Option<i32>) -> Duration {
    let seconds = asked.map(|seconds| u64::try_from(seconds).unwrap_or_default());
    seconds.map_or(LONGEST, |seconds| Duration::from_secs(seconds).clamp(SHORTEST, LONGEST))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::tests::{csr, strings};
    use super::*;

    #[test]
    fn clients_get_the_usages_of_clients() {
        let check = |usages: &[&str]| check_client_usages(&strings(usages));
        assert_eq!(check(&["digital signature", "client auth"]), Ok(()));
        let wrong = "invalid usage for client certificate: server auth";
        assert_eq!(check(&["client auth", "server auth"]), Err(wrong.to_owned()));
        let missing = "missing required usage for client certificate: client auth";
        assert_eq!(check(&["digital signature"]), Err(missing.to_owned()));
    }

    #[test]
    fn a_request_is_signed_once_it_is_approved_and_only_once() {
        let due = |status: &Value| is_due(&csr("a.b/c", "", &[], status));
        let with = |kinds: &[&str]| {
            let conditions = kinds.iter().map(|kind| json!({"type": kind, "status": "True"}));
            json!({"conditions": conditions.collect::<Vec<_>>()})
        };
        assert!(due(&with(&["Approved"])));
        for kinds in [&[][..], &["Denied"], &["Approved", "Denied"], &["Approved", "Failed"]] {
            assert!(!due(&with(kinds)), "{kinds:?}");
        }
        assert!(!due(
            &json!({"conditions": [{"type": "Approved", "status": "True"}], "certificate": "eA=="})
        ));
    }

    #[test]
    fn only_kubernetes_own_signers_are_played() {
        let signer = |name: &str| signer_of(&csr(name, "", &[], &json!({})));
        assert_eq!(signer("kubernetes.io/kube-apiserver-client"), Some(Signer::Client));
        assert_eq!(signer("kubernetes.io/legacy-unknown"), Some(Signer::LegacyUnknown));
        assert_eq!(signer("example.com/mine"), None);
    }

    #[test]
    fn a_certificate_is_good_for_as_long_as_asked_within_bounds() {
        let minutes = |asked| lifetime(asked).as_secs() / 60;
        assert_eq!(
            [Some(60), Some(-1), Some(3600), Some(i32::MAX), None].map(minutes),
            [10, 10, 60, 525_600, 525_600]
        );
    }
}
