//! The service: every request is answered, whatever happens on the way.

use std::convert::Infallible;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use http::header::{HeaderName, HeaderValue};
use http::request::Parts;
use http::{HeaderMap, Request, Response, StatusCode};
use http_body::Body;
use kubewright_codec::negotiate;
use kubewright_codec::request::{Path, Query, Target};
use kubewright_engine::Engine;
use kubewright_engine::verbs;
use kubewright_identity::authn::{ANONYMOUS, Authenticator, User, impersonation};
use kubewright_identity::authz::{Attributes, Decision, Rights, forbidden};
use kubewright_identity::webhook::Upstreams;
use kubewright_kinds::Summary;
use kubewright_kinds::selector::FieldSelector;
use kubewright_meta::ApiError;
use kubewright_meta::selector::LabelSelector;
use kubewright_store::Snapshot;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::aggregation::{self, Aggregation};
use super::in_flight::InFlight;
use super::incoming::{self, BoxError, RequestBody};
use super::listener::{RemoteAddress, Visitor};
use super::places::{Length, Places};
use super::response_body::ResponseBody;
use super::settings::Settings;
use super::system::{Documents, Metrics};
use super::{dispatch, in_flight, respond, system};
use crate::kubelet::Kubelets;

/// What an [`ApiServer`] is made of.
pub struct Config {
    /// The objects.
    pub engine: Arc<Engine>,
    /// Who is it?
    pub authenticator: Authenticator,
    /// Ends watches when it is cancelled, so that a server can stop.
    pub shutdown: CancellationToken,
    /// Where clients reach the server, as `host:port`; told by discovery.
    pub address: String,
    /// The nodes that can be asked for the logs of their pods and for connections to them.
    pub kubelets: Kubelets,
}

/// The Kubernetes API as a tower service: cheap to clone, needs no socket, never fails.
#[derive(Clone)]
pub struct ApiServer(Arc<Served>);

/// An [`ApiServer`] as long as somebody else keeps it.
#[derive(Clone)]
pub struct WeakApiServer(Weak<Served>);

impl WeakApiServer {
    /// The server, while it is there.
    #[must_use]
    pub fn upgrade(&self) -> Option<ApiServer> {
        self.0.upgrade().map(ApiServer)
    }
}

struct Served {
    config: Config,
    settings: Settings,
    in_flight: InFlight,
    places: Places,
    documents: Documents,
    metrics: Metrics,
    aggregation: Aggregation,
}

/// The header that names a request (`k8s.io/api/audit/v1`, `HeaderAuditID`).
const AUDIT_ID: HeaderName = HeaderName::from_static("audit-id");

/// One request with all that was found out about it.
pub(super) struct Incoming<'a> {
    pub parts: Parts,
    pub body: &'a mut RequestBody,
    pub query: Query,
    pub user: User,
}

/// Why a request is not answered.
enum Refusal {
    /// Who asks may not do it.
    Forbidden(ApiError),
    /// Anything else.
    Error(ApiError),
}

impl From<ApiError> for Refusal {
    fn from(error: ApiError) -> Self {
        Self::Error(error)
    }
}

impl ApiServer {
    /// The server, without keeping it.
    #[must_use]
    pub fn downgrade(&self) -> WeakApiServer {
        WeakApiServer(Arc::downgrade(&self.0))
    }

