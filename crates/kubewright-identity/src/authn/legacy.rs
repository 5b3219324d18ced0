//! What the token in a Secret of the type `kubernetes.io/service-account-token` says, and whether it still holds
//! (`k8s.io/kubernetes/pkg/serviceaccount/legacy.go`).

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use subtle::ConstantTimeEq as _;

use super::usage::UsageAt;
use super::user::{User, service_account_name};
use super::{Lookup, TokenError, read};

/// Who issues such tokens, whoever issues others.
pub(super) const ISSUER: &str = "kubernetes/serviceaccount";

/// On a Secret whose token is not good any more.
const INVALID_SINCE: &str = "kubernetes.io/legacy-token-invalid-since";

/// The claims of a token.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct LegacyClaims {
    iss: String,
    #[serde(rename = "kubernetes.io/serviceaccount/namespace")]
    namespace: String,
    #[serde(rename = "kubernetes.io/serviceaccount/secret.name")]
    secret: String,
    #[serde(rename = "kubernetes.io/serviceaccount/service-account.name")]
    account: String,
    #[serde(rename = "kubernetes.io/serviceaccount/service-account.uid")]
    uid: String,
    sub: String,
}

#[derive(Deserialize)]
struct StoredAccount {
    metadata: Metadata,
}

#[derive(Deserialize)]
struct StoredSecret {
    metadata: Metadata,
    #[serde(default)]
    data: BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    uid: String,
    deletion_timestamp: Option<Timestamp>,
    #[serde(default)]
    labels: BTreeMap<String, String>,
}

impl LegacyClaims {
    pub(super) fn new(namespace: &str, (account, uid): (&str, &str), secret: &str) -> Self {
        Self {
            iss: ISSUER.to_owned(),
            namespace: namespace.to_owned(),
            secret: secret.to_owned(),
            account: account.to_owned(),
            uid: uid.to_owned(),
            sub: service_account_name(namespace, account),
        }
    }

    /// The user that these claims, of this token, speak for.
    ///
    /// # Errors
    /// When they are not complete, the Secret does not hold the token any more, or the account is gone or another one.
    pub(super) fn user(
        &self,
        token: &str,
        lookup: Lookup<'_>,
        usage: &UsageAt<'_>,
    ) -> Result<User, TokenError> {
        self.check(token, lookup, usage).map_err(TokenError::Legacy)?;
        Ok(User::service_account(&self.namespace, &self.account, &self.uid))
    }

    fn check(&self, token: &str, lookup: Lookup<'_>, usage: &UsageAt<'_>) -> Result<(), String> {
        let Self { namespace, secret: name, account, uid, .. } = self;
        self.complete()?;
        let gone = || "Token has been invalidated".to_owned();
        let secret: StoredSecret =
            read(lookup, "/secrets", &format!("{namespace}/{name}")).ok_or_else(gone)?;
        if secret.metadata.deletion_timestamp.is_some() {
            return Err(gone());
        }
        let held = secret.data.get("token").and_then(|held| STANDARD.decode(held).ok()).unwrap_or_default();
        if !bool::from(held.ct_eq(token.as_bytes())) {
            return Err("Token does not match server's copy".to_owned());
        }
        let found: StoredAccount = read(lookup, "/serviceaccounts", &format!("{namespace}/{account}"))
            .ok_or_else(|| format!("serviceaccounts {account:?} not found"))?;
        if found.metadata.deletion_timestamp.is_some() {
            return Err(format!("ServiceAccount {namespace}/{account} has been deleted"));
        }
        if found.metadata.uid != *uid {
            let now = found.metadata.uid;
            return Err(format!("ServiceAccount UID ({now}) does not match claim ({uid})"));
        }
        usage.note((namespace, name, &secret.metadata.uid), &secret.metadata.labels);
        if secret.metadata.labels.get(INVALID_SINCE).is_some_and(|since| !since.is_empty()) {
            return Err(format!(
                "the token in secret {namespace}/{name} for service account {namespace}/{account} has been marked \
                 invalid. Use tokens from the TokenRequest API or manually created secret-based tokens, or remove the \
                 '{INVALID_SINCE}' label from the secret to temporarily allow use of this token"
            ));
        }
        Ok(())
    }

