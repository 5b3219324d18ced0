//! Tokens for service accounts: `create` on the `token` subresource
//! (`k8s.io/kubernetes/pkg/registry/core/serviceaccount/storage/token.go`).

use http::StatusCode;
use jiff::Timestamp;
use kubewright_meta::{ApiError, FieldError, object};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::service_account::{Bound, Claims, Reference};
use super::user::service_account_name;
use super::{Authenticator, Lookup, decode, read, whole_second};
use crate::authz::null_is_default;

const GROUP: &str = "authentication.k8s.io";
const KIND: &str = "TokenRequest";
const DEFAULT_SECONDS: i64 = 3600;
const MIN_SECONDS: i64 = 600;
const MAX_SECONDS: i64 = 1 << 32;

/// So long a pod's own token is asked for: an hour, and seven seconds by which it is known
/// (`k8s.io/kubernetes/pkg/serviceaccount/claims.go`, `WarnOnlyBoundTokenExpirationSeconds`).
const POD_TOKEN_SECONDS: i64 = 3607;
/// So long it lives then: a year (`ExpirationExtensionSeconds`).
const EXTENDED_SECONDS: i64 = 365 * 24 * 3600;

#[derive(Deserialize)]
struct TokenRequest {
    #[serde(default, deserialize_with = "null_is_default")]
    metadata: RequestMetadata,
    #[serde(default, deserialize_with = "null_is_default")]
    spec: TokenRequestSpec,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RequestMetadata {
    uid: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct TokenRequestSpec {
    #[serde(deserialize_with = "null_is_default")]
    audiences: Vec<String>,
    expiration_seconds: Option<i64>,
    bound_object_ref: Option<BoundObject>,
}

#[derive(Default, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
struct BoundObject {
    #[serde(deserialize_with = "null_is_default", skip_serializing_if = "String::is_empty")]
    kind: String,
    #[serde(deserialize_with = "null_is_default", skip_serializing_if = "String::is_empty")]
    api_version: String,
    #[serde(deserialize_with = "null_is_default", skip_serializing_if = "String::is_empty")]
    name: String,
    #[serde(deserialize_with = "null_is_default", skip_serializing_if = "String::is_empty")]
    uid: String,
}

/// The service account that a token is for, and any object that one is bound to.
#[derive(Deserialize)]
struct Object {
    metadata: ObjectMetadata,
    #[serde(default, deserialize_with = "null_is_default")]
    spec: PodSpec,
}

#[derive(Deserialize)]
struct ObjectMetadata {
    name: String,
    #[serde(default)]
    namespace: String,
    #[serde(default)]
    uid: String,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct PodSpec {
    #[serde(deserialize_with = "null_is_default")]
    service_account_name: String,
    #[serde(deserialize_with = "null_is_default")]
    node_name: String,
}

impl Authenticator {
    /// Answers a TokenRequest (`body`) for a stored service account: the request with its defaults and, in its status,
    /// the token. What is not done as it was asked for is told in `warnings`.
    ///
    /// # Errors
    /// 400 when the body is of another shape, or names an object that a token cannot be bound to; 422 when it breaks the
    /// rules; 404 when the bound object is not there; 409 when that has another uid; 500 when the machine cannot sign.
    pub fn issue_token(
        &self,
        account: &Value,
        body: &Value,
        lookup: Lookup<'_>,
        warnings: &mut Vec<String>,
    ) -> Result<Value, ApiError> {
        let request: TokenRequest = decode(KIND, body)?;
        let account: Object = decode("ServiceAccount", account)?;
        match_uid(&request.metadata, &account.metadata)?;
        let mut seconds = request.spec.expiration_seconds.unwrap_or(DEFAULT_SECONDS);
        check_seconds(seconds)?;
        let audiences = match request.spec.audiences {
            none if none.is_empty() => self.accounts.own_audiences().to_vec(),
            some => some,
        };
        let reference = request.spec.bound_object_ref;
        let now = whole_second(self.now());
        let mut bound = bind(&account, reference.as_ref(), lookup)?;
        if let Some(most) = self.accounts.max_expiration.map(|most| most.as_secs().cast_signed())
            && seconds > most
        {
            warnings.push(format!("requested expiration of {seconds} seconds shortened to {most} seconds"));
            seconds = most;
        }
        let lives = match self.is_extended(seconds, &audiences, &bound) {
            true => {
                bound.warnafter = Some(now.as_second() + seconds);
                EXTENDED_SECONDS
            }
            false => seconds,
        };
        let claims = Claims {
            aud: audiences.clone(),
            exp: now.as_second() + lives,
            iat: now.as_second(),
            iss: self.accounts.issuer().to_owned(),
            jti: self.world.dice.uid(),
            kubernetes: bound,
            nbf: now.as_second(),
            sub: service_account_name(&account.metadata.namespace, &account.metadata.name),
        };
        let token = self.accounts.sign(&claims).map_err(|error| ApiError::internal(&error.to_string()))?;
        let expires = Timestamp::from_second(now.as_second() + seconds)
            .map_err(|error| ApiError::internal(&error.to_string()))?;
        Ok(json!({
            "kind": KIND,
            "apiVersion": format!("{GROUP}/v1"),
            "metadata": {
                "name": account.metadata.name,
                "namespace": account.metadata.namespace,
                "uid": account.metadata.uid,
                "creationTimestamp": now.to_string(),
            },
            "spec": {"audiences": audiences, "expirationSeconds": seconds, "boundObjectRef": reference},
            "status": {"token": token, "expirationTimestamp": expires.to_string()},
        }))
    }

    /// Whether a token is the one that the admission plugin puts into a pod, for this server: it lives for a year, so that
    /// a program that reads it only once goes on.
    fn is_extended(&self, seconds: i64, audiences: &[String], bound: &Bound) -> bool {
        let own = self.accounts.own_audiences();
        self.accounts.extend_expiration
            && bound.pod.is_some()
            && seconds == POD_TOKEN_SECONDS
            && audiences.iter().all(|audience| own.contains(audience))
    }
}

/// Whether a request for a token is for the account of this name and namespace, of which the body may leave both out. It is asked before the
/// account is looked up (`pkg/registry/core/serviceaccount/storage/token.go`).
///
/// # Errors
/// 422 when it names another one.
pub fn match_account(body: &Value, namespace: &str, name: &str) -> Result<(), ApiError> {
    for (field, is) in [("name", name), ("namespace", namespace)] {
        let asked = body["metadata"][field].as_str().unwrap_or_default();
        if !asked.is_empty() && asked != is {
            let why = format!("must match the service account {field} if specified");
            let error = FieldError::invalid(format!("metadata.{field}"), asked, why);
            return Err(ApiError::invalid_of(GROUP, KIND, name, &[error]));
        }
    }
    Ok(())
}

/// The uid may be left out of the body, but not be another one than the account's.
fn match_uid(request: &RequestMetadata, account: &ObjectMetadata) -> Result<(), ApiError> {
    match request.uid.as_deref().filter(|asked| !asked.is_empty() && *asked != account.uid) {
        Some(asked) => Err(other_account(&account.name, asked, &account.uid)),
        None => Ok(()),
    }
}

/// 409: the account is not the one that was meant, but another of its name.
fn other_account(name: &str, asked: &str, uid: &str) -> ApiError {
    let why = format!(
        "Operation cannot be fulfilled on {KIND}.{GROUP} {name:?}: the UID in the token request ({asked}) does not match the UID of the service account ({uid})"
    );
    ApiError::new(StatusCode::CONFLICT, "Conflict", why)
        .with_details(json!({"name": name, "group": GROUP, "kind": KIND}))
}

fn check_seconds(seconds: i64) -> Result<(), ApiError> {
    let why = match seconds {
        ..MIN_SECONDS => "may not specify a duration less than 10 minutes",
        MIN_SECONDS..=MAX_SECONDS => return Ok(()),
        _ => "may not specify a duration larger than 2^32 seconds",
    };
    let error = FieldError::invalid("spec.expirationSeconds", seconds, why);
    Err(ApiError::invalid_of(GROUP, KIND, "", &[error]))
}

/// What the token is bound to: always its account, and the pod (with its node), node or secret asked for.
fn bind(account: &Object, reference: Option<&BoundObject>, lookup: Lookup<'_>) -> Result<Bound, ApiError> {
    let ObjectMetadata { name, namespace, uid } = &account.metadata;
    let mut bound = Bound {
        namespace: namespace.clone(),
        node: None,
        pod: None,
        secret: None,
        serviceaccount: Reference { name: name.clone(), uid: uid.clone() },
        warnafter: None,
    };
    let Some(asked) = reference else { return Ok(bound) };
    let (group, version) = match asked.api_version.split_once('/') {
        None => ("", asked.api_version.as_str()),
        Some((group, version)) if !version.contains('/') => (group, version),
        // What does not parse is of no group and no version (`schema.FromAPIVersionAndKind`).
        Some(_) => ("", ""),
    };
    if group.is_empty() && matches!(asked.kind.as_str(), "Pod" | "Secret" | "Node") {
        object::check_key(&asked.name)?;
    }
    let find = |collection: &str, resource: &str, key: &str| {
        read::<Object>(lookup, collection, key)
            .ok_or_else(|| ApiError::not_found_in("", resource, &asked.name))
    };
    let found = match (group, asked.kind.as_str()) {
        ("", "Pod") => find("/pods", "pods", &format!("{namespace}/{}", asked.name))?,
        ("", "Secret") => find("/secrets", "secrets", &format!("{namespace}/{}", asked.name))?,
        ("", "Node") => find("/nodes", "nodes", &asked.name)?,
        (group, kind) => {
            let of = format!("{group}/{version}, Kind={kind}");
            return Err(ApiError::bad_request(format!("cannot bind token to object of type {of}")));
        }
    };
    if asked.kind == "Pod" && found.spec.service_account_name != *name {
        return Err(ApiError::bad_request(format!(
            "cannot bind token for serviceaccount {name:?} to pod running with different serviceaccount name."
        )));
    }
    if !asked.uid.is_empty() && asked.uid != found.metadata.uid {
        return Err(other_uid(asked));
    }
    let spec = found.spec;
    let found = Reference { name: found.metadata.name, uid: found.metadata.uid };
    match asked.kind.as_str() {
        "Pod" => {
            bound.node = node_of(&spec, lookup);
            bound.pod = Some(found);
        }
        "Secret" => bound.secret = Some(found),
        _ => bound.node = Some(found),
    }
    Ok(bound)
}

/// The node that a pod is on, if any; without a uid when the node itself is not there.
fn node_of(pod: &PodSpec, lookup: Lookup<'_>) -> Option<Reference> {
    let name = Some(pod.node_name.clone()).filter(|name| !name.is_empty())?;
    let uid = read::<Object>(lookup, "/nodes", &name).map(|node| node.metadata.uid).unwrap_or_default();
    Some(Reference { name, uid })
}

fn other_uid(asked: &BoundObject) -> ApiError {
    ApiError::new(
        StatusCode::CONFLICT,
        "Conflict",
        format!(
            "Operation cannot be fulfilled on {} {:?}: the UID in the bound object reference ({}) does not match the \
             UID in record. The object might have been deleted and then recreated",
            asked.kind, asked.name, asked.uid
        ),
    )
    .with_details(json!({"name": asked.name, "kind": asked.kind}))
}
