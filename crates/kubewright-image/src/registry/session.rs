//! What is said to one registry about one repository: with authorization, again where it makes sense, and elsewhere where it
//! says so.

use std::{net::IpAddr, sync::Mutex, time::Duration};

use http::{
    HeaderMap, HeaderValue, Method, Response, StatusCode, Uri,
    header::{AUTHORIZATION, LOCATION, RETRY_AFTER},
};
use hyper::body::Incoming;
use tokio::time::sleep;

use super::{
    Access, RegistryError,
    authorization::Authorization,
    credentials::Credential,
    error::message,
    http::{Http, NoAnswer, Request, read},
};
use crate::Reference;

/// How often something is tried that may go well later.
const TRIES: u32 = 5;
/// How long is waited before it is tried for the second time; then twice that.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
/// The longest that a registry may make us wait.
const MAX_PAUSE: Duration = Duration::from_secs(60);
/// How often one may be sent elsewhere.
const MAX_REDIRECTS: u32 = 5;

/// A repository of a registry that answers.
#[derive(Debug)]
pub(super) struct Session<'a> {
    pub(super) http: &'a Http,
    /// `https://registry.example:5000`, without a path.
    origin: String,
    /// Host and port as people say them.
    pub(super) registry: String,
    /// The path in the registry.
    pub(super) repository: String,
    pub(super) access: Access,
    pub(super) credential: Option<Credential>,
    /// Whether secrets may be sent without TLS, as all is.
    pub(super) plain_http: bool,
    /// What is sent with requests.
    authorization: Mutex<Option<HeaderValue>>,
}

impl<'a> Session<'a> {
    /// Asks the registry of a name whether it is there, with TLS or, where that is allowed, without.
    pub(super) async fn open(
        http: &'a Http,
        name: &Reference,
        access: Access,
        credential: Option<Credential>,
        plain_http: bool,
    ) -> Result<Self, RegistryError> {
        let host = match name.domain() {
            "docker.io" => "registry-1.docker.io",
            domain => domain,
        };
        let plain_http = plain_http || is_loopback(host);
        let mut refused = None;
        for scheme in ["https", "http"].into_iter().take(1 + usize::from(plain_http)) {
            let origin = format!("{scheme}://{host}");
            let Ok(uri) = format!("{origin}/v2/").parse::<Uri>() else { break };
            match http.send(&Request::new(Method::GET, uri)).await {
                // Whatever it answers, it speaks HTTP; but this is how one that speaks TLS answers what does not.
                Ok(answer) if answer.status() != StatusCode::BAD_REQUEST => {
                    return Ok(Self {
                        http,
                        origin,
                        registry: name.domain().to_owned(),
                        repository: name.repository().to_owned(),
                        access,
                        credential,
                        plain_http: scheme == "http",
                        authorization: Mutex::default(),
                    });
                }
                Ok(answer) => {
                    let reason = answer.status().to_string();
                    refused.get_or_insert(NoAnswer { reason, no_tls: false });
                }
                Err(error) => drop(refused.get_or_insert(error)),
            }
        }
        let NoAnswer { reason, no_tls } =
            refused.unwrap_or_else(|| NoAnswer { reason: format!("{host:?} is no host"), no_tls: false });
        Err(RegistryError::Unreachable {
            registry: name.domain().to_owned(),
            reason,
            plain_http: no_tls && !plain_http,
        })
    }

    /// An address of the repository, such as `blobs/…`.
    pub(super) fn uri(&self, rest: &str) -> Result<Uri, RegistryError> {
        self.parse(&format!("{}/v2/{}/{rest}", self.origin, self.repository))
    }

    /// Where the answer to a request at `from` sends us; a query may follow.
    pub(super) fn location(&self, from: &Uri, headers: &HeaderMap) -> Result<Uri, RegistryError> {
        let location = headers.get(LOCATION).and_then(|value| value.to_str().ok());
        let Some(location) = location else { return Err(self.wrong("it does not say where to go on")) };
        let (scheme, authority) =
            (from.scheme_str().unwrap_or("https"), from.authority().map_or("", |a| a.as_str()));
        let uri = match location {
            location if location.contains("://") => self.parse(location)?,
            location if location.starts_with('/') => {
                self.parse(&format!("{scheme}://{authority}{location}"))?
            }
            // Some say it relative to where they were asked.
            location => {
                let folder = from.path().rsplit_once('/').map_or("", |(folder, _)| folder);
                self.parse(&format!("{scheme}://{authority}{folder}/{location}"))?
            }
        };
        if uri.scheme_str() != Some("https") && !self.plain_http {
            return Err(self.wrong("it sends us to where there is no TLS"));
        }
        Ok(uri)
    }

    fn parse(&self, text: &str) -> Result<Uri, RegistryError> {
        text.parse().map_err(|_| self.wrong("it sends us to what is no address"))
    }

    /// Sends a request, and again if the registry is busy or the line breaks. The answer is a success, or `404`.
    pub(super) async fn send(
        &self,
        action: &'static str,
        request: Request,
    ) -> Result<Response<Incoming>, RegistryError> {
        let answer = self.ask(request).await?;
        match answer.status() {
            status if status.is_success() || status == StatusCode::NOT_FOUND => Ok(answer),
            _ => Err(self.refusal(action, answer).await),
        }
    }

