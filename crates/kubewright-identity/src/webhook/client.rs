//! The client: one call is one POST and its answer, in time.

use std::collections::BTreeMap;
use std::error::Error;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST, LOCATION, USER_AGENT};
use http::{Method, Request, Response};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper_util::client::legacy;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use kubewright_serve::tls::{ServingCertificate, WorldTime};
use kubewright_world::Clock;
use parking_lot::Mutex;
use rustls::ClientConfig;
use rustls::crypto::ring;
use rustls::pki_types::ServerName;
use tokio::time::Instant;

use super::answer;
use super::connect::{self, Connector, Destination, NotConnected};
use super::service::{self, Place, Resolve};
use super::target::Target;
use super::trust::Trust;

/// How long a connection may be idle (Go's `http.Transport` as client-go sets it up).
const IDLE: Duration = Duration::from_secs(90);
/// How many idle connections to one webhook are kept.
const MAX_IDLE: usize = 25;
/// How many webhooks connections are kept for.
pub(super) const MAX_WEBHOOKS: usize = 200;
/// How often a webhook may send its caller elsewhere (Go's `http.Client`).
const MAX_REDIRECTS: usize = 10;
/// The largest answer, so that a broken webhook does not fill the memory. kube-apiserver has no limit.
const MAX_ANSWER: usize = 64 * 1024 * 1024;

/// A webhook in this process, called without a socket.
pub trait Local: Send + Sync + 'static {
    /// The answer to a request, or `None` when no server of this process has its URL. The future is dropped when the
    /// webhook's time is over.
    fn call(&self, request: &Request<Bytes>) -> Option<BoxFuture<'static, Response<Bytes>>>;
}

/// Why a webhook gave no answer, in kube-apiserver's words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// It cannot be called at all: its `clientConfig` makes no sense.
    #[error("{0}")]
    Setup(String),
    /// The call failed, or the answer is a refusal.
    #[error("{0}")]
    Call(String),
    /// The server is asked too much, or has an error of its own: it may answer when it is asked again
    /// (`k8s.io/apiserver/pkg/util/webhook`, `DefaultShouldRetry`).
    #[error("{0}")]
    Later(String),
}

type Connections = legacy::Client<Connector, Full<Bytes>>;

/// Says of a node, by its name, whether its pods run and can be called.
pub(super) type RunsPods = dyn Fn(&str) -> bool + Send + Sync;

/// Calls webhooks. Connections are kept and used again.
pub struct Client {
    clock: Clock,
    local: Mutex<Vec<Arc<dyn Local>>>,
    runs_pods: Mutex<Arc<RunsPods>>,
    remote: Mutex<BTreeMap<(Target, Destination), Connections>>,
}

/// One request.
struct Call {
    target: Target,
    method: Method,
    url: String,
    body: Bytes,
}

impl Client {
    /// A client by whose `clock` webhooks are waited for, and certificates are good.
    #[must_use]
    pub fn new(clock: Clock) -> Self {
        Self {
            clock,
            local: Mutex::default(),
            runs_pods: Mutex::new(Arc::new(|_| false)),
            remote: Mutex::default(),
        }
    }

    /// Asks `local` first from now on.
    pub fn attach(&self, local: Arc<dyn Local>) {
        self.local.lock().insert(0, local);
    }

    /// Calls the pods of the nodes of which `runs_pods` holds too from now on: these run, where others are simulated.
    pub fn reach_pods_of(&self, runs_pods: impl Fn(&str) -> bool + Send + Sync + 'static) {
        *self.runs_pods.lock() = Arc::new(runs_pods);
    }

