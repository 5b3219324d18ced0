//! Questions of an API server about bearer tokens (`authentication.k8s.io`, `TokenReview`).

use futures::future::BoxFuture;
use k8s_openapi::api::authentication::v1::UserInfo;
use serde::Deserialize;
use serde_json::{Value, json};

/// Says who has a bearer token (controller-runtime's `authentication.Handler`).
///
/// An API server asks it when it was started with `--authentication-token-webhook-config-file`, a kubeconfig whose `server` is the URL of the
/// webhook; nothing in the cluster leads to it. The token is a secret: it is not in the [`Debug`] form of the request, and does not belong in a log.
///
/// ```
/// use kubewright_runtime::webhook::{Authentication, Authenticator, TokenRequest, Webhooks};
///
/// struct Staff;
///
/// impl Authenticator for Staff {
///     async fn authenticate(&self, request: &TokenRequest) -> Authentication {
///         match request.token() {
///             "let-me-in" => Authentication::user("jane", ["staff"]),
///             _ => Authentication::Unauthenticated,
///         }
///     }
/// }
///
/// let webhooks = Webhooks::new("staff").authenticate("/authenticate", Staff);
/// ```
pub trait Authenticator: Send + Sync + 'static {
    /// Who has the token.
    fn authenticate(&self, request: &TokenRequest) -> impl Future<Output = Authentication> + Send;
}

/// A token, and for whom it has to be.
#[derive(Clone)]
pub struct TokenRequest {
    token: String,
    audiences: Vec<String>,
}

impl TokenRequest {
    /// The bearer token; never empty.
    #[must_use]
    pub fn token(&self) -> &str {
        &self.token
    }

    /// The names under which the API server goes: a token for others is not for it. None where it does not care.
    #[must_use]
    pub fn audiences(&self) -> &[String] {
        &self.audiences
    }
}

impl std::fmt::Debug for TokenRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TokenRequest").field("audiences", &self.audiences).finish_non_exhaustive()
    }
}

/// Who has a token.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Authentication {
    /// This user.
    Authenticated {
        /// Name, groups, and what else authorizers look at.
        user: Box<UserInfo>,
        /// For which of the audiences of the request the token is: for all, where none is named. An API server that names its audiences does
        /// not accept a token that is for none of them.
        audiences: Vec<String>,
    },
    /// Nobody that is known here; the API server may ask others.
    Unauthenticated,
    /// It cannot be said, for this reason, which the API server logs.
    Failed(String),
}

impl Authentication {
    /// A user of these groups, for all audiences.
    pub fn user(name: impl Into<String>, groups: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let groups = Some(groups.into_iter().map(Into::into).collect());
        let user = UserInfo { username: Some(name.into()), groups, ..UserInfo::default() };
        Self::Authenticated { user: Box::new(user), audiences: Vec::new() }
    }
}

/// An [`Authenticator`] whose type is forgotten.
pub(super) trait DynAuthenticator: Send + Sync {
    fn authenticate<'a>(&'a self, request: &'a TokenRequest) -> BoxFuture<'a, Authentication>;
}

impl<A: Authenticator> DynAuthenticator for A {
    fn authenticate<'a>(&'a self, request: &'a TokenRequest) -> BoxFuture<'a, Authentication> {
        Box::pin(Authenticator::authenticate(self, request))
    }
}

