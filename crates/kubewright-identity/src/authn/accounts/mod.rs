//! How the tokens of service accounts are issued and verified: the flags `--service-account-*` and `--api-audiences`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use super::keys::{Header, Jwk, KeyError, PublicKey, TokenKey};
use super::legacy::{self, LegacyClaims};
use super::secret::fingerprint;
use super::service_account::{Claims, ISSUER};
use super::{TokenError, common};

/// How many well signed tokens are remembered.
const MAX_VERIFIED: usize = 1024;

/// Between these a maximum of the lifetime has to be.
const LOWEST_MAXIMUM: Duration = Duration::from_secs(3600);
const HIGHEST_MAXIMUM: Duration = Duration::from_secs(1 << 32);

/// Issues and verifies the tokens of service accounts.
///
/// As long as nothing else is said, one issuer signs with one key, verifies with the same one, and is its own audience.
#[derive(Debug)]
pub struct ServiceAccounts {
    key: TokenKey,
    accepted: Vec<PublicKey>,
    issuers: Vec<String>,
    audiences: Vec<String>,
    pub(super) max_expiration: Option<Duration>,
    pub(super) extend_expiration: bool,
    jwks_uri: Option<String>,
    /// Tokens whose signature was good, by digest. It stays good; all else is looked at each time.
    verified: Mutex<BTreeMap<[u8; 32], Arc<Verified>>>,
}

/// What a well signed token says.
#[derive(Debug)]
pub(super) enum Verified {
    /// That of a TokenRequest.
    Bound(Box<Claims>),
    /// That of a Secret.
    Legacy(LegacyClaims),
}

/// Why service accounts cannot be set up so (`k8s.io/kubernetes/pkg/kubeapiserver/options/authentication.go` and
/// `pkg/controlplane/apiserver/options/options.go`).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ServiceAccountsError {
    /// No issuer at all.
    #[error("service-account-issuer is a required flag")]
    NoIssuer,
    /// An issuer without a name.
    #[error("service-account-issuer should not be an empty string")]
    EmptyIssuer,
    /// An issuer that looks like a URL and is none.
    #[error("service-account-issuer {0:?} contained a ':' but was not a valid URL: {1}")]
    IssuerUrl(String, String),
    /// The same issuer twice.
    #[error("service-account-issuer {0:?} is already specified")]
    RepeatedIssuer(String),
    /// A maximum that is too short or too long.
    #[error("the service-account-max-token-expiration must be between 1 hour and 2^32 seconds")]
    Expiration,
    /// A place of the keys that no one may get them from.
    #[error("service-account-jwks-uri requires https scheme, parsed as: {0}")]
    JwksUri(String),
}

