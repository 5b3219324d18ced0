//! Authentication: who is it?
//!
//! [`Authenticator`] knows the credentials: client certificates, static tokens and the tokens of service accounts, which
//! it also issues ([`token`]) and explains ([`review`]); a [`FrontProxy`] may speak for others. Acting as somebody else is
//! [`impersonation`]; it needs authorization and comes after.

mod accounts;
pub mod bootstrap_token;
mod certificate;
mod front_proxy;
pub mod impersonation;
mod keys;
mod legacy;
mod published;
pub mod review;
mod secret;
mod service_account;
pub mod token;
pub mod token_file;
mod usage;
mod user;
mod webhook;

use std::sync::Arc;

use bytes::Bytes;
use http::HeaderMap;
use http::header::AUTHORIZATION;
use http::request::Parts;
use jiff::Timestamp;
use kubewright_meta::ApiError;
use kubewright_world::World;
use serde::Deserialize;

pub use accounts::{ServiceAccounts, ServiceAccountsError};
pub use certificate::PeerCertificate;
pub use front_proxy::{EmptyHeader, FrontProxy};
pub use keys::{Jwk, KeyError, PublicKey, TokenKey};
pub use published::combined;
pub use published::published;
pub use secret::Secret;
pub use service_account::ISSUER;
pub use user::{
    ANONYMOUS, AUTHENTICATED, CREDENTIAL_ID, NODES, SYSTEM_MASTERS, UNAUTHENTICATED, User,
    service_account_name, split_service_account,
};
pub use webhook::{TokenWebhook, UnsupportedVersion};

use crate::trust::Bundle;
use crate::webhook::Client;
use accounts::Verified;
use certificate::BadCertificate;
use secret::StaticTokens;
use usage::Usage;
pub use usage::{LAST_USED, Used};

/// Where stored objects are found: collection (such as `/pods`) and key (`namespace/name`, or the name alone) to the
/// object's JSON. A read of one snapshot, so that a check sees one moment.
pub type Lookup<'a> = &'a dyn Fn(&str, &str) -> Option<Bytes>;

/// Tells who makes a request, and issues the tokens of service accounts.
#[derive(Debug)]
pub struct Authenticator {
    world: World,
    accounts: Arc<ServiceAccounts>,
    tokens: StaticTokens,
    clients: Option<Arc<Bundle>>,
    proxy: Option<FrontProxy>,
    anonymous: bool,
    bootstrap: bool,
    usage: Usage,
    webhook: Option<(TokenWebhook, Client)>,
}

/// Whose token it is, and for which of the audiences asked about it is meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Whose token it is.
    pub user: User,
    /// The audiences that were asked about and that the token is meant for.
    pub audiences: Vec<String>,
}

/// Why a token is not good.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// No token of this server.
    #[error("invalid bearer token")]
    Unknown,
    /// It names a key that is none of those that sign tokens.
    #[error("[invalid bearer token, invalid signature, no keys found]")]
    NoKey,
    /// No key has signed it.
    #[error("[invalid bearer token, go-jose/go-jose: error in cryptographic primitive]")]
    Signature,
    /// It is well signed, and does not say what the token of a service account says.
    #[error("[invalid bearer token, service account token claims could not be validated]")]
    Claims,
    /// It is that of a Secret that does not hold it any more, or whose account is gone.
    #[error("[invalid bearer token, {0}]")]
    Legacy(String),
    /// A webhook says so, or cannot be asked.
    #[error("[invalid bearer token, {0}]")]
    Webhook(String),
    /// Its time has passed.
    #[error("[invalid bearer token, service account token has expired]")]
    Expired,
    /// Its time has not come.
    #[error("[invalid bearer token, service account token is not valid yet]")]
    NotYetValid,
    /// It is meant for others.
    #[error(
        "[invalid bearer token, token audiences {meant:?} is invalid for the target audiences {asked:?}]"
    )]
    Audience {
        /// What the token is meant for.
        meant: Vec<String>,
        /// What was asked for.
        asked: Vec<String>,
    },
    /// The account, or what the token was bound to, is not there any more.
    #[error("[invalid bearer token, service account token has been invalidated: {kind} {key:?} is gone]")]
    Gone {
        /// What was bound.
        kind: &'static str,
        /// Its key.
        key: String,
    },
    /// The account, or what the token was bound to, is another one under the same name.
    #[error(
        "[invalid bearer token, service account token has been invalidated: {kind} {key:?} has another UID]"
    )]
    Replaced {
        /// What was bound.
        kind: &'static str,
        /// Its key.
        key: String,
    },
}

