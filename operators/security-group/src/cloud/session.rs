//! A login that lasts: requests with a token, which is renewed before it runs out and when the cloud does not take it.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header};
use jiff::Timestamp;
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::Value;
use tokio::time::{self, Instant};

use super::{Access, CloudError, Network, Transport, Unreachable};

/// How long an answer may take.
const LONGEST: Duration = Duration::from_secs(30);
/// A token is renewed this much before it runs out, or when a quarter of its life is left, if that is less.
const MARGIN: Duration = Duration::from_secs(300);
/// How long a cloud that says 429 or 503, and not for how long, is left alone: at first, and at most.
const BUSY: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));
/// The longest that a cloud is left alone because it says so.
const LONGEST_BUSY: Duration = Duration::from_secs(300);

/// A cloud that one is, or will be, logged in to. Whoever shares it shares its token, and how busy the cloud is.
pub struct Session {
    access: Access,
    transport: Arc<dyn Transport>,
    token: tokio::sync::Mutex<Option<Arc<Token>>>,
    busy: Mutex<Busy>,
}

#[derive(Debug)]
struct Token {
    value: HeaderValue,
    /// From when on it is not used any more.
    stale: Instant,
    /// Where Neutron is, without the version.
    network: String,
    project: Option<String>,
}

#[derive(Debug, Default)]
struct Busy {
    /// Until when the cloud is left alone.
    until: Option<Instant>,
    /// How often it said so in a row.
    times: u32,
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").field("access", &self.access).finish_non_exhaustive()
    }
}

impl Session {
    /// A session that is not logged in yet.
    ///
    /// # Errors
    /// When the certificates are none.
    pub fn new(access: Access, network: &dyn Network) -> Result<Self, Unreachable> {
        let transport = network.transport(&access.trust)?;
        Ok(Self { access, transport, token: tokio::sync::Mutex::default(), busy: Mutex::default() })
    }

    /// How it gets in.
    #[must_use]
    pub fn access(&self) -> &Access {
        &self.access
    }

    /// The project that the credentials are for.
    ///
    /// # Errors
    /// What a login fails with.
    pub async fn project(&self) -> Result<Option<String>, CloudError> {
        Ok(self.token().await?.project.clone())
    }

    /// Sends a request to Neutron: `path` is behind `/v2.0`, or the whole of a URL that Neutron gave. `body` is JSON.
    ///
    /// # Errors
    /// [`CloudError`]: whatever is no success.
    pub async fn network(
        &self,
        method: &Method,
        path: &str,
        body: Option<&Value>,
        headers: &HeaderMap,
    ) -> Result<Bytes, CloudError> {
        let token = self.token().await?;
        let answer = self.try_network(&token, method, path, body, headers).await?;
        if answer.status() != StatusCode::UNAUTHORIZED {
            return self.outcome(answer);
        }
        // It was revoked, or clocks disagree.
        self.forget(&token).await;
        let token = self.token().await?;
        let answer = self.try_network(&token, method, path, body, headers).await?;
        self.outcome(answer)
    }

    async fn try_network(
        &self,
        token: &Token,
        method: &Method,
        path: &str,
        body: Option<&Value>,
        headers: &HeaderMap,
    ) -> Result<Response<Bytes>, CloudError> {
        // A next page comes with a whole URL, which a proxy may have got wrong: only what is behind the version counts.
        let path = path.split_once("/v2.0").map_or(path, |(_, path)| path);
        let mut request = request(method, &format!("{}/v2.0{path}", token.network), body)?;
        request.headers_mut().extend(headers.clone());
        request.headers_mut().insert("x-auth-token", token.value.clone());
        self.send(request).await
    }

    /// Sends a request, unless the cloud asked to be left alone.
    async fn send(&self, request: Request<Bytes>) -> Result<Response<Bytes>, CloudError> {
        if let Some(left) = self.busy_for() {
            return Err(CloudError::Busy(left));
        }
        let answer = match time::timeout(LONGEST, self.transport.send(request)).await {
            Ok(answer) => answer.map_err(|error| CloudError::Unreachable(error.to_string()))?,
            Err(_) => {
                return Err(CloudError::Unreachable(format!("no answer in {} s", LONGEST.as_secs())));
            }
        };
        if matches!(answer.status(), StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE) {
            return Err(CloudError::Busy(self.leave_alone(answer.headers())));
        }
        self.busy.lock().times = 0;
        Ok(answer)
    }

    fn outcome(&self, answer: Response<Bytes>) -> Result<Bytes, CloudError> {
        if answer.status().is_success() {
            return Ok(answer.into_body());
        }
        let refused = CloudError::refused(answer.status().as_u16(), answer.body());
        Err(if answer.status() == StatusCode::UNAUTHORIZED {
            CloudError::Unauthorized(refused.to_string())
        } else {
            refused
        })
    }