/// The document of `/.well-known/openid-configuration`, with its members in the order of Kubernetes.
#[derive(Serialize)]
struct Configuration<'a> {
    issuer: &'a str,
    jwks_uri: &'a str,
    response_types_supported: [&'a str; 1],
    subject_types_supported: [&'a str; 1],
    id_token_signing_alg_values_supported: Vec<&'a str>,
}

impl ServiceAccounts {
    /// Tokens that this key signs and verifies.
    #[must_use]
    pub fn new(key: TokenKey) -> Self {
        let accepted = vec![key.public().clone()];
        let own = || vec![ISSUER.to_owned()];
        Self {
            key,
            accepted,
            issuers: own(),
            audiences: own(),
            max_expiration: None,
            extend_expiration: true,
            jwks_uri: None,
            verified: Mutex::default(),
        }
    }

    /// Tokens are verified by these keys alone (`--service-account-key-file`): the own one has to be among them if own
    /// tokens are to be good.
    #[must_use]
    pub fn verified_by(mut self, keys: Vec<PublicKey>) -> Self {
        self.accepted = keys;
        self
    }

    /// The first issuer issues, all are accepted (`--service-account-issuer`). They are also the audiences of the server:
    /// others have to be told after.
    ///
    /// # Errors
    /// When there is none, one is empty or no URL where it looks like one, or one is there twice.
    pub fn issuers(mut self, issuers: Vec<String>) -> Result<Self, ServiceAccountsError> {
        if issuers.is_empty() {
            return Err(ServiceAccountsError::NoIssuer);
        }
        for (index, issuer) in issuers.iter().enumerate() {
            if issuer.is_empty() {
                return Err(ServiceAccountsError::EmptyIssuer);
            }
            if let Some(why) = not_a_url(issuer) {
                return Err(ServiceAccountsError::IssuerUrl(issuer.clone(), why));
            }
            if issuers[..index].contains(issuer) {
                return Err(ServiceAccountsError::RepeatedIssuer(issuer.clone()));
            }
        }
        self.audiences.clone_from(&issuers);
        self.issuers = issuers;
        Ok(self)
    }

    /// Whom tokens have to be meant for to be good here (`--api-audiences`). None: the issuers.
    #[must_use]
    pub fn audiences(mut self, audiences: Vec<String>) -> Self {
        self.audiences = if audiences.is_empty() { self.issuers.clone() } else { audiences };
        self
    }

    /// Tokens live so long at most, whatever is asked for (`--service-account-max-token-expiration`).
    ///
    /// # Errors
    /// When it is not between one hour and 2^32 seconds.
    pub fn max_expiration(mut self, maximum: Duration) -> Result<Self, ServiceAccountsError> {
        if !(LOWEST_MAXIMUM..=HIGHEST_MAXIMUM).contains(&maximum) {
            return Err(ServiceAccountsError::Expiration);
        }
        self.max_expiration = Some(maximum);
        Ok(self)
    }

    /// Whether a pod's own token lives for a year and not for an hour (`--service-account-extend-token-expiration`). It
    /// does, as long as nothing else is said.
    #[must_use]
    pub fn extend_expiration(mut self, extend: bool) -> Self {
        self.extend_expiration = extend;
        self
    }

    /// Where others are told to get the keys (`--service-account-jwks-uri`): elsewhere than from this server.
    ///
    /// # Errors
    /// When it is not a URL of HTTPS.
    pub fn jwks_uri(mut self, uri: impl Into<String>) -> Result<Self, ServiceAccountsError> {
        let uri = uri.into();
        if !uri.starts_with("https://") {
            return Err(ServiceAccountsError::JwksUri(uri));
        }
        self.jwks_uri = Some(uri);
        Ok(self)
    }

    /// Who issues the tokens.
    pub(super) fn issuer(&self) -> &str {
        self.issuers.first().map_or("", String::as_str)
    }

    /// Whom tokens have to be meant for to be good here.
    pub(super) fn own_audiences(&self) -> &[String] {
        &self.audiences
    }

    /// The token of a Secret for an account: without audience and end, and good for as long as the Secret holds it
    /// (`k8s.io/kubernetes/pkg/serviceaccount/legacy.go`).
    ///
    /// # Errors
    /// When the machine gives no entropy.
    pub fn legacy_token(
        &self,
        namespace: &str,
        (account, uid): (&str, &str),
        secret: &str,
    ) -> Result<String, KeyError> {
        self.key.sign(&LegacyClaims::new(namespace, (account, uid), secret))
    }

    pub(super) fn sign(&self, claims: &Claims) -> Result<String, KeyError> {
        self.key.sign(claims)
    }

    /// What a token says, and for which of the audiences asked about it is meant, when one of the keys has signed it and
    /// one of the issuers is said to have issued it (`k8s.io/kubernetes/pkg/serviceaccount/jwt.go`).
    pub(super) fn verify(
        &self,
        token: &str,
        asked: &[String],
    ) -> Result<(Arc<Verified>, Vec<String>), TokenError> {
        let print = fingerprint(token);
        let known = self.verified.lock().get(&print).cloned();
        let claims = match known {
            Some(known) => known,
            None => {
                let claims = Arc::new(self.read(token)?);
                let mut verified = self.verified.lock();
                if verified.len() >= MAX_VERIFIED {
                    verified.clear();
                }
                verified.insert(print, Arc::clone(&claims));
                claims
            }
        };
        let meant = match &*claims {
            Verified::Bound(claims) if !claims.aud.is_empty() => &claims.aud,
            Verified::Bound(_) | Verified::Legacy(_) => &self.audiences,
        };
        let audiences = common(asked, meant)?;
        Ok((claims, audiences))
    }

    /// What a token says, when it is well signed.
    fn read(&self, token: &str) -> Result<Verified, TokenError> {
        #[derive(Deserialize)]
        struct Issued {
            #[serde(default)]
            iss: String,
        }
        let (signed, signature) = token.rsplit_once('.').ok_or(TokenError::Unknown)?;
        let (header, claims) = signed.split_once('.').ok_or(TokenError::Unknown)?;
        let payload = URL_SAFE_NO_PAD.decode(claims).map_err(|_| TokenError::Unknown)?;
        let issued: Issued = serde_json::from_slice(&payload).map_err(|_| TokenError::Unknown)?;
        let legacy = issued.iss == legacy::ISSUER;
        if !legacy && !self.issuers.contains(&issued.iss) {
            return Err(TokenError::Unknown);
        }
        let signature = URL_SAFE_NO_PAD.decode(signature).map_err(|_| TokenError::Unknown)?;
        self.check(header, signed.as_bytes(), &signature)?;
        let said = match legacy {
            true => serde_json::from_slice(&payload).map(Verified::Legacy),
            false => serde_json::from_slice(&payload).map(|claims| Verified::Bound(Box::new(claims))),
        };
        said.map_err(|_| TokenError::Claims)
    }

    /// Whether one of the keys has signed this: that which the header names, or any if it names none.
    fn check(&self, header: &str, signed: &[u8], signature: &[u8]) -> Result<(), TokenError> {
        if let Some(key) = self.accepted.iter().find(|key| key.wrote(header)) {
            let good = key.verify(key.algorithm(), signed, signature);
            return if good { Ok(()) } else { Err(TokenError::Signature) };
        }
        let header = URL_SAFE_NO_PAD.decode(header).map_err(|_| TokenError::Unknown)?;
        let header: Header = serde_json::from_slice(&header).map_err(|_| TokenError::Unknown)?;
        let mut named = self.accepted.iter().filter(|key| header.kid.is_empty() || key.id() == header.kid);
        let mut any = false;
        let good = named.any(|key| {
            any = true;
            key.verify(&header.alg, signed, signature)
        });
        match (good, any) {
            (true, _) => Ok(()),
            (false, true) => Err(TokenError::Signature),
            (false, false) => Err(TokenError::NoKey),
        }
    }

    /// What `/openid/v1/jwks` tells.
    #[must_use]
    pub fn key_set(&self) -> String {
        #[derive(Serialize)]
        struct KeySet {
            keys: Vec<Jwk>,
        }
        let keys = self.accepted.iter().map(PublicKey::jwk).collect();
        serde_json::to_string(&KeySet { keys }).unwrap_or_default()
    }

    /// What `/.well-known/openid-configuration` tells of a server at an address (`host:port`); `None` when the issuer is
    /// not one that OpenID Connect allows, so that there is nothing to discover
    /// (`k8s.io/kubernetes/pkg/serviceaccount/openidmetadata.go`).
    #[must_use]
    pub fn configuration(&self, address: &str) -> Option<String> {
        let issuer = self.issuer();
        if !issuer.starts_with("https://") || issuer.contains(['?', '#']) {
            return None;
        }
        let mut algorithms: Vec<&str> = self.accepted.iter().map(PublicKey::algorithm).collect();
        algorithms.sort_unstable();
        algorithms.dedup();
        let here = || format!("https://{address}/openid/v1/jwks");
        let document = Configuration {
            issuer,
            jwks_uri: &self.jwks_uri.clone().unwrap_or_else(here),
            response_types_supported: ["id_token"],
            subject_types_supported: ["public"],
            id_token_signing_alg_values_supported: algorithms,
        };
        serde_json::to_string(&document).ok()
    }
}

/// Why a text with a colon in it is no URL (`net/url`, `Parse`); `None` when it is one, or has no colon.
fn not_a_url(text: &str) -> Option<String> {
    let wrong = |why: &str| Some(format!("parse {text:?}: {why}"));
    let (scheme, rest) = text.split_once(':')?;
    if text.bytes().any(|byte| byte < 0x20 || byte == 0x7f) {
        return wrong("net/url: invalid control character in URL");
    }
    if scheme.is_empty() {
        return wrong("missing protocol scheme");
    }
    let letter = scheme.as_bytes()[0].is_ascii_alphabetic();
    if !letter || !scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte)) {
        // Of a path, only what stands after its first slash may have colons.
        return if scheme.contains('/') {
            None
        } else {
            wrong("first path segment in URL cannot contain colon")
        };
    }
    let authority = rest.strip_prefix("//")?.split(['/', '?', '#']).next().unwrap_or_default();
    let port = authority.rsplit_once(':').map(|(_, port)| port).filter(|port| !port.ends_with(']'))?;
    if port.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    wrong(&format!("invalid port {:?} after host", format!(":{port}")))
}

#[cfg(test)]
mod tests;