impl Authenticator {
    /// With a fresh key for service account tokens and no other credentials. Who gives none is anonymous.
    ///
    /// # Errors
    /// When the machine gives no entropy for the key.
    pub fn new(world: &World) -> Result<Self, KeyError> {
        Ok(Self::with_service_accounts(world, ServiceAccounts::new(TokenKey::generate()?)))
    }

    /// With service accounts of these settings and no other credentials. Who gives none is anonymous.
    #[must_use]
    pub fn with_service_accounts(world: &World, accounts: impl Into<Arc<ServiceAccounts>>) -> Self {
        Self {
            world: world.clone(),
            accounts: accounts.into(),
            tokens: StaticTokens::default(),
            clients: None,
            proxy: None,
            anonymous: true,
            bootstrap: false,
            usage: Usage::default(),
            webhook: None,
        }
    }

    /// Who shows this token is this user.
    #[must_use]
    pub fn with_token(mut self, secret: &Secret, user: User) -> Self {
        self.tokens.add(secret, user.authenticated());
        self
    }

    /// Who shows a certificate that this bundle vouches for is whom it names (`--client-ca-file`). Without, certificates
    /// are not looked at.
    #[must_use]
    pub fn with_client_ca(mut self, bundle: Bundle) -> Self {
        self.clients = Some(Arc::new(bundle));
        self
    }

    /// This proxy may say who makes a request.
    #[must_use]
    pub fn with_front_proxy(mut self, proxy: FrontProxy) -> Self {
        self.proxy = Some(proxy);
        self
    }

    /// Whether somebody without credentials is `system:anonymous`, or is refused (`--anonymous-auth`).
    #[must_use]
    pub fn with_anonymous(mut self, allowed: bool) -> Self {
        self.anonymous = allowed;
        self
    }

    /// Whether tokens of Secrets of the type `bootstrap.kubernetes.io/token` are known (`--enable-bootstrap-token-auth`).
    #[must_use]
    pub fn with_bootstrap_tokens(mut self, known: bool) -> Self {
        self.bootstrap = known;
        self
    }

    /// This server is asked for tokens that nothing else knows.
    #[must_use]
    pub fn with_token_webhook(mut self, webhook: TokenWebhook) -> Self {
        self.webhook = Some((webhook, Client::new(self.world.clock)));
        self
    }

    /// How the tokens of service accounts are issued and verified.
    #[must_use]
    pub fn service_accounts(&self) -> &ServiceAccounts {
        &self.accounts
    }

    /// Who makes this request: the [`User`] in its extensions, else whom a front proxy names, else the client
    /// certificate's, else the bearer token's, else `system:anonymous`. Everyone but the last is `system:authenticated`
    /// too. Impersonation comes later (it needs authorization).
    ///
    /// # Errors
    /// 401 when there are credentials and none of them is good, or when there are none and nobody may be anonymous.
    pub fn authenticate(&self, request: &Parts, lookup: Lookup<'_>) -> Result<User, ApiError> {
        if let Some(user) = request.extensions.get::<User>() {
            return Ok(user.clone().authenticated());
        }
        let mut refused = !self.anonymous;
        if let Some(shown) = request.extensions.get::<PeerCertificate>() {
            for found in [self.proxied(shown, &request.headers), self.certified(shown)] {
                match found {
                    Ok(Some(user)) => return Ok(user),
                    Ok(None) => {}
                    Err(why) => {
                        tracing::debug!(%why, "client certificate refused");
                        refused = true;
                    }
                }
            }
        }
        if let Some(token) = bearer_token(&request.headers) {
            match self.authenticate_token(token, &[], lookup) {
                Ok(identity) => return Ok(identity.user),
                Err(why) => {
                    tracing::debug!(%why, "bearer token refused");
                    refused = true;
                }
            }
        }
        if refused { Err(ApiError::unauthorized()) } else { Ok(User::anonymous()) }
    }

    fn proxied(&self, shown: &PeerCertificate, told: &HeaderMap) -> Result<Option<User>, BadCertificate> {
        let Some(proxy) = &self.proxy else { return Ok(None) };
        Ok(proxy.user(shown, told, self.outside())?.map(User::authenticated))
    }

    fn certified(&self, shown: &PeerCertificate) -> Result<Option<User>, BadCertificate> {
        let Some(bundle) = &self.clients else { return Ok(None) };
        shown.user(bundle, self.outside())
    }

