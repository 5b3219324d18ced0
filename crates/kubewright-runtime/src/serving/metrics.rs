//! `/metrics`.

use std::sync::Arc;

use futures::{FutureExt, future::BoxFuture};
use http::{StatusCode, request::Parts};
use k8s_openapi::api::{authentication::v1::TokenReview, authorization::v1::SubjectAccessReview};
use kube::Client;
use tokio_util::sync::CancellationToken;

use super::{
    Tls,
    access::{Access, Guard},
    endpoint::{Announce, Endpoint, HttpResponse, Route, text, typed},
};
use crate::{
    Error,
    metrics::{Metrics, TEXT_FORMAT},
    rbac::{Rights, Verb},
};

/// Serves `/metrics`. Unless said otherwise over HTTPS with a certificate of its own, to those who may
/// (`get` on the non-resource URL `/metrics`): metrics tell names, and how busy whose objects are.
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
        client: &Client,
        stop: &CancellationToken,
        announce: Announce,
    ) -> Result<Endpoint, Error> {
        let tls = self.tls.server_config(&metrics, stop)?;
        let guard = Guard::new(self.access, client.clone());
        let route = Arc::new(Scrape { metrics, guard });
        Ok(Endpoint { name: "metrics", address: self.address, tls, route, announce })
    }
}

pub(super) struct Scrape {
    pub(super) metrics: Metrics,
    pub(super) guard: Guard,
}

impl Route for Scrape {
    fn answer<'a>(&'a self, request: &'a Parts) -> BoxFuture<'a, HttpResponse> {
        async move {
            if let Err(refusal) = self.guard.admit(request).await {
                return text(refusal.status, refusal.text + "\n");
            }
            if request.uri.path() != "/metrics" {
                return text(StatusCode::NOT_FOUND, "404 page not found\n");
            }
            typed(StatusCode::OK, TEXT_FORMAT, self.metrics.text())
        }
        .boxed()
    }
}