    /// Sends `body` (JSON) to `target` and gives back the body of the answer (JSON). A service is found by `services`.
    ///
    /// # Errors
    /// When there is no good answer within `timeout`.
    pub async fn post(
        &self,
        target: &Target,
        services: &dyn Resolve,
        body: Bytes,
        timeout: Duration,
    ) -> Result<Bytes, Failure> {
        let seconds = timeout.as_secs() + u64::from(timeout.subsec_nanos() > 0);
        let deadline = Instant::now() + timeout;
        let mut call = Call { target: target.clone(), method: Method::POST, url: target.url(seconds), body };
        for _ in 0..=MAX_REDIRECTS {
            let left = deadline.saturating_duration_since(Instant::now());
            let answered = self.clock.wait_outside(left, self.send(&call, services)).await;
            let answer = answered.map_err(|_| call.failed("context deadline exceeded"))??;
            match call.redirected(&answer)? {
                Some(next) => call = next,
                None => return answer::content(answer),
            }
        }
        Err(call.failed(&format!("stopped after {MAX_REDIRECTS} redirects")))
    }

    async fn send(&self, call: &Call, services: &dyn Resolve) -> Result<Response<Bytes>, Failure> {
        let request = call.request()?;
        let local = self.local.lock().clone();
        match local.iter().find_map(|local| local.call(&request)) {
            Some(answer) => Ok(answer.await),
            None => self.send_out(call, request, services).await,
        }
    }

    async fn send_out(
        &self,
        call: &Call,
        request: Request<Bytes>,
        services: &dyn Resolve,
    ) -> Result<Response<Bytes>, Failure> {
        let target = &call.target;
        let destination = match &target.service {
            None => destination(&target.host, target.port),
            Some(service) => {
                let place = services.resolve(&service.namespace, &service.name, target.port);
                match place.map_err(|why| call.failed(&why))? {
                    Place::Endpoints { cluster_ip, endpoints } => {
                        let runs_pods = Arc::clone(&self.runs_pods.lock());
                        let reachable = service::reachable(cluster_ip, &endpoints, &*runs_pods);
                        Destination::Addresses(reachable.map_err(|why| call.failed(&why))?)
                    }
                    Place::Host(host, port) => destination(&host, port),
                }
            }
        };
        let connections = self.connections(target, destination).map_err(Failure::Setup)?;
        let response = connections.request(request.map(Full::new)).await;
        let (parts, body) = response.map_err(|error| call.failed(&explain(&error)))?.into_parts();
        let body = Limited::new(body, MAX_ANSWER).collect().await.map_err(|error| {
            let why = if error.is::<LengthLimitError>() {
                format!("the response is larger than {MAX_ANSWER} bytes")
            } else {
                explain(error.as_ref())
            };
            Failure::Call(format!(
                "unexpected error when reading response body. Please retry. Original error: {why}"
            ))
        })?;
        Ok(Response::from_parts(parts, body.to_bytes()))
    }

    /// The connections to a target, the kept ones where there are any.
    fn connections(&self, target: &Target, destination: Destination) -> Result<Connections, String> {
        let mut remote = self.remote.lock();
        let key = (target.clone(), destination);
        if let Some(kept) = remote.get(&key) {
            return Ok(kept.clone());
        }
        let connections = self.connect(target, key.1.clone())?;
        if remote.len() >= MAX_WEBHOOKS {
            remote.clear();
        }
        remote.insert(key, connections.clone());
        Ok(connections)
    }

    fn connect(&self, target: &Target, destination: Destination) -> Result<Connections, String> {
        Ok(kept(connector(self.clock, target, destination)?))
    }
}

/// What connects to a target at a destination, with what both sides have to show.
///
/// # Errors
/// When the bundle or the credentials of the target cannot be read.
pub(super) fn connector(
    clock: Clock,
    target: &Target,
    destination: Destination,
) -> Result<Connector, String> {
    let provider = Arc::new(ring::default_provider());
    let trust = Trust::new(Arc::clone(&provider), &target.bundle)?;
    let access = target.access.as_deref();
    let trust = if access.is_some_and(|access| access.insecure) { trust.blind() } else { trust };
    let tls = ClientConfig::builder_with_details(provider, Arc::new(WorldTime(clock)))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(trust));
    let mut tls = match access.and_then(|access| access.credentials.as_ref()) {
        None => tls.with_no_client_auth(),
        Some(shown) => {
            let shown = ServingCertificate::of_pem(&shown.chain, &shown.key);
            let (chain, key) = shown.map_err(|error| error.to_string())?.into_parts();
            tls.with_client_auth_cert(chain, key).map_err(|error| error.to_string())?
        }
    };
    if target.may_use_http2() {
        tls.alpn_protocols.push(b"h2".to_vec());
    }
    tls.alpn_protocols.push(b"http/1.1".to_vec());
    let name = access.and_then(|access| access.server_name.as_ref()).unwrap_or(&target.host);
    let server_name = ServerName::try_from(name.clone()).map_err(|error| error.to_string())?;
    Ok(Connector { destination, server_name, tls: Arc::new(tls), in_process: None })
}

