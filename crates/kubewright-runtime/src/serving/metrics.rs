//! `/metrics`, and what is below `/debug` beside it.

use std::{net::SocketAddr, sync::Arc};

use futures::{FutureExt, future::BoxFuture};
use http::{Method, StatusCode, request::Parts};
use k8s_openapi::api::{authentication::v1::TokenReview, authorization::v1::SubjectAccessReview};
use kube::Client;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::{
    Tls,
    access::{Access, Guard},
    debug::DebugHandlers,
    endpoint::{Announce, Endpoint, HttpResponse, Route, text, typed},
};
use crate::{
    Error,
    journal::Journals,
    logging::{self, LogLevel},
    metrics::{Metrics, TEXT_FORMAT},
    rbac::{Rights, Verb},
};

/// Serves `/metrics`, and at `/debug/reconciles` as JSON what the controllers of the manager did last, and why: the latest 256 reconciles of
/// each, the keys that fail, and how many wait. Unless said otherwise over HTTPS with a certificate of its own, to those who may
/// (`get` on the non-resource URLs `/metrics` and `/debug/reconciles`): metrics tell names, and how busy whose objects are.
///
/// `GET /debug/loglevel` tells what is logged (`{"level":"info"}`), and `PUT /debug/loglevel?level=debug` changes it until the process
/// ends, in the form of `--log-level`. Both are there in a program whose logs are [`Run`](crate::command::Run)'s. To change it takes the right
/// to `put` that URL; where everybody may read, it takes an address of the loopback (`127.0.0.1:8080`).
#[derive(Debug)]
pub struct MetricsServer {
    address: String,
    tls: Tls,
    access: Access,
}

impl MetricsServer {
    /// At this address: `host:port`, or `:port` for every address of the machine.
    pub fn at(address: impl Into<String>) -> Self {
        Self { address: address.into(), tls: Tls::SelfSigned, access: Access::Authorized }
    }

    /// Over plain HTTP, or with which certificate.
    #[must_use]
    pub fn tls(mut self, tls: Tls) -> Self {
        self.tls = tls;
        self
    }

    /// Who may read them.
    #[must_use]
    pub fn access(mut self, access: Access) -> Self {
        self.access = access;
        self
    }

    /// The rights that it takes to ask who may read them.
    #[must_use]
    pub fn rights(&self) -> Rights {
        let mut rights = Rights::default();
        if self.access == Access::Authorized {
            rights.add::<TokenReview>([Verb::Create]).add::<SubjectAccessReview>([Verb::Create]);
        }
        rights.implied()
    }

    /// # Errors
    /// [`Error::Misconfigured`] when there is no certificate in the files that were named.
    pub(super) fn endpoint(
        self,
        metrics: Metrics,
        journals: Journals,
        debug: DebugHandlers,
        client: &Client,
        stop: &CancellationToken,
        announce: Announce,
    ) -> Result<Endpoint, Error> {
        let tls = self.tls.server_config(&metrics, stop)?;
        let guard = Guard::new(self.access, client.clone());
        let may_change = self.access == Access::Authorized || is_loopback(&self.address);
        let route = Arc::new(Scrape { metrics, journals, debug, guard, level: logging::level(), may_change });
        Ok(Endpoint { name: "metrics", address: self.address, tls, route, announce })
    }
}

pub(super) struct Scrape {
    pub(super) metrics: Metrics,
    pub(super) journals: Journals,
    pub(super) debug: DebugHandlers,
    pub(super) guard: Guard,
    pub(super) level: Option<&'static LogLevel>,
    /// Whether who is admitted may change anything.
    pub(super) may_change: bool,
}

/// Whether nobody but processes of this machine can connect.
pub(super) fn is_loopback(address: &str) -> bool {
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    host == "localhost" || address.parse::<SocketAddr>().is_ok_and(|address| address.ip().is_loopback())
}

impl Scrape {
    /// Tells the log level, or changes it.
    fn log_level(&self, request: &Parts) -> HttpResponse {
        let Some(level) = self.level else {
            return text(StatusCode::NOT_FOUND, "404 page not found\n");
        };
        if request.method == Method::PUT {
            if !self.may_change {
                let why =
                    "the log level is changed at an address of the loopback, or by those who show a token\n";
                return text(StatusCode::FORBIDDEN, why);
            }
            let query = request.uri.query().unwrap_or_default();
            let mut pairs = form_urlencoded::parse(query.as_bytes());
            let Some((_, wanted)) = pairs.find(|(name, wanted)| name == "level" && !wanted.is_empty()) else {
                return text(StatusCode::BAD_REQUEST, "which level? PUT /debug/loglevel?level=debug\n");
            };
            if let Err(error) = level.set(&wanted) {
                return text(StatusCode::BAD_REQUEST, error + "\n");
            }
            tracing::info!(level = %wanted, "what is logged was changed");
        }
        typed(StatusCode::OK, "application/json", json!({"level": level.get()}).to_string())
    }
}

impl Route for Scrape {
    fn methods(&self, path: &str) -> &'static str {
        if path == "/debug/loglevel" { "GET, HEAD, PUT" } else { "GET, HEAD" }
    }

    fn answer<'a>(&'a self, request: &'a Parts) -> BoxFuture<'a, HttpResponse> {
        async move {
            if let Err(refusal) = self.guard.admit(request).await {
                return text(refusal.status, refusal.text + "\n");
            }
            match request.uri.path() {
                "/metrics" => typed(StatusCode::OK, TEXT_FORMAT, self.metrics.text()),
                "/debug/reconciles" => typed(StatusCode::OK, "application/json", self.journals.json()),
                "/debug/loglevel" => self.log_level(request),
                _ => match self.debug.answer(request).await {
                    Some(answer) => answer,
                    None => text(StatusCode::NOT_FOUND, "404 page not found\n"),
                },
            }
        }
        .boxed()
    }
}