    fn complete(&self) -> Result<(), String> {
        let claims = [
            ("sub", &self.sub),
            ("namespace", &self.namespace),
            ("secretName", &self.secret),
            ("serviceAccountName", &self.account),
            ("serviceAccountUID", &self.uid),
        ];
        if let Some((missing, _)) = claims.iter().find(|(_, value)| value.is_empty()) {
            return Err(format!("{missing} claim is missing"));
        }
        match self.sub == service_account_name(&self.namespace, &self.account) {
            true => Ok(()),
            false => Err("sub claim is invalid".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use kubewright_world::World;
    use serde_json::{Value, json};

    use super::*;
    use crate::authn::{Authenticator, ServiceAccounts, TokenKey};

    /// The account and the Secret as they are stored, and the token.
    struct Stored {
        authenticator: Authenticator,
        account: Value,
        secret: Value,
        token: String,
    }

    impl Stored {
        fn new() -> Self {
            let accounts = ServiceAccounts::new(TokenKey::generate().expect("a key"));
            let token = accounts.legacy_token("ns", ("bot", "1"), "bot-token").expect("a token");
            Self {
                authenticator: Authenticator::with_service_accounts(&World::simulated(1), accounts),
                account: json!({"metadata": {"uid": "1"}}),
                secret: json!({"metadata": {"uid": "2"}, "data": {"token": STANDARD.encode(&token)}}),
                token,
            }
        }

        fn user(&self) -> Result<User, String> {
            let lookup = |collection: &str, key: &str| {
                let object = match (collection, key) {
                    ("/secrets", "ns/bot-token") => &self.secret,
                    ("/serviceaccounts", "ns/bot") => &self.account,
                    _ => return None,
                };
                (!object.is_null()).then(|| Bytes::from(object.to_string()))
            };
            let found = self.authenticator.authenticate_token(&self.token, &[], &lookup);
            found.map(|identity| identity.user).map_err(|error| error.to_string())
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_token_of_a_secret_speaks_for_its_account_without_end() {
        let stored = Stored::new();
        tokio::time::sleep(std::time::Duration::from_secs(10 * 365 * 86_400)).await;
        let user = stored.user().expect("good");
        assert_eq!(user, User::service_account("ns", "bot", "1").authenticated());
    }

    #[tokio::test(start_paused = true)]
    async fn it_ends_with_the_secret_that_holds_it_and_with_its_account() {
        let spoilt = |path: &str, value: Value| {
            let mut stored = Stored::new();
            let object = if path.starts_with("/account") { &mut stored.account } else { &mut stored.secret };
            let (_, place) = path[1..].split_once('/').unwrap_or_default();
            if place.is_empty() {
                *object = value;
            } else {
                object[place] = value;
            }
            stored.user().expect_err("invalid")
        };
        let gone = json!({"uid": "1", "deletionTimestamp": "2026-01-01T00:00:00Z"});
        let invalidated = "[invalid bearer token, Token has been invalidated]";
        assert_eq!(spoilt("/secret", Value::Null), invalidated);
        assert_eq!(spoilt("/secret/metadata", gone.clone()), invalidated);
        let other = "[invalid bearer token, Token does not match server's copy]";
        assert_eq!(spoilt("/secret/data", json!({"token": ""})), other);
        let missing = "[invalid bearer token, serviceaccounts \"bot\" not found]";
        assert_eq!(spoilt("/account", Value::Null), missing);
        let deleted = "[invalid bearer token, ServiceAccount ns/bot has been deleted]";
        assert_eq!(spoilt("/account/metadata", gone), deleted);
        let replaced = "[invalid bearer token, ServiceAccount UID (9) does not match claim (1)]";
        assert_eq!(spoilt("/account/metadata", json!({"uid": "9"})), replaced);
        let marked = json!({"uid": "2", "labels": {INVALID_SINCE: "2026-01-01"}});
        assert!(
            spoilt("/secret/metadata", marked)
                .contains("for service account ns/bot has been marked invalid. Use")
        );
    }

    #[test]
    fn claims_that_do_not_belong_together_are_refused() {
        let good = LegacyClaims::new("ns", ("bot", "1"), "s");
        let refused = |claims: LegacyClaims| claims.complete().expect_err("refused");
        assert_eq!(good.complete(), Ok(()));
        assert_eq!(refused(LegacyClaims { sub: String::new(), ..good.clone() }), "sub claim is missing");
        assert_eq!(
            refused(LegacyClaims { secret: String::new(), ..good.clone() }),
            "secretName claim is missing"
        );
        assert_eq!(refused(LegacyClaims { account: "eve".into(), ..good }), "sub claim is invalid");
    }
}