/// Connections that are kept and used again.
pub(super) fn kept<B>(connector: Connector) -> legacy::Client<Connector, B>
where
    B: hyper::body::Body + Send,
    B::Data: Send,
{
    legacy::Client::builder(TokioExecutor::new())
        .pool_timer(TokioTimer::new())
        .timer(TokioTimer::new())
        .pool_idle_timeout(IDLE)
        .pool_max_idle_per_host(MAX_IDLE)
        .build(connector)
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Client")
    }
}

impl Call {
    fn request(&self) -> Result<Request<Bytes>, Failure> {
        let access = self.target.access.as_deref();
        let mut request = Request::builder()
            .method(&self.method)
            .uri(&self.url)
            .header(HOST, &self.target.authority)
            .header(ACCEPT, "application/json, */*")
            .header(CONTENT_TYPE, "application/json")
            .header(USER_AGENT, if access.is_some() { "kube-apiserver" } else { "kube-apiserver-admission" });
        if let Some(authorization) = access.and_then(|access| access.authorization.as_ref()) {
            request = request.header(AUTHORIZATION, authorization);
        }
        request.body(self.body.clone()).map_err(|error| self.failed(&error.to_string()))
    }

    /// Where an answer sends the caller: with the same request (307, 308), or to get something there.
    fn redirected(&self, answer: &Response<Bytes>) -> Result<Option<Self>, Failure> {
        let keeps = matches!(answer.status().as_u16(), 307 | 308);
        let location = answer.headers().get(LOCATION).and_then(|location| location.to_str().ok());
        let Some(location) = location.filter(|_| keeps || matches!(answer.status().as_u16(), 301..=303))
        else {
            return Ok(None);
        };
        let url = match location.strip_prefix('/') {
            Some(path) => format!("https://{}/{path}", self.target.authority),
            None => location.to_owned(),
        };
        let target = self.target.moved_to(&url).map_err(|why| self.failed(&why))?;
        let (method, body) =
            if keeps { (self.method.clone(), self.body.clone()) } else { (Method::GET, Bytes::new()) };
        Ok(Some(Self { target, method, url, body }))
    }

    /// `Post "<url>": <why>`, as Go's `net/http` says it.
    fn failed(&self, why: &str) -> Failure {
        let method = if self.method == Method::POST { "Post" } else { "Get" };
        Failure::Call(format!("{method} {:?}: {why}", self.url))
    }
}

pub(super) fn destination(host: &str, port: u16) -> Destination {
    match host.parse() {
        Ok(address) => Destination::Addresses(vec![std::net::SocketAddr::new(address, port)]),
        Err(_) => Destination::Host(host.to_owned(), port),
    }
}

/// The cause of a failure of hyper, in Go's words where Go has some.
pub(super) fn explain(error: &(dyn Error + 'static)) -> String {
    let mut cause = error;
    loop {
        if let Some(not_connected) = cause.downcast_ref::<NotConnected>() {
            return not_connected.0.clone();
        }
        if let Some(error) = cause.downcast_ref::<io::Error>() {
            return match error.kind() {
                io::ErrorKind::UnexpectedEof => "EOF".to_owned(),
                _ => connect::text(error),
            };
        }
        if cause.downcast_ref::<hyper::Error>().is_some_and(hyper::Error::is_incomplete_message) {
            return "EOF".to_owned();
        }
        match cause.source() {
            Some(deeper) => cause = deeper,
            None => return cause.to_string(),
        }
    }
}
