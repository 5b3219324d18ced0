//! Questions about identities: TokenReview and SelfSubjectReview
//! (`k8s.io/kubernetes/pkg/registry/authentication`).

use jiff::Timestamp;
use kubewright_meta::ApiError;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::user::UserInfo;
use super::{Identity, Secret, TokenError, User, decode};
use crate::authz::null_is_default;

#[derive(Deserialize)]
struct TokenReview {
    #[serde(default, deserialize_with = "null_is_default")]
    spec: TokenReviewSpec,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct TokenReviewSpec {
    #[serde(deserialize_with = "null_is_default")]
    token: String,
    #[serde(deserialize_with = "null_is_default")]
    audiences: Vec<String>,
}

/// What a TokenReview asks.
#[derive(Clone, Debug)]
pub struct Question {
    /// The token that is asked about.
    pub token: Secret,
    /// The audiences that it may be meant for; none: those of the server.
    pub audiences: Vec<String>,
}

impl Question {
    /// Reads the body of a TokenReview.
    ///
    /// # Errors
    /// 400 when it is of another shape or names no token.
    pub fn read(body: &Value) -> Result<Self, ApiError> {
        let TokenReview { spec } = decode("TokenReview", body)?;
        if spec.token.is_empty() {
            return Err(ApiError::bad_request("token is required for TokenReview in authentication"));
        }
        Ok(Self { token: Secret::of(spec.token), audiences: spec.audiences })
    }
}

/// Answers a TokenReview: the JSON of its body with a status that tells whose token it is, or why it is nobody's.
///
/// # Errors
/// None that a caller can bring about.
pub fn answer(body: &Value, found: &Result<Identity, TokenError>) -> Result<String, ApiError> {
    let status = match found {
        Ok(identity) => Status {
            authenticated: true,
            user: identity.user.info(),
            audiences: &identity.audiences,
            error: String::new(),
        },
        Err(why) => Status {
            authenticated: false,
            user: User::nobody().info(),
            audiences: &[],
            error: why.to_string(),
        },
    };
    written(&Answer {
        kind: "TokenReview",
        api_version: API_VERSION,
        metadata: &body["metadata"],
        spec: Some(&body["spec"]),
        status,
    })
}

/// Answers a SelfSubjectReview with the JSON that tells who the server takes the caller for.
///
/// # Errors
/// None that a caller can bring about.
pub fn review_self(user: &User, now: Timestamp) -> Result<String, ApiError> {
    written(&Answer {
        kind: "SelfSubjectReview",
        api_version: API_VERSION,
        metadata: &json!({"creationTimestamp": super::whole_second(now).to_string()}),
        spec: None,
        status: SelfStatus { user_info: user.info() },
    })
}

const API_VERSION: &str = "authentication.k8s.io/v1";

/// An answer with its members in the order of Kubernetes.
#[derive(Serialize)]
struct Answer<'a, S> {
    kind: &'a str,
    #[serde(rename = "apiVersion")]
    api_version: &'a str,
    metadata: &'a Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    spec: Option<&'a Value>,
    status: S,
}

#[derive(Serialize)]
struct Status<'a> {
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    authenticated: bool,
    user: UserInfo<'a>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    audiences: &'a [String],
    #[serde(skip_serializing_if = "String::is_empty")]
    error: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SelfStatus<'a> {
    user_info: UserInfo<'a>,
}

fn written(answer: &impl Serialize) -> Result<String, ApiError> {
    serde_json::to_string(answer).map_err(|error| ApiError::internal(&error.to_string()))
}
