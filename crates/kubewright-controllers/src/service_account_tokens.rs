//! The token controller: Secrets of the type `kubernetes.io/service-account-token` hold a token of the account that they
//! name, and go with it (`pkg/controller/serviceaccount/tokens_controller.go`).

use std::sync::Arc;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{Secret, ServiceAccount};
use kube::Api;
use kube::api::{DeleteParams, Preconditions};
use kubewright_identity::authn::{KeyError, ServiceAccounts};
use kubewright_runtime::{Context, Controller, Error, Event, Key, Outcome, Predicate, Reconciler};

/// The only Secrets that it looks at.
use crate::secrets::{TYPED, is_account_token};

const ACCOUNT_NAME: &str = "kubernetes.io/service-account.name";
const ACCOUNT_UID: &str = "kubernetes.io/service-account.uid";

const CA: &str = "ca.crt";
const NAMESPACE: &str = "namespace";
const TOKEN: &str = "token";

/// The controllers; `ca` are the certificates in PEM by which pods know the API server, `accounts` makes the tokens.
pub(crate) fn controllers(ca: &str, accounts: &Arc<ServiceAccounts>) -> Vec<Controller> {
    let tokens = Tokens { ca: ca.to_owned(), accounts: Arc::clone(accounts) };
    let of_accounts = Controller::new("serviceaccount-token-controller", tokens)
        .for_kind::<ServiceAccount>()
        .watches(|secret: &Secret| account_key(secret).into_iter().collect())
        .selecting(TYPED);
    let references = Controller::new("serviceaccount-token-references", References)
        .watches(|secret: &Secret| Reference::of(secret).map(reference_key).into_iter().collect())
        .selecting(TYPED)
        .predicate(Predicate::of(|event: &Event<'_, Secret>| matches!(event, Event::Delete(_))))
        .reads::<ServiceAccount>();
    vec![of_accounts, references]
}

fn annotation<'a>(secret: &'a Secret, name: &str) -> &'a str {
    let annotations = secret.metadata.annotations.as_ref();
    annotations.and_then(|annotations| annotations.get(name)).map_or("", String::as_str)
}

/// The account that a Secret names.
fn account_key(secret: &Secret) -> Option<Key> {
    let name = annotation(secret, ACCOUNT_NAME);
    (is_account_token(secret) && !name.is_empty())
        .then(|| Key::namespaced(secret.metadata.namespace.as_deref().unwrap_or_default(), name))
}

/// Keeps the tokens of one account.
struct Tokens {
    ca: String,
    accounts: Arc<ServiceAccounts>,
}

impl Reconciler for Tokens {
    async fn reconcile(&self, ctx: &Context, key: &Key) -> Result<Outcome, Error> {
        let secrets = ctx.list::<Secret>(key.namespace.as_deref());
        let secrets = secrets.into_iter().filter(|secret| account_key(secret).as_ref() == Some(key));
        let mut account = ctx.get::<ServiceAccount>(key);
        let mut is_newest = false;
        for secret in secrets {
            if !belongs(&secret, account.as_deref()) && !is_newest {
                // The Secret may have come here before its account.
                account = newest(ctx, key).await?.map(Arc::new);
                is_newest = true;
            }
            let account = account.as_deref().filter(|account| belongs(&secret, Some(account)));
            let written = match self.plan(&secret, account).map_err(Error::new)? {
                Step::Settled => continue,
                Step::Delete => delete(ctx, &secret).await,
                Step::Update(filled) => ctx.update(&*filled).await.map(|_| ()),
            };
            match written {
                // Somebody was faster, which will be told.
                Err(error) if error.is_conflict() || error.is_not_found() => {}
                written => written?,
            }
        }
        Ok(Outcome::Done)
    }
}

/// Whether the account is that one which the Secret names.
fn belongs(secret: &Secret, account: Option<&ServiceAccount>) -> bool {
    let uid = annotation(secret, ACCOUNT_UID);
    account.is_some_and(|account| uid.is_empty() || account.metadata.uid.as_deref() == Some(uid))
}

async fn newest(ctx: &Context, key: &Key) -> Result<Option<ServiceAccount>, Error> {
    let namespace = key.namespace.as_deref().unwrap_or_default();
    Ok(Api::<ServiceAccount>::namespaced(ctx.client().clone(), namespace).get_opt(&key.name).await?)
}