    /// Sends a request once. The answer is whatever it is.
    pub(super) async fn once(&self, request: &Request) -> Result<Response<Incoming>, RegistryError> {
        self.http.send(&self.signed(request)).await.map_err(|error| self.unreachable(error))
    }

    /// Sends a request, and again if the registry is busy or the line breaks. The answer is the last one, whatever it is.
    async fn ask(&self, mut request: Request) -> Result<Response<Incoming>, RegistryError> {
        let (mut tries, mut redirects, mut authorized) = (1, 0, false);
        loop {
            let answer = match self.http.send(&self.signed(&request)).await {
                Ok(answer) => answer,
                Err(_) if tries < TRIES => {
                    sleep(pause(tries, None)).await;
                    tries += 1;
                    continue;
                }
                Err(error) => return Err(self.unreachable(error)),
            };
            let status = answer.status();
            if status == StatusCode::UNAUTHORIZED && !authorized && self.is_home(&request.uri) {
                authorized = true;
                let authorization = Authorization::answering(self, answer).await?;
                self.authorize(authorization);
            } else if is_redirect(status) && is_safe(&request.method) && redirects < MAX_REDIRECTS {
                redirects += 1;
                request.uri = self.location(&request.uri, answer.headers())?;
            } else if may_go_well_later(status) && tries < TRIES {
                sleep(pause(tries, answer.headers().get(RETRY_AFTER))).await;
                tries += 1;
            } else {
                return Ok(answer);
            }
        }
    }

    /// The request with what says who asks, where that is the business of whom it goes to.
    fn signed(&self, request: &Request) -> Request {
        let authorization =
            self.authorization.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone();
        match authorization.filter(|_| self.is_home(&request.uri)) {
            Some(authorization) => request.clone().header(AUTHORIZATION, authorization),
            None => request.clone(),
        }
    }

    fn authorize(&self, value: HeaderValue) {
        *self.authorization.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(value);
    }

    /// Whether an address is the registry's own.
    fn is_home(&self, uri: &Uri) -> bool {
        let authority = uri.authority().map_or("", |authority| authority.as_str());
        format!("{}://{authority}", uri.scheme_str().unwrap_or_default()) == self.origin
    }

    pub(super) fn wrong(&self, reason: impl Into<String>) -> RegistryError {
        RegistryError::Wrong { registry: self.registry.clone(), reason: reason.into() }
    }

    pub(super) fn unreachable(&self, error: NoAnswer) -> RegistryError {
        RegistryError::Unreachable {
            registry: self.registry.clone(),
            reason: error.reason,
            plain_http: false,
        }
    }

    /// What a refusal means.
    pub(super) async fn refusal(&self, action: &'static str, answer: Response<Incoming>) -> RegistryError {
        let status = answer.status();
        let message = message(&read(answer.into_body()).await.unwrap_or_default());
        let (registry, repository) = (self.registry.clone(), self.repository.clone());
        match status {
            StatusCode::UNAUTHORIZED => RegistryError::Unauthorized {
                registry,
                repository,
                known: self.credential.is_some(),
                message,
            },
            StatusCode::FORBIDDEN => RegistryError::Denied { registry, action, repository, message },
            status => RegistryError::Refused { registry, action, status, message },
        }
    }
}

fn is_safe(method: &Method) -> bool {
    [Method::GET, Method::HEAD].contains(method)
}

fn is_redirect(status: StatusCode) -> bool {
    [301, 302, 303, 307, 308].contains(&status.as_u16())
}

fn may_go_well_later(status: StatusCode) -> bool {
    [408, 429, 500, 502, 503, 504].contains(&status.as_u16())
}

/// How long to wait before something is tried again: what the registry says in seconds, or twice as long as the last time.
fn pause(tries: u32, retry_after: Option<&HeaderValue>) -> Duration {
    let told =
        retry_after.and_then(|value| value.to_str().ok()?.trim().parse().ok()).map(Duration::from_secs);
    told.unwrap_or(FIRST_PAUSE * 2_u32.saturating_pow(tries - 1)).min(MAX_PAUSE)
}

/// Whether a host, with or without port, is this machine for sure.
pub(super) fn is_loopback(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    name == "localhost" || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod unit_tests {
    use super::*;

    #[test]
    fn only_this_machine_is_loopback() {
        for host in ["localhost", "localhost:5000", "127.0.0.1:5000", "127.8.9.1", "[::1]:5000", "[::1]"] {
            assert!(is_loopback(host), "{host}");
        }
        for host in ["localhost.example", "127.0.0.1.example:5000", "10.0.0.1", "[2001:db8::1]:5000", ""] {
            assert!(!is_loopback(host), "{host}");
        }
    }

    #[test]
    fn pauses_grow_and_are_what_the_registry_says() {
        assert_eq!(pause(1, None), Duration::from_millis(500));
        assert_eq!(pause(3, None), Duration::from_secs(2));
        assert_eq!(pause(1, Some(&HeaderValue::from_static("7"))), Duration::from_secs(7));
        assert_eq!(pause(1, Some(&HeaderValue::from_static("99999"))), MAX_PAUSE);
        assert_eq!(pause(1, Some(&HeaderValue::from_static("soon"))), Duration::from_millis(500));
    }
}
