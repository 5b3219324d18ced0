//! Who may read an endpoint, decided by the API server: controller-runtime's `filters.WithAuthenticationAndAuthorization`.

use std::{collections::BTreeMap, time::Duration};

use http::{StatusCode, header, request::Parts};
use k8s_openapi::api::{
    authentication::v1::{TokenReview, TokenReviewSpec, UserInfo},
    authorization::v1::{NonResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec},
};
use kube::{Api, Client, api::PostParams};
use parking_lot::Mutex;
use ring::digest::{SHA256, digest};
use tokio::time::Instant;

/// For how long the API server's answers hold (the times of controller-runtime's filter).
const TOKEN: Duration = Duration::from_secs(60);
const ALLOWED: Duration = Duration::from_secs(5 * 60);
const DENIED: Duration = Duration::from_secs(30);
/// How many answers are remembered at most.
const REMEMBERED: usize = 1024;
/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// Access to an endpoint: who may read it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Access {
    /// Who shows a token (of a service account, say) whose owner may `get` the path, as a non-resource URL. The API server
    /// decides (`TokenReview`, `SubjectAccessReview`), so the operator needs the right to `create` both.
    #[default]
    Authorized,
    /// Everybody who can connect.
    Everybody,
}

/// Why a request is not answered.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) status: StatusCode,
    pub(super) text: String,
}

fn refusal(status: StatusCode, text: impl Into<String>) -> Refusal {
    Refusal { status, text: text.into() }
}

/// The hash of a token: the token itself is kept nowhere.
type Digest = Vec<u8>;

pub(super) struct Guard {
    access: Access,
    client: Client,
    /// Whose a token is; `None`: nobody's.
    users: Mutex<Answers<Digest, Option<UserInfo>>>,
    /// Whether the owner of a token may do this with this path.
    rights: Mutex<Answers<(Digest, String, String), bool>>,
}

impl Guard {
    pub(super) fn new(access: Access, client: Client) -> Self {
        Self { access, client, users: Mutex::default(), rights: Mutex::default() }
    }

    /// Whether a request is to be answered.
    pub(super) async fn admit(&self, request: &Parts) -> Result<(), Refusal> {
        if self.access == Access::Everybody {
            return Ok(());
        }
        let Some(token) = bearer(request) else {
            return Err(refusal(StatusCode::UNAUTHORIZED, "Unauthorized"));
        };
        let hash = digest(&SHA256, token.as_bytes()).as_ref().to_vec();
        let user = self.user(token, &hash).await.map_err(|error| {
            tracing::error!(%error, "cannot find out whose a token is");
            refusal(StatusCode::INTERNAL_SERVER_ERROR, "Authentication failed")
        })?;
        let Some(user) = user else { return Err(refusal(StatusCode::UNAUTHORIZED, "Unauthorized")) };
        let name = user.username.clone().unwrap_or_default();
        let allowed = self.is_allowed(user, hash, request).await.map_err(|error| {
            tracing::error!(user = name, %error, "cannot find out what a user may");
            refusal(StatusCode::INTERNAL_SERVER_ERROR, format!("Authorization for user {name} failed"))
        })?;
        if allowed {
            return Ok(());
        }
        Err(refusal(StatusCode::FORBIDDEN, format!("Authorization denied for user {name}")))
    }

    async fn user(&self, token: &str, hash: &Digest) -> Result<Option<UserInfo>, crate::Error> {
        if let Some(known) = self.users.lock().get(hash) {
            return Ok(known);
        }
        #[allow(clippy::useless_conversion, reason = "optional in older versions of k8s-openapi")]
        let spec = TokenReviewSpec { token: token.to_owned().into(), ..TokenReviewSpec::default() };
        let review = TokenReview { spec, ..TokenReview::default() };
        let status = ask(&Api::all(self.client.clone()), &review).await?.status.unwrap_or_default();
        let user = status.authenticated.unwrap_or_default().then_some(status.user).flatten();
        self.users.lock().put(hash.clone(), user.clone(), TOKEN);
        Ok(user)
    }

    async fn is_allowed(&self, user: UserInfo, hash: Digest, request: &Parts) -> Result<bool, crate::Error> {
        let (verb, path) = (request.method.as_str().to_lowercase(), request.uri.path().to_owned());
        let question = (hash, verb.clone(), path.clone());
        if let Some(known) = self.rights.lock().get(&question) {
            return Ok(known);
        }
        let attributes = NonResourceAttributes { path: Some(path), verb: Some(verb) };
        let spec = SubjectAccessReviewSpec {
            user: user.username,
            groups: user.groups,
            uid: user.uid,
            extra: user.extra,
            non_resource_attributes: Some(attributes),
            ..SubjectAccessReviewSpec::default()
        };
        let review = SubjectAccessReview { spec, ..SubjectAccessReview::default() };
        let answer = ask(&Api::all(self.client.clone()), &review).await?;
        let allowed = answer.status.is_some_and(|status| status.allowed);
        self.rights.lock().put(question, allowed, if allowed { ALLOWED } else { DENIED });
        Ok(allowed)
    }
}

/// Has the API server answer a review.
async fn ask<K>(api: &Api<K>, review: &K) -> Result<K, crate::Error>
where
    K: serde::Serialize + serde::de::DeserializeOwned + Clone + std::fmt::Debug,
{
    match tokio::time::timeout(PATIENCE, api.create(&PostParams::default(), review)).await {
        Ok(answer) => Ok(answer?),
        Err(_) => Err(crate::Error::new("the API server did not answer in time")),
    }
}

fn bearer(request: &Parts) -> Option<&str> {
    let value = request.headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

/// Answers that hold for a time.
#[derive(Debug)]
struct Answers<Q, A>(BTreeMap<Q, (A, Instant)>);

impl<Q, A> Default for Answers<Q, A> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<Q: Ord, A: Clone> Answers<Q, A> {
    fn get(&self, question: &Q) -> Option<A> {
        let (answer, until) = self.0.get(question)?;
        (Instant::now() < *until).then(|| answer.clone())
    }

    fn put(&mut self, question: Q, answer: A, holds: Duration) {
        let now = Instant::now();
        if self.0.len() >= REMEMBERED {
            self.0.retain(|_, (_, until)| now < *until);
        }
        // Whoever asks with ever new tokens is not to push out what others rely on.
        if self.0.len() < REMEMBERED {
            self.0.insert(question, (answer, now + holds));
        }
    }
}
