//! Tokens of a pod's service account (`pkg/kubelet/token`).

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::authentication::v1::{BoundObjectReference, TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::{Pod, ServiceAccountTokenProjection};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::place;

/// How long a token lives when the API server's defaults did not say (`SetDefaults_ServiceAccountTokenProjection`).
const DEFAULT_LIFE: i64 = 3600;

/// After how long a token is replaced however long it lives (`maxTTL`).
const LONGEST_USE: Duration = Duration::from_secs(24 * 3600);

/// How much earlier than it has to be a token may be replaced (`maxJitter`).
const JITTER: f64 = 10.0;

/// A token that a volume of a pod wants.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TokenNeed {
    /// Whom it is for; empty is the API server.
    pub audience: String,
    /// How long it is to live.
    pub expiration_seconds: i64,
}

impl TokenNeed {
    pub(super) fn of(projection: &ServiceAccountTokenProjection) -> Self {
        Self {
            audience: projection.audience.clone().unwrap_or_default(),
            expiration_seconds: projection.expiration_seconds.unwrap_or(DEFAULT_LIFE),
        }
    }

    /// What to ask of the subresource `token` of the pod's service account (`spec.serviceAccountName`, in its namespace):
    /// a token that is bound to the pod.
    #[must_use]
    pub fn request(&self, pod: &Pod) -> TokenRequest {
        let audiences = if self.audience.is_empty() { vec![] } else { vec![self.audience.clone()] };
        let bound = BoundObjectReference {
            api_version: Some("v1".to_owned()),
            kind: Some("Pod".to_owned()),
            name: Some(place::name(pod).to_owned()),
            uid: Some(place::uid(pod).to_owned()),
        };
        #[allow(clippy::needless_update, reason = "it has more fields in newer versions of k8s-openapi")]
        let spec = TokenRequestSpec {
            audiences: audiences.into(),
            bound_object_ref: Some(bound),
            expiration_seconds: Some(self.expiration_seconds),
            ..TokenRequestSpec::default()
        };
        TokenRequest { spec: spec.into(), ..TokenRequest::default() }
    }
}

/// A token that the API server gave. What it is, `Debug` does not tell.
#[derive(Clone, PartialEq, Eq)]
pub struct Token {
    value: String,
    expires: Timestamp,
    life: Duration,
}

impl Token {
    /// The token of the API server's answer; `None` when there is none in it.
    #[must_use]
    pub fn of(answer: &TokenRequest) -> Option<Self> {
        let status = answer.status.as_ref()?;
        // What is required differs from version to version of k8s-openapi: `From` takes both.
        let spec: Option<&TokenRequestSpec> = (&answer.spec).into();
        let token: Option<&String> = (&status.token).into();
        let expires: Option<&Time> = (&status.expiration_timestamp).into();
        let seconds = spec.and_then(|spec| spec.expiration_seconds).unwrap_or(DEFAULT_LIFE);
        Some(Self {
            value: token.filter(|token| !token.is_empty())?.clone(),
            expires: expires?.0,
            life: Duration::from_secs(u64::try_from(seconds).unwrap_or_default()),
        })
    }

    /// The token itself.
    #[must_use]
    pub fn value(&self) -> &str {
        &self.value
    }

    /// Whether it is no longer any good.
    #[must_use]
    pub fn has_expired(&self, now: Timestamp) -> bool {
        now > self.expires
    }

    /// When it has to be replaced: at four fifths of its life, or after a day; `spread`, from 0 to 1, is by how much of
    /// ten seconds earlier, so that not all pods ask at once (`requiresRefresh`). Until it [expires](Self::has_expired) it
    /// may be used all the same when the API server gives no other.
    #[must_use]
    pub fn due(&self, spread: f64) -> Timestamp {
        let earlier = Duration::from_secs_f64((JITTER * spread.clamp(0.0, 1.0)).floor());
        let fifth = Duration::from_secs(self.life.as_secs() * 20 / 100);
        let issued = self.expires.saturating_sub(self.life).unwrap_or(Timestamp::MIN);
        let by_life = self.expires.saturating_sub(fifth).unwrap_or(Timestamp::MIN);
        let by_use = issued.saturating_add(LONGEST_USE).unwrap_or(Timestamp::MAX);
        by_life.min(by_use).saturating_sub(earlier).unwrap_or(Timestamp::MIN)
    }

    /// Whether it is [due](Self::due).
    #[must_use]
    pub fn is_due(&self, now: Timestamp, spread: f64) -> bool {
        now > self.due(spread)
    }
}

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Token").field("expires", &self.expires).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::inputs::fixture::{NOW, object, pod};

    fn token(life: i64) -> Token {
        let expires = NOW + Duration::from_secs(life.unsigned_abs());
        Token::of(&object(json!({
            "spec": {"audiences": [], "expirationSeconds": life},
            "status": {"token": "secret", "expirationTimestamp": expires.to_string()}})))
        .unwrap()
    }

    #[test]
    fn it_is_asked_for_as_bound_to_the_pod() {
        let need = TokenNeed { audience: "vault".to_owned(), expiration_seconds: 600 };
        let request = kubewright_objects::to_value(&need.request(&pod(json!({"containers": []})))).unwrap();
        let bound = json!({"apiVersion": "v1", "kind": "Pod", "name": "web", "uid": "u1"});
        let spec = json!({"audiences": ["vault"], "boundObjectRef": bound, "expirationSeconds": 600});
        assert_eq!(request["spec"], spec);
    }

    #[test]
    fn it_is_due_at_four_fifths_of_its_life_or_after_a_day() {
        let after = |seconds: u64| NOW + Duration::from_secs(seconds);
        assert_eq!(token(3600).due(0.0), after(2880));
        assert!(!token(3600).is_due(after(2880), 0.0));
        assert!(token(3600).is_due(after(2881), 0.0));
        assert_eq!(token(3600).due(0.75), after(2873), "whole seconds earlier");
        assert_eq!(token(7 * 24 * 3600).due(0.0), after(24 * 3600));
        assert!(!token(3600).has_expired(after(3600)));
        assert!(token(3600).has_expired(after(3601)));
    }

    #[test]
    fn nobody_reads_it_in_a_log() {
        assert!(!format!("{:?}", token(3600)).contains("secret"));
    }
}
