//! A server that is asked whose token it is (`k8s.io/apiserver/plugin/pkg/authenticator/token/webhook`).

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kubewright_world::Clock;
use parking_lot::Mutex;
use ring::digest::{SHA256, digest};
use serde::Deserialize;
use serde_json::json;

use super::user::User;
use super::{Identity, TokenError, common};
use crate::authz::{ReviewVersion, null_is_default};
use crate::webhook::{Client, Remote};

/// How long an answer may take.
const TIMEOUT: Duration = Duration::from_secs(30);
/// How many answers are remembered.
const MAX_REMEMBERED: usize = 8192;

/// A server that is asked with TokenReviews for the tokens that nothing else knows, and what it has said.
pub struct TokenWebhook {
    remote: Remote,
    version: ReviewVersion,
    lifetime: Duration,
    remembered: Mutex<BTreeMap<[u8; 32], (Timestamp, Found)>>,
}

/// Whose token it is, if anybody's.
type Found = Result<Identity, TokenError>;

/// A version that no server is asked in.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unsupported authentication webhook version {0:?}, supported versions are \"v1\", \"v1beta1\"")]
pub struct UnsupportedVersion(pub String);

#[derive(Deserialize)]
struct Answer {
    #[serde(default, deserialize_with = "null_is_default")]
    status: Status,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Status {
    authenticated: bool,
    #[serde(deserialize_with = "null_is_default")]
    user: TokenReviewStatus,
    #[serde(deserialize_with = "null_is_default")]
    audiences: Vec<String>,
    #[serde(deserialize_with = "null_is_default")]
    error: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct TokenReviewStatus {
    #[serde(deserialize_with = "null_is_default")]
    username: String,
    #[serde(deserialize_with = "null_is_default")]
    uid: String,
    #[serde(deserialize_with = "null_is_default")]
    groups: Vec<String>,
    #[serde(deserialize_with = "null_is_default")]
    extra: BTreeMap<String, Vec<String>>,
}

impl TokenWebhook {
    /// Asks this server (`--authentication-token-webhook-config-file`) in the version of this name
    /// (`--authentication-token-webhook-version`). What it says is remembered for two minutes.
    ///
    /// # Errors
    /// When there is no such version.
    pub fn new(remote: Remote, version: &str) -> Result<Self, UnsupportedVersion> {
        let version =
            ReviewVersion::of_name(version).ok_or_else(|| UnsupportedVersion(version.to_owned()))?;
        Ok(Self { remote, version, lifetime: Duration::from_secs(120), remembered: Mutex::default() })
    }

    /// How long is remembered what it says, in the cluster's time (`--authentication-token-webhook-cache-ttl`). Zero: not
    /// at all.
    #[must_use]
    pub fn remembering(mut self, lifetime: Duration) -> Self {
        self.lifetime = lifetime;
        self
    }

    /// Whose token this is, for these audiences; `own` are those that a server means that names none.
    pub(super) async fn ask(
        &self,
        client: &Client,
        clock: Clock,
        token: &str,
        (audiences, own): (&[String], &[String]),
    ) -> Result<Identity, TokenError> {
        let now = clock.now();
        let key = key(token, audiences);
        if let Some((until, known)) = self.remembered.lock().get(&key)
            && now < *until
        {
            return known.clone();
        }
        let body = json!({
            "kind": "TokenReview",
            "apiVersion": format!("authentication.k8s.io/{}", self.version.name()),
            "metadata": {},
            "spec": {"token": token, "audiences": audiences},
            "status": {"user": {}},
        });
        let answer = self.remote.post(client, body.to_string().into(), TIMEOUT).await.map_err(|why| {
            tracing::error!(%why, "the authentication webhook gave no answer");
            TokenError::Webhook(why.to_string())
        })?;
        let answer: Answer =
            serde_json::from_slice(&answer).map_err(|why| TokenError::Webhook(why.to_string()))?;
        if !answer.status.error.is_empty() && !answer.status.authenticated {
            return Err(TokenError::Webhook(answer.status.error));
        }
        let found = answer.status.identity(audiences, own);
        self.remember(key, &found, now);
        found
    }

    fn remember(&self, key: [u8; 32], found: &Found, now: Timestamp) {
        if self.lifetime.is_zero() {
            return;
        }
        let lifetime = SignedDuration::try_from(self.lifetime).unwrap_or(SignedDuration::MAX);
        let until = now.saturating_add(lifetime).unwrap_or(Timestamp::MAX);
        let mut remembered = self.remembered.lock();
        if remembered.len() >= MAX_REMEMBERED {
            remembered.retain(|_, (until, _)| now < *until);
        }
        if remembered.len() >= MAX_REMEMBERED {
            remembered.clear();
        }
        remembered.insert(key, (until, found.clone()));
    }
}

impl std::fmt::Debug for TokenWebhook {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TokenWebhook").field("remote", &self.remote).finish_non_exhaustive()
    }
}

impl Status {
    fn identity(self, asked: &[String], own: &[String]) -> Found {
        let meant = if self.audiences.is_empty() { own } else { &self.audiences };
        let audiences = common(asked, meant).map_err(|_| TokenError::Unknown)?;
        if !self.authenticated {
            return Err(TokenError::Unknown);
        }
        let TokenReviewStatus { username, uid, groups, extra } = self.user;
        let user = User { name: username, uid, groups, extra };
        Ok(Identity { user: user.authenticated(), audiences })
    }
}

/// A token and audiences, so that nobody reads the token out of the memory.
fn key(token: &str, audiences: &[String]) -> [u8; 32] {
    let text = serde_json::to_vec(&(token, audiences)).unwrap_or_default();
    let mut key = [0; 32];
    key.copy_from_slice(digest(&SHA256, &text).as_ref());
    key
}

#[cfg(test)]
mod tests;