async fn delete(ctx: &Context, secret: &Secret) -> Result<(), Error> {
    let preconditions = Preconditions { uid: secret.metadata.uid.clone(), resource_version: None };
    let params = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() };
    ctx.delete::<Secret>(&Key::of(secret), params).await.map(|_| ())
}

/// What to do with a Secret.
#[derive(Debug, PartialEq)]
enum Step {
    Settled,
    Delete,
    Update(Box<Secret>),
}

impl Tokens {
    /// Fills in what the Secret lacks; one whose account is not there goes.
    fn plan(&self, secret: &Secret, account: Option<&ServiceAccount>) -> Result<Step, KeyError> {
        let Some(account) = account else { return Ok(Step::Delete) };
        let held = |entry: &str| {
            secret.data.as_ref().and_then(|data| data.get(entry)).map_or(&[][..], |held| &held.0)
        };
        let lacks_ca = !self.ca.is_empty() && held(CA) != self.ca.as_bytes();
        let (lacks_namespace, lacks_token) = (held(NAMESPACE).is_empty(), held(TOKEN).is_empty());
        if !lacks_ca && !lacks_namespace && !lacks_token {
            return Ok(Step::Settled);
        }
        let mut filled = secret.clone();
        let namespace = secret.metadata.namespace.as_deref().unwrap_or_default();
        let name = account.metadata.name.as_deref().unwrap_or_default();
        let uid = account.metadata.uid.as_deref().unwrap_or_default();
        let data = filled.data.get_or_insert_default();
        if lacks_ca {
            data.insert(CA.into(), ByteString(self.ca.clone().into_bytes()));
        }
        if lacks_namespace {
            data.insert(NAMESPACE.into(), ByteString(namespace.as_bytes().to_vec()));
        }
        if lacks_token {
            let own_name = secret.metadata.name.as_deref().unwrap_or_default();
            let token = self.accounts.legacy_token(namespace, (name, uid), own_name)?;
            data.insert(TOKEN.into(), ByteString(token.into_bytes()));
        }
        let annotations = filled.metadata.annotations.get_or_insert_default();
        annotations.insert(ACCOUNT_NAME.into(), name.into());
        annotations.insert(ACCOUNT_UID.into(), uid.into());
        Ok(Step::Update(Box::new(filled)))
    }
}

/// Takes Secrets that are gone out of the lists of their accounts.
struct References;

impl Reconciler for References {
    async fn reconcile(&self, ctx: &Context, key: &Key) -> Result<Outcome, Error> {
        let Some(gone) = Reference::read(key) else { return Ok(Outcome::Done) };
        let namespace = key.namespace.as_deref().unwrap_or_default();
        let Some(account) = ctx.get::<ServiceAccount>(&Key::namespaced(namespace, gone.account)) else {
            return Ok(Outcome::Done);
        };
        let Some(shorter) = gone.taken_from(&account) else { return Ok(Outcome::Done) };
        match ctx.update(&shorter).await {
            Err(error) if error.is_not_found() => Ok(Outcome::Done),
            written => written.map(|_| Outcome::Done),
        }
    }
}

/// A Secret that is gone, of an account: none of the parts has a slash in it, so that they make up the name of a key.
struct Reference<'a> {
    account: &'a str,
    /// Empty when the Secret did not say it.
    uid: &'a str,
    secret: &'a str,
}

