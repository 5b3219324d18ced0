//! Questions about identities: TokenReview and SelfSubjectReview
//! (`k8s.io/kubernetes/pkg/registry/authentication`).

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Authenticator, Lookup, User, decode};
use crate::authz::null_is_default;
use crate::error::ApiError;

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

impl Authenticator {
    /// Answers a TokenReview: the body with a status that tells whose token it is, or why it is nobody's.
    ///
    /// # Errors
    /// 400 when the body is of another shape or names no token.
    pub fn review_token(&self, body: &Value, lookup: Lookup<'_>) -> Result<Value, ApiError> {
        let review: TokenReview = decode("TokenReview", body)?;
        if review.spec.token.is_empty() {
            return Err(ApiError::bad_request("token is required for TokenReview in authentication"));
        }
        let mut answer = body.clone();
        answer["status"] = match self.authenticate_token(&review.spec.token, &review.spec.audiences, lookup) {
            Ok(identity) => json!({
                "authenticated": true,
                "user": identity.user.to_info(),
                "audiences": identity.audiences,
            }),
            Err(why) => json!({"user": {}, "error": why.to_string()}),
        };
        Ok(answer)
    }
}

/// Answers a SelfSubjectReview: who the server takes the caller for.
#[must_use]
pub fn review_self(user: &User, now: Timestamp) -> Value {
    json!({
        "kind": "SelfSubjectReview",
        "apiVersion": "authentication.k8s.io/v1",
        "metadata": {"creationTimestamp": super::whole_second(now).to_string()},
        "status": {"userInfo": user.to_info()},
    })
}
