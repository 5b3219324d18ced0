//! Authentication: who is it?
//!
//! [`Authenticator`] knows the credentials: static tokens, client certificates and the tokens of service accounts, which
//! it also issues ([`token`]) and explains ([`review`]). Acting as somebody else is [`impersonation`]; it needs
//! authorization and comes after.

mod certificate;
pub mod impersonation;
mod key;
pub mod review;
mod secret;
mod service_account;
pub mod token;
mod user;

use bytes::Bytes;
use http::HeaderMap;
use http::header::AUTHORIZATION;
use http::request::Parts;
use jiff::Timestamp;
use kubewright_world::World;
use serde::Deserialize;

pub use certificate::PeerCertificate;
pub use key::{KeyError, TokenKey};
pub use secret::Secret;
pub use service_account::ISSUER;
pub use user::{
    ANONYMOUS, AUTHENTICATED, CREDENTIAL_ID, NODES, SYSTEM_MASTERS, UNAUTHENTICATED, User,
    service_account_name, split_service_account,
};

use crate::error::ApiError;
use secret::StaticTokens;
use service_account::Claims;

/// Where stored objects are found: collection (such as `/pods`) and key (`namespace/name`, or the name alone) to the
/// object's JSON. A read of one snapshot, so that a check sees one moment.
pub type Lookup<'a> = &'a dyn Fn(&str, &str) -> Option<Bytes>;

/// Tells who makes a request, and issues the tokens of service accounts.
#[derive(Debug)]
pub struct Authenticator {
    world: World,
    key: TokenKey,
    tokens: StaticTokens,
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
    /// With a fresh key for service account tokens and no other credentials.
    ///
    /// # Errors
    /// When the machine gives no entropy for the key.
    pub fn new(world: &World) -> Result<Self, KeyError> {
        Ok(Self::with_key(world, TokenKey::generate()?))
    }

    /// With this key for service account tokens: those that it has signed before stay good.
    #[must_use]
    pub fn with_key(world: &World, key: TokenKey) -> Self {
        Self { world: world.clone(), key, tokens: StaticTokens::default() }
    }

    /// Who shows this token is this user.
    #[must_use]
    pub fn with_token(mut self, secret: &Secret, user: User) -> Self {
        self.tokens.add(secret, user.authenticated());
        self
    }

    /// Who makes this request: the [`User`] in its extensions, else the client certificate's, else the bearer token's,
    /// else `system:anonymous`. Everyone but the last is `system:authenticated` too. Impersonation comes later (it needs
    /// authorization).
    ///
    /// # Errors
    /// 401 when there are credentials and none of them is good.
    pub fn authenticate(&self, request: &Parts, lookup: Lookup<'_>) -> Result<User, ApiError> {
        if let Some(user) = request.extensions.get::<User>() {
            return Ok(user.clone().authenticated());
        }
        let mut refused = false;
        if let Some(shown) = request.extensions.get::<PeerCertificate>() {
            match certificate::user(shown, self.now()) {
                Ok(Some(user)) => return Ok(user.authenticated()),
                Ok(None) => {}
                Err(why) => {
                    tracing::debug!(%why, "client certificate refused");
                    refused = true;
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

    /// Whose token this is, for these audiences (none: the API server's own, [`ISSUER`]).
    ///
    /// # Errors
    /// Why it is nobody's, or not for these audiences.
    pub fn authenticate_token(
        &self,
        token: &str,
        audiences: &[String],
        lookup: Lookup<'_>,
    ) -> Result<Identity, TokenError> {
        let own = [ISSUER.to_owned()];
        let asked = if audiences.is_empty() { &own } else { audiences };
        if let Some(user) = self.tokens.find(token) {
            let audiences = common(asked, &own)?;
            return Ok(Identity { user: user.clone(), audiences });
        }
        let claims: Claims = self.key.verify(token).ok_or(TokenError::Unknown)?;
        let audiences = common(asked, &claims.aud)?;
        let user = claims.user(self.now(), lookup)?;
        Ok(Identity { user: user.authenticated(), audiences })
    }

    fn now(&self) -> Timestamp {
        self.world.clock.now()
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
pub(crate) fn decode<'a, T: Deserialize<'a>>(kind: &str, body: &'a serde_json::Value) -> Result<T, ApiError> {
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