    /// Serves this.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self::with(config, Settings::default())
    }

    /// Serves this, with other settings.
    #[must_use]
    pub fn with(config: Config, settings: Settings) -> Self {
        let upstreams = Upstreams::new(config.engine.world().clock);
        Self::in_front_of(config, settings, upstreams)
    }

    /// Serves this, with other settings, and shows something to API servers behind it.
    #[must_use]
    pub fn in_front_of(config: Config, settings: Settings, upstreams: Upstreams) -> Self {
        let metrics = Metrics::new(config.engine.world().clock.now());
        let kubelets = config.kubelets.clone();
        config.engine.webhooks().reach_pods_of(move |node| kubelets.of(node).is_some());
        let kubelets = config.kubelets.clone();
        upstreams.reach_pods_of(move |node| kubelets.of(node).is_some());
        let in_flight = InFlight::new(settings.max_reads, settings.max_writes);
        let places = Places::new(settings.places);
        Self(Arc::new(Served {
            config,
            settings,
            in_flight,
            places,
            documents: Documents::default(),
            metrics,
            aggregation: Aggregation::new(upstreams),
        }))
    }

    /// The objects behind the service.
    #[must_use]
    pub fn engine(&self) -> &Arc<Engine> {
        &self.0.config.engine
    }

    /// The nodes that it can ask.
    #[must_use]
    pub fn kubelets(&self) -> &Kubelets {
        &self.0.config.kubelets
    }

    /// Who is who.
    #[must_use]
    pub fn authenticator(&self) -> &Authenticator {
        &self.0.config.authenticator
    }

    pub(super) fn settings(&self) -> &Settings {
        &self.0.settings
    }

    pub(super) fn shutdown(&self) -> &CancellationToken {
        &self.0.config.shutdown
    }

    pub(super) fn address(&self) -> &str {
        &self.0.config.address
    }

    pub(super) fn in_flight(&self) -> &InFlight {
        &self.0.in_flight
    }

    pub(super) fn documents(&self) -> &Documents {
        &self.0.documents
    }

    pub(super) fn places(&self) -> &Places {
        &self.0.places
    }

    pub(super) fn aggregation(&self) -> &Aggregation {
        &self.0.aggregation
    }

    pub(super) fn metrics(&self) -> &Metrics {
        &self.0.metrics
    }

    /// The answer, on its way. The types of bodies and of futures end here: what follows is compiled once, in this crate.
    fn answered(
        self,
        parts: Parts,
        body: RequestBody,
    ) -> BoxFuture<'static, Result<Response<ResponseBody>, Infallible>> {
        self.answer(parts, body).map(Ok).boxed()
    }

    async fn answer(self, parts: Parts, mut body: RequestBody) -> Response<ResponseBody> {
        let query = Query::parse(parts.uri.query());
        let encoding = negotiate::for_status(&parts.headers, &query);
        let headers = parts.headers.clone();
        let handled = self.handle(parts, &mut body, query);
        let response = match AssertUnwindSafe(handled).catch_unwind().await {
            Ok(Ok(response)) => response,
            Ok(Err(Refusal::Forbidden(error))) => respond::forbidden(&error, encoding),
            Ok(Err(Refusal::Error(error))) => respond::failure(&error, encoding),
            Err(_) => {
                tracing::error!("a request made the API server panic");
                self.0.metrics.panicked();
                let why = "the server panicked while it handled the request";
                respond::failure(&ApiError::internal(why), encoding)
            }
        };
        incoming::drain(&mut body).await;
        let mut response = respond::zip(response, &headers).map(|body| body.placed(self.places()));
        response.headers_mut().insert(AUDIT_ID, self.audit_id(&headers));
        response
    }

    /// The id of a request: the client's own, else a new one (`k8s.io/apiserver/pkg/endpoints/filters/request_received_time.go`).
    fn audit_id(&self, headers: &HeaderMap) -> HeaderValue {
        const LONGEST: usize = 64;
        let own = headers.get(AUDIT_ID).filter(|id| !id.is_empty());
        if let Some(id) = own {
            let start = &id.as_bytes()[..id.len().min(LONGEST)];
            return HeaderValue::from_bytes(start).unwrap_or_else(|_| id.clone());
        }
        HeaderValue::try_from(self.engine().world().dice.uid()).unwrap_or(HeaderValue::from_static(""))
    }

    async fn handle(
        &self,
        parts: Parts,
        body: &mut RequestBody,
        query: Query,
    ) -> Result<Response<ResponseBody>, Refusal> {
        let path = Path::parse(parts.uri.path());
        // Who asks for a time that is none is told so before anybody asks who it is.
        let longest = match &path {
            Path::Resource(target) if in_flight::lasts(target.verb(&parts.method, &query), target) => None,
            Path::Resource(_) | Path::Other(_) => {
                Some(in_flight::deadline(&query, self.0.settings.request_timeout)?)
            }
        };
        let snapshot = self.0.config.engine.snapshot();
        let lookup =
            |collection: &str, key: &str| snapshot.get(collection, key).map(|entry| entry.bytes.clone());
        let authenticator = &self.0.config.authenticator;
        let caller = match authenticator.authenticate(&parts, &lookup) {
            Ok(caller) => caller,
            Err(refused) => authenticator.ask(&parts.headers).await.ok_or(refused)?,
        };
        verbs::label_used(&self.0.config.engine, authenticator.used_secrets()).await;
        if let Some(visitor) = parts.extensions.get::<Visitor>()
            && caller.name != ANONYMOUS
        {
            visitor.identified();
        }
        match path {
            Path::Other(segments) => {
                let verb = parts.method.as_str().to_ascii_lowercase();
                let what = Attributes { verb: &verb, path: Some(parts.uri.path()), ..Attributes::default() };
                let user = self.authorize(&snapshot, caller, &parts, &what).await?;
                self.0.metrics.answered("system");
                let named: Vec<&str> = segments.iter().map(String::as_str).collect();
                if let Some(service) = aggregation::elsewhere(self, &named) {
                    drop(snapshot);
                    let end = Instant::now() + longest.unwrap_or(self.0.settings.request_timeout);
                    let passing = aggregation::answer(self, &service, Incoming { parts, body, query, user });
                    let answered = tokio::time::timeout_at(end, passing).await;
                    return Ok(answered.map_err(|_| in_flight::timed_out())?.map(|body| body.until(end)));
                }
                // Documents tell of all kinds.
                let length = match segments.first().map(String::as_str) {
                    Some("api" | "apis") => Length::Short,
                    Some("openapi") => Length::Long,
                    _ => Length::Moment,
                };
                let level = self.in_flight().of_documents(&user).filter(|_| length != Length::Moment);
                let place = level.map(|level| level.enter(&user)).transpose()?;
                let server = self.clone();
                let answer = async move { system::answer(&server, &parts, &query, &segments) };
                Ok(self.places().run(length, answer).await??.map(|body| body.holding(place)))
            }
            Path::Resource(target) => {
                let verb = target.verb(&parts.method, &query);
                let what = attributes(verb, &target, &query);
                let user = self.authorize(&snapshot, caller, &parts, &what).await?;
                drop(snapshot);
                self.0.metrics.answered(verb);
                // A client outside has a time of its own, and reads while here time may jump.
                let is_outside = parts.extensions.get::<RemoteAddress>().is_some();
                let is_timed = !(is_outside && self.engine().world().clock.may_jump());
                let answer = dispatch::answer(self, Incoming { parts, body, query, user }, verb, target);
                let Some(longest) = longest else { return Ok(answer.await?) };
                let end = Instant::now() + longest;
                let answered = tokio::time::timeout_at(end, answer).await;
                let response = answered.unwrap_or_else(|_| Err(in_flight::timed_out()))?;
                Ok(if is_timed { response.map(|body| body.until(end)) } else { response })
            }
        }
    }

    /// Who acts (the caller, or whom the caller may act as), where they may do that.
    async fn authorize(
        &self,
        snapshot: &Snapshot<Summary>,
        caller: User,
        parts: &Parts,
        what: &Attributes<'_>,
    ) -> Result<User, Refusal> {
        let wanted = impersonation::wanted(&parts.headers)?;
        let version = self.engine().kinds().version();
        let judge = |rights: &Rights| {
            let acting = match &wanted {
                Some(wanted) => Some(impersonation::impersonate(version, rights, &caller, wanted, what)?),
                None => None,
            };
            let decision = rights.authorize(acting.as_ref().unwrap_or(&caller), what);
            Ok((acting, decision))
        };
        let judged = self.0.config.engine.authorizer().resolve(snapshot, judge).await;
        let (acting, decision) = judged.map_err(Refusal::Forbidden)?;
        let user = acting.unwrap_or(caller);
        match decision {
            decision if decision.allowed() => Ok(user),
            Decision { error: Some(error), .. } => Err(undecided(parts, &error).into()),
            Decision { reason, .. } => Err(Refusal::Forbidden(forbidden(&user, what, &reason))),
        }
    }
}