/// The review that answers this one, in its version: kube-apiserver speaks `v1beta1` unless it is told otherwise
/// (`--authentication-token-webhook-version`).
///
/// # Errors
/// What is wrong with the question.
pub(super) async fn answer(authenticator: &dyn DynAuthenticator, body: &[u8]) -> Result<Value, String> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Review {
        #[serde(default)]
        api_version: String,
        #[serde(default)]
        kind: String,
        #[serde(default)]
        metadata: Value,
        #[serde(default)]
        spec: Spec,
    }
    #[derive(Default, Deserialize)]
    struct Spec {
        #[serde(default)]
        token: String,
        #[serde(default)]
        audiences: Option<Vec<String>>,
    }
    // serde's errors may have the text that they are about.
    let review: Review = serde_json::from_slice(body).map_err(|_| "the body is no TokenReview".to_owned())?;
    let (version, kind) = (&*review.api_version, &*review.kind);
    if !matches!(version, "authentication.k8s.io/v1" | "authentication.k8s.io/v1beta1")
        || kind != "TokenReview"
    {
        return Err(format!(
            "the body is no TokenReview of authentication.k8s.io: it is {version:?}, kind {kind:?}"
        ));
    }
    if review.spec.token.is_empty() {
        return Err("token is empty".to_owned());
    }
    let audiences = review.spec.audiences.unwrap_or_default();
    let request = TokenRequest { token: review.spec.token, audiences };
    let status = match authenticator.authenticate(&request).await {
        Authentication::Authenticated { user, audiences } => {
            let user = kubewright_objects::to_value(&*user).map_err(|error| error.to_string())?;
            let audiences = if audiences.is_empty() { request.audiences } else { audiences };
            let mut status = json!({"authenticated": true, "user": user});
            if !audiences.is_empty() {
                status["audiences"] = json!(audiences);
            }
            status
        }
        Authentication::Unauthenticated => json!({"authenticated": false, "user": {}}),
        Authentication::Failed(why) => json!({"authenticated": false, "user": {}, "error": why}),
    };
    let metadata = if review.metadata.is_null() { json!({}) } else { review.metadata };
    Ok(json!({"apiVersion": version, "kind": kind, "metadata": metadata, "spec": {}, "status": status}))
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Staff;

    impl Authenticator for Staff {
        async fn authenticate(&self, request: &TokenRequest) -> Authentication {
            assert!(!format!("{request:?}").contains(request.token()));
            match request.token() {
                "good" => Authentication::user("jane", ["staff"]),
                "else" => match Authentication::user("joe", [""; 0]) {
                    Authentication::Authenticated { user, .. } => {
                        Authentication::Authenticated { user, audiences: vec!["vault".into()] }
                    }
                    other => other,
                },
                "late" => Authentication::Failed("the directory is away".into()),
                _ => Authentication::Unauthenticated,
            }
        }
    }

    async fn ask(review: &Value) -> Result<Value, String> {
        answer(&Staff, review.to_string().as_bytes()).await
    }

    #[tokio::test]
    async fn a_token_is_answered_in_the_version_of_the_question() {
        for version in ["authentication.k8s.io/v1", "authentication.k8s.io/v1beta1"] {
            let spec = json!({"token": "good", "audiences": ["api"]});
            let review =
                json!({"apiVersion": version, "kind": "TokenReview", "metadata": {"uid": "1"}, "spec": spec});
            let answer = ask(&review).await.expect("an answer");
            assert_eq!((&answer["apiVersion"], &answer["metadata"]), (&json!(version), &json!({"uid": "1"})));
            let user = json!({"username": "jane", "groups": ["staff"]});
            assert_eq!(answer["status"], json!({"authenticated": true, "user": user, "audiences": ["api"]}));
            assert!(!answer.to_string().contains("good"), "the token is not told again");
        }
    }

    #[tokio::test]
    async fn who_is_not_known_is_not_authenticated_and_why_not_is_told() {
        let status = async |token: &str| {
            let spec = json!({"token": token});
            let review =
                json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": spec});
            ask(&review).await.map(|answer| answer["status"].clone())
        };
        assert_eq!(status("bad").await, Ok(json!({"authenticated": false, "user": {}})));
        let failed = json!({"authenticated": false, "user": {}, "error": "the directory is away"});
        assert_eq!(status("late").await, Ok(failed));
        assert_eq!(status("else").await.expect("an answer")["audiences"], json!(["vault"]));
        assert_eq!(status("").await, Err("token is empty".to_owned()));
    }

    #[tokio::test]
    async fn what_is_no_review_is_refused_without_its_text() {
        let error = answer(&Staff, br#"{"spec": {"token": 5, "secret": "x"}}"#).await.expect_err("no review");
        assert_eq!(error, "the body is no TokenReview");
        let other = ask(&json!({"apiVersion": "v1", "kind": "Pod", "spec": {"token": "good"}})).await;
        assert!(other.is_err_and(|error| error.contains("it is \"v1\", kind \"Pod\"")));
    }
}