    /// Whose token this is, for these audiences (none: the API server's own).
    ///
    /// # Errors
    /// Why it is nobody's, or not for these audiences.
    pub fn authenticate_token(
        &self,
        token: &str,
        audiences: &[String],
        lookup: Lookup<'_>,
    ) -> Result<Identity, TokenError> {
        let own = self.accounts.own_audiences();
        let asked = if audiences.is_empty() { own } else { audiences };
        if let Some(user) = self.tokens.find(token) {
            let audiences = common(asked, own)?;
            return Ok(Identity { user: user.clone(), audiences });
        }
        let bootstrap = self.bootstrap.then(|| bootstrap_token::user(token, self.now(), lookup)).flatten();
        if let Some(user) = bootstrap {
            let audiences = common(asked, own)?;
            return Ok(Identity { user: user.authenticated(), audiences });
        }
        let (verified, audiences) = self.accounts.verify(token, asked)?;
        let user = match &*verified {
            Verified::Bound(claims) => claims.user(self.now(), lookup)?,
            Verified::Legacy(claims) => claims.user(token, lookup, &self.usage.on(self.now()))?,
        };
        Ok(Identity { user: user.authenticated(), audiences })
    }

    /// Who makes a request that [`Self::authenticate`] has refused, when a webhook knows its bearer token. Without a webhook
    /// nobody is waited for.
    pub async fn ask(&self, headers: &HeaderMap) -> Option<User> {
        self.webhook.as_ref()?;
        let token = bearer_token(headers)?;
        match self.or_ask(Err(TokenError::Unknown), token, &[]).await {
            Ok(identity) => Some(identity.user),
            Err(why) => {
                tracing::debug!(%why, "bearer token refused by the webhook");
                None
            }
        }
    }

    /// What [`Self::authenticate_token`] has found, or what a webhook says of a token that it has refused.
    ///
    /// # Errors
    /// Why it is nobody's, or not for these audiences.
    pub async fn or_ask(
        &self,
        found: Result<Identity, TokenError>,
        token: &str,
        audiences: &[String],
    ) -> Result<Identity, TokenError> {
        let (Err(_), Some((webhook, client))) = (&found, &self.webhook) else { return found };
        let own = self.accounts.own_audiences();
        let asked = if audiences.is_empty() { own } else { audiences };
        webhook.ask(client, self.world.clock, token, (asked, own)).await
    }

    /// The Secrets whose tokens were used since the last call and that do not say so: they are to be labelled.
    pub fn used_secrets(&self) -> Vec<Used> {
        self.usage.take()
    }

    fn now(&self) -> Timestamp {
        self.world.clock.now()
    }

    /// What time it is where certificates come from.
    fn outside(&self) -> Timestamp {
        self.world.clock.outside().now()
    }
}

/// The audiences in both lists; an error when there is none.
fn common(asked: &[String], meant: &[String]) -> Result<Vec<String>, TokenError> {
    let both: Vec<String> = asked.iter().filter(|one| meant.contains(one)).cloned().collect();
    if both.is_empty() {
        return Err(TokenError::Audience { meant: meant.to_vec(), asked: asked.to_vec() });
    }
    Ok(both)
}

/// The token of an `Authorization: Bearer` header; another scheme, or an empty token, is as good as none.
fn bearer_token(headers: &HeaderMap) -> Option<&str> {
    let mut words = headers.get(AUTHORIZATION)?.to_str().ok()?.trim().splitn(3, ' ');
    let scheme = words.next()?;
    words.next().filter(|token| scheme.eq_ignore_ascii_case("bearer") && !token.is_empty())
}

/// The object under a key, in the shape that the caller needs.
fn read<T: for<'de> Deserialize<'de>>(lookup: Lookup<'_>, collection: &str, key: &str) -> Option<T> {
    serde_json::from_slice(&lookup(collection, key)?).ok()
}

/// A time as objects hold it: without the fraction of its second.
fn whole_second(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).unwrap_or(time)
}

/// A body in the shape that the caller needs.
///
/// # Errors
/// 400 in the words of Kubernetes' decoder when it has another shape.
pub fn decode<'a, T: Deserialize<'a>>(kind: &str, body: &'a serde_json::Value) -> Result<T, ApiError> {
    let refuse = |why: &dyn std::fmt::Display| {
        ApiError::bad_request(format!("{kind} in version \"v1\" cannot be handled as a {kind}: {why}"))
    };
    if !body.is_object() {
        return Err(refuse(&"it is no object"));
    }
    T::deserialize(body).map_err(|error| refuse(&error))
}

#[cfg(test)]
mod tests;