/// Whether somebody may do something could not be found out
/// (`k8s.io/apiserver/pkg/endpoints/handlers/responsewriters/errors.go`, `InternalError`).
fn undecided(parts: &Parts, why: &str) -> ApiError {
    let asked = parts.uri.path_and_query().map_or("", |asked| asked.as_str());
    let text = format!("Internal Server Error: {asked:?}: {why}");
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let mut error = ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "InternalError", text + "\n");
    error.plain = true;
    error
}

impl<B> tower::Service<Request<B>> for ApiServer
where
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Response<ResponseBody>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let (parts, body) = request.into_parts();
        self.clone().answered(parts, incoming::boxed(body))
    }
}

/// The one object that a list or a watch is about, when its field selector says so.
fn named(query: &Query) -> &str {
    // Of options that cannot be read, none is known.
    let is_bad = ["limit", "timeoutSeconds"].iter().any(|name| query.number(name).is_err())
        || LabelSelector::parse(query.text("labelSelector")).is_err()
        || FieldSelector::check(query.text("fieldSelector")).is_err();
    if is_bad {
        return "";
    }
    let selectors = query.text("fieldSelector").split(',');
    let mut names =
        selectors.filter_map(|one| one.strip_prefix("metadata.name=").filter(|name| !name.contains('=')));
    names.next().filter(|name| is_segment(name)).unwrap_or_default()
}

/// Whether a name can be a part of a path (`k8s.io/apimachinery/pkg/api/validation/path`, `IsValidPathSegmentName`).
fn is_segment(name: &str) -> bool {
    !matches!(name, "." | "..") && !name.contains(['/', '%'])
}

fn attributes<'a>(verb: &'a str, target: &'a Target, query: &'a Query) -> Attributes<'a> {
    let selected = named(query);
    let lists = matches!(verb, "list" | "watch" | "deletecollection");
    let in_namespaces = target.resource == "namespaces" && target.group.is_empty();
    Attributes {
        verb,
        group: &target.group,
        version: &target.version,
        resource: &target.resource,
        subresource: &target.subresource,
        // The path of a namespace names it as a place too, so that a role inside it can speak of it.
        namespace: if in_namespaces { &target.name } else { &target.namespace },
        name: if verb != "deletecollection" && lists && target.name.is_empty() {
            selected
        } else {
            &target.name
        },
        path: None,
        field_selector: if lists { query.text("fieldSelector") } else { "" },
        label_selector: if lists { query.text("labelSelector") } else { "" },
    }
}
