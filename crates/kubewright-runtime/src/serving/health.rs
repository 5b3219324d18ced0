//! `/healthz` and `/readyz`.

use std::sync::Arc;

use futures::{FutureExt, future::BoxFuture};
use http::{StatusCode, request::Parts};

use super::endpoint::{Announce, Endpoint, HttpResponse, Route, text};
use crate::health::Checks;

/// Serves `/healthz` and `/readyz`, each with the checks of its own below it, for everybody who can connect.
#[derive(Debug)]
pub struct HealthServer {
    address: String,
}

impl HealthServer {
    /// At this address: `host:port`, or `:port` for every address of the machine, which is what a kubelet needs.
    pub fn at(address: impl Into<String>) -> Self {
        Self { address: address.into() }
    }

    pub(super) fn endpoint(self, alive: Checks, ready: Checks, announce: Announce) -> Endpoint {
        let route = Arc::new(Health { alive, ready });
        Endpoint { name: "health probes", address: self.address, tls: None, route, announce }
    }
}

pub(super) struct Health {
    pub(super) alive: Checks,
    pub(super) ready: Checks,
}

impl Route for Health {
    fn answer<'a>(&'a self, request: &'a Parts) -> BoxFuture<'a, HttpResponse> {
        let path = request.uri.path();
        let checks = [("/healthz", &self.alive), ("/readyz", &self.ready)];
        let below = checks.into_iter().find_map(|(root, checks)| {
            let rest = path.strip_prefix(root)?;
            (rest.is_empty() || rest.starts_with('/')).then_some((checks, rest))
        });
        let answer = match below {
            None => text(StatusCode::NOT_FOUND, "404 page not found\n"),
            Some((checks, rest)) => {
                let report = checks.report(rest, request.uri.query().unwrap_or_default());
                text(report.status, report.text)
            }
        };
        std::future::ready(answer).boxed()
    }
}
