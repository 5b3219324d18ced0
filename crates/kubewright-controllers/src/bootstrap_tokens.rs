//! Tokens by which machines join a cluster: expired ones go, and who holds a good one can check what
//! `kube-public/cluster-info` says (`pkg/controller/bootstrap`, `tokencleaner.go` and `bootstrapsigner.go`).

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{DeleteParams, Preconditions};
use kubewright_identity::authn::bootstrap_token::{
    Expiry, NAME_PREFIX, NAMESPACE, SECRET_TYPE, detached_signature, parse,
};
use kubewright_runtime::{Context, Controller, Error, Key, Outcome, Reconciler};

use crate::secrets::TYPED;

/// What is signed, and where.
const INFO_NAMESPACE: &str = "kube-public";
const INFO: &str = "cluster-info";
const SIGNED: &str = "kubeconfig";
/// A signature stands under this and the id of its token.
const SIGNATURE_PREFIX: &str = "jws-kubeconfig-";

/// The controller that deletes expired tokens.
pub(crate) fn cleaner() -> Controller {
    Controller::new("token-cleaner-controller", Cleaner).for_kind::<Secret>().selecting(TYPED)
}

/// The controller that signs.
pub(crate) fn signer() -> Controller {
    Controller::new("bootstrap-signer-controller", Signer)
        .watches(|info: &ConfigMap| {
            let (namespace, name) = (info.metadata.namespace.as_deref(), info.metadata.name.as_deref());
            if (namespace, name) == (Some(INFO_NAMESPACE), Some(INFO)) {
                vec![info_key()]
            } else {
                Vec::new()
            }
        })
        .watches(|secret: &Secret| if is_token(secret) { vec![info_key()] } else { Vec::new() })
        .selecting(TYPED)
}

fn info_key() -> Key {
    Key::namespaced(INFO_NAMESPACE, INFO)
}

fn is_token(secret: &Secret) -> bool {
    secret.type_.as_deref() == Some(SECRET_TYPE) && secret.metadata.namespace.as_deref() == Some(NAMESPACE)
}

/// A field of a Secret; empty when it is not there.
fn field(secret: &Secret, name: &str) -> String {
    let bytes = secret.data.as_ref().and_then(|data| data.get(name));
    bytes.map(|bytes| String::from_utf8_lossy(&bytes.0).into_owned()).unwrap_or_default()
}

struct Cleaner;

impl Reconciler for Cleaner {
    async fn reconcile(&self, ctx: &Context, key: &Key) -> Result<Outcome, Error> {
        let secret = ctx.get::<Secret>(key).filter(|secret| is_token(secret));
        let Some(secret) = secret else { return Ok(Outcome::Done) };
        let now = ctx.world().clock.now();
        match Expiry::read(&field(&secret, "expiration")) {
            Expiry::Never => Ok(Outcome::Done),
            Expiry::At(end) if end > now => {
                Ok(Outcome::RequeueAfter(Duration::try_from(end.duration_since(now)).unwrap_or_default()))
            }
            Expiry::At(_) | Expiry::Unreadable => {
                let preconditions =
                    Preconditions { uid: secret.metadata.uid.clone(), resource_version: None };
                let params = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() };
                match ctx.delete::<Secret>(key, params).await {
                    Err(error) if error.is_not_found() || error.is_conflict() => Ok(Outcome::Done),
                    deleted => deleted.map(|_| Outcome::Done),
                }
            }
        }
    }
}

struct Signer;

impl Reconciler for Signer {
    async fn reconcile(&self, ctx: &Context, key: &Key) -> Result<Outcome, Error> {
        let Some(info) = ctx.get::<ConfigMap>(key) else { return Ok(Outcome::Done) };
        let now = ctx.world().clock.now();
        let secrets = ctx.list::<Secret>(Some(NAMESPACE));
        let good = secrets.iter().filter(|secret| is_token(secret));
        let good = good.filter(|secret| !Expiry::read(&field(secret, "expiration")).has_passed(now));
        let tokens: BTreeMap<String, String> = good.filter_map(|secret| signing_token(secret)).collect();
        let Some(data) = signed(info.data.as_ref(), &tokens) else { return Ok(Outcome::Done) };
        match ctx.update(&ConfigMap { data: Some(data), ..(*info).clone() }).await {
            Err(error) if error.is_not_found() || error.is_conflict() => Ok(Outcome::Done),
            written => written.map(|_| Outcome::Done),
        }
    }
}

/// The id and the secret of a token that is meant for signatures (`validateSecretForSigning` in `util.go`).
fn signing_token(secret: &Secret) -> Option<(String, String)> {
    let (id, token) = (field(secret, "token-id"), field(secret, "token-secret"));
    let is_named =
        secret.metadata.name.as_deref().and_then(|name| name.strip_prefix(NAME_PREFIX)) == Some(&id);
    let is_well_formed = !token.is_empty() && parse(&format!("{id}.0000000000000000")).is_some();
    let is_meant = field(secret, "usage-bootstrap-signing") == "true";
    (is_named && is_well_formed && is_meant).then_some((id, token))
}

/// The data with the signatures of these tokens and of no others; `None` when it is as it should be, or has nothing that
/// is signed.
fn signed(
    data: Option<&BTreeMap<String, String>>,
    tokens: &BTreeMap<String, String>,
) -> Option<BTreeMap<String, String>> {
    let data = data?;
    let text = data.get(SIGNED)?;
    let mut wanted = data.clone();
    wanted.retain(|key, _| !key.starts_with(SIGNATURE_PREFIX));
    wanted.extend(
        tokens
            .iter()
            .map(|(id, secret)| (format!("{SIGNATURE_PREFIX}{id}"), detached_signature(text, id, secret))),
    );
    (wanted != *data).then_some(wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn each_good_token_has_a_signature_and_no_other_does() {
        let tokens = texts(&[("aaaaaa", "1"), ("bbbbbb", "2")]);
        let info = texts(&[(SIGNED, "text"), ("jws-kubeconfig-cccccc", "old"), ("other", "stays")]);
        let wanted = signed(Some(&info), &tokens).expect("a change");
        let keys: Vec<&str> = wanted.keys().map(String::as_str).collect();
        assert_eq!(keys, ["jws-kubeconfig-aaaaaa", "jws-kubeconfig-bbbbbb", SIGNED, "other"]);
        assert_eq!(signed(Some(&wanted), &tokens), None);
        assert_ne!(wanted["jws-kubeconfig-aaaaaa"], wanted["jws-kubeconfig-bbbbbb"]);
    }

    #[test]
    fn without_a_text_nothing_is_signed() {
        assert_eq!(signed(None, &texts(&[("aaaaaa", "1")])), None);
        assert_eq!(signed(Some(&texts(&[("x", "y")])), &texts(&[("aaaaaa", "1")])), None);
    }
}
