//! A cloud in the test's process: Keystone and Neutron as HTTP services without sockets, in virtual time, with faults.
//!
//! It is held to the real servers by `contract`, which runs against both.

mod faults;
mod keystone;
mod neutron;
mod rules;
mod state;

use std::{collections::BTreeMap, sync::Arc};

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Method, Request, Response, StatusCode, header};
use kubewright::World;
use kubewright_security_group::cloud::{Access, Network, Transport, Trust, Unreachable};
use parking_lot::Mutex;
use serde_json::{Value, json};

pub(crate) use self::faults::Faults;
use self::{faults::Fault, state::State};

/// Where the cloud is.
pub(crate) const URL: &str = "http://cloud.test";

/// The cloud. Clones are the same one.
#[derive(Clone)]
pub(crate) struct Fake {
    state: Arc<Mutex<State>>,
    faults: Arc<Mutex<Option<Faults>>>,
    world: World,
    url: Arc<str>,
}

/// A request that the cloud has got.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Call {
    pub(crate) method: Method,
    /// With its query.
    pub(crate) path: String,
    pub(crate) status: u16,
}

/// What a service answers: a status and a body.
pub(crate) type Answer = (StatusCode, Value);

/// A request, taken apart.
pub(crate) struct Recorded {
    pub(crate) method: Method,
    pub(crate) path: Vec<String>,
    pub(crate) query: Vec<(String, String)>,
    pub(crate) headers: http::HeaderMap,
    pub(crate) body: Value,
}

impl Fake {
    pub(crate) fn new(world: &World) -> Self {
        Self::at(URL, world)
    }

    /// A cloud whose catalog says that it is at `url`.
    pub(crate) fn at(url: &str, world: &World) -> Self {
        let state = Arc::new(Mutex::new(State::new(world.clone())));
        Self { state, faults: Arc::default(), world: world.clone(), url: url.into() }
    }

    /// From now on (until `None`) some requests go wrong.
    pub(crate) fn set_faults(&self, faults: Option<Faults>) {
        *self.faults.lock() = faults;
    }

    /// Looks at, or changes, what is in the cloud.
    pub(crate) fn with<T>(&self, look: impl FnOnce(&mut State) -> T) -> T {
        look(&mut self.state.lock())
    }

    /// The requests so far that are not logins.
    pub(crate) fn calls(&self) -> Vec<Call> {
        self.with(|state| state.calls.clone())
    }

    /// How often somebody has tried to reach it.
    pub(crate) fn attempts(&self) -> usize {
        self.with(|state| state.attempts)
    }

    /// Starts to count anew.
    pub(crate) fn forget_calls(&self) {
        self.with(|state| state.calls.clear());
    }

    /// How a user of the cloud gets in.
    pub(crate) fn access(&self, user: &str) -> Access {
        access(&self.url, user)
    }

    /// Answers a request.
    pub(crate) fn answer(&self, request: &Request<Bytes>) -> Response<Bytes> {
        let asked = Recorded::of(request);
        let (status, body, token) = self.with(|state| {
            let (status, body, token) = match asked.path.first().map(String::as_str) {
                Some("v3") => keystone::answer(state, &self.url, &asked),
                Some("v2.0") => neutron::answer(state, &asked),
                _ => (StatusCode::NOT_FOUND, json!({}), None),
            };
            let path = request.uri().path_and_query().map(ToString::to_string).unwrap_or_default();
            state.calls.push(Call { method: asked.method.clone(), path, status: status.as_u16() });
            (status, body, token)
        });
        let mut response =
            Response::builder().status(status).header(header::CONTENT_TYPE, "application/json");
        if let Some(token) = token {
            response = response.header("x-subject-token", token);
        }
        let body = if status == StatusCode::NO_CONTENT { Bytes::new() } else { body.to_string().into() };
        response.body(body).expect("a good response")
    }
}

/// How `user` of the project of the same name gets into a cloud at `url`.
pub(crate) fn access(url: &str, user: &str) -> Access {
    let settings: BTreeMap<String, String> = [
        ("OS_AUTH_URL", format!("{url}/v3")),
        ("OS_USERNAME", user.to_owned()),
        ("OS_PASSWORD", "secret".to_owned()),
        ("OS_PROJECT_NAME", user.to_owned()),
        ("OS_REGION_NAME", "RegionOne".to_owned()),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into();
    Access::from_secret(&settings, None).expect("it is enough")
}

impl Recorded {
    fn of(request: &Request<Bytes>) -> Self {
        let decoded =
            |text: &str| percent_encoding::percent_decode_str(text).decode_utf8_lossy().into_owned();
        let pairs =
            request.uri().query().unwrap_or_default().split('&').filter_map(|pair| pair.split_once('='));
        Self {
            method: request.method().clone(),
            path: request.uri().path().trim_matches('/').split('/').map(decoded).collect(),
            query: pairs.map(|(name, value)| (decoded(name), decoded(value))).collect(),
            headers: request.headers().clone(),
            body: serde_json::from_slice(request.body()).unwrap_or_default(),
        }
    }

    /// The values that a list is filtered by.
    pub(crate) fn filter(&self, name: &str) -> Vec<&str> {
        self.query.iter().filter(|(key, _)| key == name).map(|(_, value)| value.as_str()).collect()
    }
}

impl Network for Fake {
    fn transport(&self, _: &Trust) -> Result<Arc<dyn Transport>, Unreachable> {
        Ok(Arc::new(self.clone()))
    }
}

impl Transport for Fake {
    fn send(&self, request: Request<Bytes>) -> BoxFuture<'_, Result<Response<Bytes>, Unreachable>> {
        Box::pin(async move {
            self.with(|state| state.attempts += 1);
            let fault = self.faults.lock().as_ref().and_then(|faults| faults.roll(&request));
            // On its way for some milliseconds, so that requests can overtake each other.
            let way = std::time::Duration::from_micros(500 + 100 * self.world.dice.below(200) as u64);
            tokio::time::sleep(way).await;
            match fault {
                None => Ok(self.answer(&request)),
                Some(fault) => self.go_wrong(fault, &request).await,
            }
        })
    }
}

impl Fake {
    async fn go_wrong(&self, fault: Fault, request: &Request<Bytes>) -> Result<Response<Bytes>, Unreachable> {
        let refusal = |status: u16, retry: Option<u64>| {
            let mut response = Response::builder().status(status);
            if let Some(seconds) = retry {
                response = response.header(header::RETRY_AFTER, seconds);
            }
            response.body(Bytes::from_static(b"busy")).expect("a good response")
        };
        Ok(match fault {
            Fault::Busy { status, retry } => refusal(status, retry),
            Fault::Broken => refusal(500, None),
            Fault::Unreachable => return Err(Unreachable("connection refused".to_owned())),
            Fault::LostAnswer => {
                self.answer(request);
                return Err(Unreachable("connection reset by peer".to_owned()));
            }
            Fault::Slow => {
                self.answer(request);
                tokio::time::sleep(std::time::Duration::from_secs(35)).await;
                return Err(Unreachable("connection reset by peer".to_owned()));
            }
            Fault::Revoked => {
                self.with(|state| state.tokens.clear());
                self.answer(request)
            }
            Fault::Overtaken => {
                self.with(State::touch_all_ports);
                self.answer(request)
            }
        })
    }
}