    fn busy_for(&self) -> Option<Duration> {
        let until = self.busy.lock().until?;
        let left = until.saturating_duration_since(Instant::now());
        (!left.is_zero()).then_some(left)
    }

    /// Notes that the cloud wants to be left alone; gives for how long.
    fn leave_alone(&self, headers: &HeaderMap) -> Duration {
        let asked = headers.get(header::RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
        let mut busy = self.busy.lock();
        let wait = match asked {
            Some(seconds) => Duration::from_secs(seconds).clamp(BUSY.0, LONGEST_BUSY),
            None => BUSY.0.saturating_mul(1 << busy.times.min(6)).min(BUSY.1),
        };
        busy.times += 1;
        busy.until = Some(Instant::now() + wait);
        wait
    }

    /// A token that is good for a while yet. One login at a time.
    async fn token(&self) -> Result<Arc<Token>, CloudError> {
        let mut kept = self.token.lock().await;
        if let Some(token) = kept.as_ref().filter(|token| Instant::now() < token.stale) {
            return Ok(Arc::clone(token));
        }
        let token = Arc::new(self.log_in().await?);
        *kept = Some(Arc::clone(&token));
        Ok(token)
    }

    /// Forgets a token that is no good, unless another one has come meanwhile.
    async fn forget(&self, token: &Arc<Token>) {
        let mut kept = self.token.lock().await;
        if kept.as_ref().is_some_and(|kept| Arc::ptr_eq(kept, token)) {
            *kept = None;
        }
    }

    async fn log_in(&self) -> Result<Token, CloudError> {
        let url = format!("{}/auth/tokens", self.access.auth_url);
        let answer = self.send(request(&Method::POST, &url, Some(&self.access.login()))?).await?;
        let status = answer.status();
        if !status.is_success() {
            let refused = CloudError::refused(status.as_u16(), answer.body());
            // An application credential that was deleted is 404.
            return Err(match status.as_u16() {
                400..=499 => CloudError::Unauthorized(refused.to_string()),
                _ => refused,
            });
        }
        self.read(&answer)
    }

    fn read(&self, answer: &Response<Bytes>) -> Result<Token, CloudError> {
        let nonsense = |what: &str| CloudError::Nonsense(format!("Keystone's login: {what}"));
        let mut value =
            answer.headers().get("x-subject-token").cloned().ok_or_else(|| nonsense("it has no token"))?;
        value.set_sensitive(true);
        let body: Login =
            serde_json::from_slice(answer.body()).map_err(|error| nonsense(&error.to_string()))?;
        let lives = body.token.expires_at.duration_since(body.token.issued_at);
        let lives = Duration::try_from(lives).unwrap_or_default();
        let stale = Instant::now() + lives.saturating_sub(MARGIN.min(lives / 4));
        let network = self.endpoint(&body.token.catalog)?;
        let network = network.trim_end_matches('/').trim_end_matches("/v2.0").to_owned();
        Ok(Token { value, stale, network, project: body.token.project.map(|project| project.id) })
    }

    fn endpoint(&self, catalog: &[Service]) -> Result<String, CloudError> {
        let endpoints = catalog.iter().filter(|service| service.kind == "network");
        let mut endpoints = endpoints.flat_map(|service| &service.endpoints).filter(|endpoint| {
            let region = endpoint.region_id.as_ref().or(endpoint.region.as_ref());
            endpoint.interface == self.access.interface
                && self.access.region.as_ref().is_none_or(|wanted| Some(wanted) == region)
        });
        endpoints.next().map(|endpoint| endpoint.url.clone()).ok_or_else(|| {
            let region = self.access.region.as_deref().unwrap_or("any");
            CloudError::Nonsense(format!(
                "its catalog has no network service ({} interface, region {region})",
                self.access.interface
            ))
        })
    }
}

fn request(method: &Method, url: &str, body: Option<&Value>) -> Result<Request<Bytes>, CloudError> {
    let mut request = Request::builder()
        .method(method)
        .uri(url)
        .header(header::ACCEPT, "application/json")
        .header(header::USER_AGENT, concat!("kubewright-security-group/", env!("CARGO_PKG_VERSION")));
    if body.is_some() {
        request = request.header(header::CONTENT_TYPE, "application/json");
    }
    let body = body.map_or_else(Bytes::new, |body| body.to_string().into());
    request.body(body).map_err(|error| CloudError::Nonsense(format!("{url:?} is no URL: {error}")))
}

#[derive(Deserialize)]
struct Login {
    token: Issued,
}

#[derive(Deserialize)]
struct Issued {
    issued_at: Timestamp,
    expires_at: Timestamp,
    #[serde(default)]
    catalog: Vec<Service>,
    project: Option<Project>,
}

#[derive(Deserialize)]
struct Project {
    id: String,
}

#[derive(Deserialize)]
struct Service {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    endpoints: Vec<Endpoint>,
}

#[derive(Deserialize)]
struct Endpoint {
    interface: String,
    region: Option<String>,
    region_id: Option<String>,
    url: String,
}
