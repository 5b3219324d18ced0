//! What a service account's token says, and whether it still holds
//! (`k8s.io/kubernetes/pkg/serviceaccount/claims.go`).

use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serialize};

use super::user::{CREDENTIAL_ID, User};
use super::{Lookup, TokenError, read};

/// Who issues the tokens of service accounts, as long as nobody says otherwise; also the audience of a token that names none.
pub const ISSUER: &str = "https://kubernetes.default.svc.cluster.local";

/// How far clocks may be apart.
const LEEWAY_SECONDS: i64 = 60;

const POD_NAME: &str = "authentication.kubernetes.io/pod-name";
const POD_UID: &str = "authentication.kubernetes.io/pod-uid";
const NODE_NAME: &str = "authentication.kubernetes.io/node-name";
const NODE_UID: &str = "authentication.kubernetes.io/node-uid";

/// The claims of a token.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Claims {
    #[serde(default, deserialize_with = "one_or_many")]
    pub(crate) aud: Vec<String>,
    pub(crate) exp: i64,
    pub(crate) iat: i64,
    pub(crate) iss: String,
    pub(crate) jti: String,
    #[serde(rename = "kubernetes.io")]
    pub kubernetes: Bound,
    pub(crate) nbf: i64,
    pub sub: String,
}

/// Audiences: one, or a list (RFC 7519, 4.1.3).
fn one_or_many<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Audiences {
        One(String),
        Many(Vec<String>),
    }
    Ok(match Audiences::deserialize(deserializer)? {
        Audiences::One(one) => vec![one],
        Audiences::Many(many) => many,
    })
}

/// The account that a token speaks for, and the objects that it lives and dies with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Bound {
    pub namespace: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<Reference>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod: Option<Reference>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<Reference>,
    pub serviceaccount: Reference,
    /// Until when the token was asked for, when it lives longer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) warnafter: Option<i64>,
}

/// One object in its one life. The uid of a node that was not there when the token was made is empty.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Reference {
    pub name: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub uid: String,
}

/// Of a stored object, what tells one life from the next.
#[derive(Deserialize)]
struct Life {
    metadata: LifeMetadata,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct LifeMetadata {
    uid: String,
    deletion_timestamp: Option<Timestamp>,
}

/// Kinds of objects that a token can be bound to, with the store's collections.
const ACCOUNT: (&str, &str) = ("service account", "/serviceaccounts");
const POD: (&str, &str) = ("pod", "/pods");
const SECRET: (&str, &str) = ("secret", "/secrets");
const NODE: (&str, &str) = ("node", "/nodes");

impl Claims {
    /// The user that these claims speak for at a time.
    ///
    /// # Errors
    /// When they are out of time, or when an object that they are bound to has gone or is another one now.
    pub(super) fn user(&self, now: Timestamp, lookup: Lookup<'_>) -> Result<User, TokenError> {
        if now.as_second() > self.exp.saturating_add(LEEWAY_SECONDS) {
            return Err(TokenError::Expired);
        }
        if now.as_second().saturating_add(LEEWAY_SECONDS) < self.nbf {
            return Err(TokenError::NotYetValid);
        }
        let bound = &self.kubernetes;
        let namespaced = |name: &str| format!("{}/{name}", bound.namespace);
        let account = &bound.serviceaccount;
        alive(ACCOUNT, &namespaced(&account.name), account, now, lookup)?;
        if let Some(secret) = &bound.secret {
            alive(SECRET, &namespaced(&secret.name), secret, now, lookup)?;
        }
        if let Some(pod) = &bound.pod {
            alive(POD, &namespaced(&pod.name), pod, now, lookup)?;
        } else if let Some(node) = &bound.node {
            alive(NODE, &node.name, node, now, lookup)?;
        }
        Ok(self.to_user())
    }

    fn to_user(&self) -> User {
        let bound = &self.kubernetes;
        let account = &bound.serviceaccount;
        let mut user = User::service_account(&bound.namespace, &account.name, &account.uid);
        let mut tell = |key: &str, value: &str| {
            if !value.is_empty() {
                user.extra.insert(key.to_owned(), vec![value.to_owned()]);
            }
        };
        tell(CREDENTIAL_ID, &format!("JTI={}", self.jti));
        if let Some(pod) = &bound.pod {
            tell(POD_NAME, &pod.name);
            tell(POD_UID, &pod.uid);
        }
        if let Some(node) = &bound.node {
            tell(NODE_NAME, &node.name);
            tell(NODE_UID, &node.uid);
        }
        user
    }
}

/// An object must be the one that the token was made for, and not be past its deletion.
fn alive(
    (kind, collection): (&'static str, &str),
    key: &str,
    reference: &Reference,
    now: Timestamp,
    lookup: Lookup<'_>,
) -> Result<(), TokenError> {
    let Some(life) = read::<Life>(lookup, collection, key) else {
        return Err(TokenError::Gone { kind, key: key.to_owned() });
    };
    let dead_since = life.metadata.deletion_timestamp.map(Timestamp::as_second);
    if dead_since.is_some_and(|since| since < now.as_second() - LEEWAY_SECONDS) {
        return Err(TokenError::Gone { kind, key: key.to_owned() });
    }
    if life.metadata.uid != reference.uid {
        return Err(TokenError::Replaced { kind, key: key.to_owned() });
    }
    Ok(())
}
