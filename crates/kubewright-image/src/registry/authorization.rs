//! Says who asks: `docs/spec/auth/token.md` and `oauth.md` in `github.com/distribution/distribution`.

use base64::{Engine, engine::general_purpose::STANDARD};
use bytes::Bytes;
use http::{
    HeaderValue, Method, Response, Uri,
    header::{AUTHORIZATION, WWW_AUTHENTICATE},
};
use hyper::body::Incoming;
use serde::Deserialize;

use super::{
    RegistryError,
    challenge::Challenge,
    credentials::Credential,
    http::{Request, read},
    session::{Session, is_loopback},
};

/// What is sent with each request.
pub(super) struct Authorization;

#[derive(Deserialize)]
struct Token {
    #[serde(default)]
    token: String,
    #[serde(default)]
    access_token: String,
}

impl Authorization {
    /// What the registry wants to be told, by its answer `401`.
    pub(super) async fn answering(
        session: &Session<'_>,
        answer: Response<Incoming>,
    ) -> Result<HeaderValue, RegistryError> {
        let headers = answer.headers().get_all(WWW_AUTHENTICATE);
        let challenge = Challenge::best(headers.iter().filter_map(|value| value.to_str().ok()));
        match (challenge, &session.credential) {
            (Some(Challenge::Bearer { realm, service, scope }), _) => {
                token(session, &realm, service.as_deref(), scope).await
            }
            (Some(Challenge::Basic), Some(Credential::Password { user, password })) => {
                secret(session, "Basic", &basic(user, password))
            }
            _ => Err(session.refusal("authentication", answer).await),
        }
    }
}

/// Asks for a token.
async fn token(
    session: &Session<'_>,
    realm: &str,
    service: Option<&str>,
    scope: Option<String>,
) -> Result<HeaderValue, RegistryError> {
    let uri: Uri = realm.parse().map_err(|_| session.wrong("where it sends us for a token is no address"))?;
    let is_safe =
        uri.scheme_str() == Some("https") || session.plain_http || uri.host().is_some_and(is_loopback);
    if !is_safe {
        return Err(session.wrong("it sends us for a token to where there is no TLS"));
    }
    let repository = format!("repository:{}:", session.repository);
    // Registries ask for what the request needs; one token for all that is to be done saves asking twice.
    let scope = scope
        .filter(|scope| !scope.starts_with(&repository))
        .unwrap_or_else(|| repository + session.access.actions());
    let mut form = form_urlencoded::Serializer::new(String::new());
    form.extend_pairs(service.map(|service| ("service", service)));
    form.append_pair("scope", &scope);
    let request = match &session.credential {
        Some(Credential::IdentityToken(token)) => {
            form.append_pair("grant_type", "refresh_token");
            form.append_pair("client_id", "kubewright");
            form.append_pair("refresh_token", token);
            let body = Bytes::from(form.finish());
            Request::new(Method::POST, uri).body("application/x-www-form-urlencoded", body)
        }
        credential => {
            form.append_pair("client_id", "kubewright");
            let separator = if realm.contains('?') { '&' } else { '?' };
            let uri = format!("{realm}{separator}{}", form.finish());
            let uri =
                uri.parse().map_err(|_| session.wrong("where it sends us for a token is no address"))?;
            let request = Request::new(Method::GET, uri);
            match credential {
                Some(Credential::Password { user, password }) => {
                    request.header(AUTHORIZATION, secret(session, "Basic", &basic(user, password))?)
                }
                _ => request,
            }
        }
    };
    let answer = session.http.send(&request).await.map_err(|error| session.unreachable(error))?;
    if !answer.status().is_success() {
        return Err(session.refusal("authentication", answer).await);
    }
    let body = read(answer.into_body()).await.map_err(|error| session.unreachable(error))?;
    let token: Token =
        serde_json::from_slice(&body).map_err(|_| session.wrong("what it gives as a token is none"))?;
    let token = if token.token.is_empty() { token.access_token } else { token.token };
    secret(session, "Bearer", &token)
}

fn basic(user: &str, password: &str) -> String {
    STANDARD.encode(format!("{user}:{password}"))
}

/// A header that no log shows.
fn secret(session: &Session<'_>, scheme: &str, text: &str) -> Result<HeaderValue, RegistryError> {
    let mut value = HeaderValue::from_str(&format!("{scheme} {text}"))
        .map_err(|_| session.wrong("what it gives as a token is none"))?;
    value.set_sensitive(true);
    Ok(value)
}
