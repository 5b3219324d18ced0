//! The trust bundle of the signer of the API server's certificate: pods may mount it
//! (`pkg/controller/certificates/clustertrustbundlepublisher`).

use std::fmt::Write;

use futures::stream;
use kube::api::DeleteParams;
use kubewright_runtime::{Context, Controller, Error, Key, Outcome, Reconciler};
use ring::digest::{SHA256, digest};

use crate::newer_kinds::{BundleSpec, ClusterTrustBundle};

const SIGNER: &str = "kubernetes.io/kube-apiserver-serving";
/// When to look again where nobody serves the kind.
const UNSERVED: std::time::Duration = std::time::Duration::from_secs(30);

/// The controller; `ca` are the certificates in PEM.
pub(crate) fn controller(ca: impl Into<String>) -> Controller {
    let ca = ca.into();
    let wanted = Key::cluster_scoped(bundle_name(&ca));
    let only = wanted.clone();
    Controller::new("kube-apiserver-serving-clustertrustbundle-publisher-controller", Publisher { ca })
        .watches(move |_: &ClusterTrustBundle| vec![only.clone()])
        .selecting(&format!("spec.signerName={SIGNER}"))
        .optional()
        .source(stream::once(std::future::ready(wanted)))
}

struct Publisher {
    ca: String,
}

impl Reconciler for Publisher {
    async fn reconcile(&self, ctx: &Context, _: &Key) -> Result<Outcome, Error> {
        if self.ca.is_empty() {
            return Ok(Outcome::Done);
        }
        let Plan { write, delete } = plan(&self.ca, &ctx.list::<ClusterTrustBundle>(None));
        match write {
            Some(bundle) if bundle.metadata.resource_version.is_some() => drop(ctx.update(&bundle).await?),
            Some(bundle) => match ctx.create(&bundle).await {
                Err(error) if error.is_not_found() => return Ok(Outcome::RequeueAfter(UNSERVED)),
                created => drop(created?),
            },
            None => {}
        }
        for key in &delete {
            ctx.delete::<ClusterTrustBundle>(key, DeleteParams::default()).await?;
        }
        Ok(Outcome::Done)
    }
}

/// What there is to do.
#[derive(Debug, Default, PartialEq)]
struct Plan {
    /// The right bundle, where it is not there as it should be.
    write: Option<ClusterTrustBundle>,
    /// What the signer had before.
    delete: Vec<Key>,
}

/// That of the signer's bundles one is left, which holds these certificates.
fn plan(ca: &str, bundles: &[impl AsRef<ClusterTrustBundle>]) -> Plan {
    let name = bundle_name(ca);
    let of_signer = || bundles.iter().map(AsRef::as_ref).filter(|bundle| bundle.spec.signer_name == SIGNER);
    let is_right = |bundle: &&ClusterTrustBundle| bundle.metadata.name.as_ref() == Some(&name);
    let found = of_signer().find(is_right);
    let mut right = found.cloned().unwrap_or_default();
    right.metadata.name = Some(name.clone());
    right.spec = BundleSpec { signer_name: SIGNER.to_owned(), trust_bundle: ca.to_owned() };
    Plan {
        write: (found != Some(&right)).then_some(right),
        delete: of_signer().filter(|bundle| !is_right(bundle)).map(Key::of).collect(),
    }
}

/// The signer, and the beginning of a hash of the certificates.
fn bundle_name(ca: &str) -> String {
    let hash = digest(&SHA256, ca.as_bytes());
    let start = format!("{}:", SIGNER.replace('/', ":"));
    hash.as_ref().iter().take(12).fold(start, |mut name, byte| {
        let _ = write!(name, "{byte:02x}");
        name
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn bundle(name: &str, signer: &str, ca: &str) -> Arc<ClusterTrustBundle> {
        let mut bundle = ClusterTrustBundle::default();
        bundle.metadata.name = Some(name.to_owned());
        bundle.spec = BundleSpec { signer_name: signer.to_owned(), trust_bundle: ca.to_owned() };
        Arc::new(bundle)
    }

    #[test]
    fn one_bundle_is_left_and_holds_the_certificates() {
        let name = bundle_name("PEM");
        assert_eq!(name, "kubernetes.io:kube-apiserver-serving:384fb9a44fabe158be2757b9");
        let right = bundle(&name, SIGNER, "PEM");
        let wanted = Some(ClusterTrustBundle::clone(&right));
        assert_eq!(
            plan("PEM", &[] as &[Arc<ClusterTrustBundle>]),
            Plan { write: wanted.clone(), delete: vec![] }
        );
        assert_eq!(plan("PEM", &[Arc::clone(&right)]), Plan::default());
        assert_eq!(plan("PEM", &[bundle(&name, SIGNER, "other")]).write, wanted);
        let old = bundle("kubernetes.io:kube-apiserver-serving:old", SIGNER, "old");
        let foreign = bundle("a.b:c:d", "a.b/c", "x");
        assert_eq!(plan("PEM", &[right, old.clone(), foreign]).delete, [Key::of(&*old)]);
    }
}