fn reference_key((namespace, reference): (&str, Reference<'_>)) -> Key {
    let Reference { account, uid, secret } = reference;
    Key::namespaced(namespace, format!("{account}/{uid}/{secret}"))
}

impl<'a> Reference<'a> {
    /// With its namespace.
    fn of(secret: &'a Secret) -> Option<(&'a str, Self)> {
        let account = annotation(secret, ACCOUNT_NAME);
        let name = secret.metadata.name.as_deref()?;
        let namespace = secret.metadata.namespace.as_deref()?;
        let reference = Self { account, uid: annotation(secret, ACCOUNT_UID), secret: name };
        (is_account_token(secret) && !account.is_empty()).then_some((namespace, reference))
    }

    fn read(key: &'a Key) -> Option<Self> {
        let mut parts = key.name.splitn(3, '/');
        Some(Self { account: parts.next()?, uid: parts.next()?, secret: parts.next()? })
    }

    /// The account without the reference; `None` when it has none, or is another one.
    fn taken_from(&self, account: &ServiceAccount) -> Option<ServiceAccount> {
        let is_other = !self.uid.is_empty() && account.metadata.uid.as_deref() != Some(self.uid);
        let is_it = |name: Option<&String>| name.is_some_and(|name| name == self.secret);
        let mut shorter = account.clone();
        let secrets = shorter.secrets.as_mut()?;
        let before = secrets.len();
        secrets.retain(|secret| !is_it(secret.name.as_ref()));
        (!is_other && secrets.len() < before).then_some(shorter)
    }
}

#[cfg(test)]
mod tests {
    use kubewright_identity::authn::TokenKey;
    use serde_json::{Value, json};

    use super::*;

    fn tokens() -> Tokens {
        let accounts = ServiceAccounts::new(TokenKey::generate().expect("a key"));
        Tokens { ca: "PEM".into(), accounts: Arc::new(accounts) }
    }

    fn account(uid: &str) -> ServiceAccount {
        kubewright_objects::from_value(json!({"metadata": {"name": "bot", "namespace": "ns", "uid": uid},
            "secrets": [{"name": "a"}, {"name": "bot-token"}]}))
        .expect("an account")
    }

    fn secret(annotations: &Value) -> Secret {
        kubewright_objects::from_value(json!({"type": "kubernetes.io/service-account-token",
            "metadata": {"name": "bot-token", "namespace": "ns", "uid": "s", "annotations": annotations}}))
        .expect("a Secret")
    }

    fn filled(tokens: &Tokens, secret: &Secret) -> Secret {
        match tokens.plan(secret, Some(&account("1"))).expect("a key") {
            Step::Update(filled) => *filled,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_secret_gets_the_token_of_its_account_once() {
        let tokens = tokens();
        let right = filled(&tokens, &secret(&json!({ACCOUNT_NAME: "bot"})));
        let data = right.data.clone().expect("data");
        assert_eq!((&data[CA].0[..], &data[NAMESPACE].0[..]), (&b"PEM"[..], &b"ns"[..]));
        assert_eq!(String::from_utf8_lossy(&data[TOKEN].0).split('.').count(), 3);
        assert_eq!(annotation(&right, ACCOUNT_UID), "1");
        assert_eq!(tokens.plan(&right, Some(&account("1"))), Ok(Step::Settled));
    }

    #[test]
    fn what_somebody_spoilt_is_put_right_and_the_rest_stays() {
        let tokens = tokens();
        let right = filled(&tokens, &secret(&json!({ACCOUNT_NAME: "bot"})));
        let mut spoilt = right.clone();
        let data = spoilt.data.get_or_insert_default();
        data.insert(CA.into(), ByteString(b"other".to_vec()));
        data.remove(NAMESPACE);
        assert_eq!(filled(&tokens, &spoilt), right);
        spoilt.data.get_or_insert_default().insert(TOKEN.into(), ByteString(Vec::new()));
        assert_ne!(filled(&tokens, &spoilt).data.expect("data")[TOKEN].0, b"");
    }

    #[test]
    fn a_secret_goes_with_the_account_that_it_was_made_for() {
        let of_first = secret(&json!({ACCOUNT_NAME: "bot", ACCOUNT_UID: "1"}));
        assert!(belongs(&of_first, Some(&account("1"))));
        assert!(!belongs(&of_first, Some(&account("2"))) && !belongs(&of_first, None));
        assert!(belongs(&secret(&json!({ACCOUNT_NAME: "bot"})), Some(&account("2"))));
        assert_eq!(tokens().plan(&of_first, None), Ok(Step::Delete));
    }

    #[test]
    fn a_secret_that_is_gone_is_taken_out_of_its_own_account() {
        let of_first = secret(&json!({ACCOUNT_NAME: "bot", ACCOUNT_UID: "1"}));
        let key = Reference::of(&of_first).map(reference_key).expect("a key");
        let gone = Reference::read(&key).expect("a reference");
        let shorter = gone.taken_from(&account("1")).expect("it was there");
        assert_eq!(shorter.secrets.iter().flatten().count(), 1);
        assert!(gone.taken_from(&account("2")).is_none() && gone.taken_from(&shorter).is_none());
    }
}
