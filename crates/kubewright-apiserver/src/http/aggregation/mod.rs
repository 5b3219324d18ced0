//! API servers behind this one: what APIServices say that they serve is asked of them
//! (`k8s.io/kube-aggregator/pkg/apiserver`).
//!
//! A request for a version of a group that is served elsewhere goes on there ([`pass`]), after this server has found out who asks and
//! whether they may. Whether an API server answers is looked at again and again ([`follow`]), and so is what it serves ([`fetch`]):
//! that stands in discovery and OpenAPI beside what is served here ([`known`]).

mod fetch;
mod follow;
mod in_process;
mod known;
mod pass;

use futures::FutureExt;
use futures::future::BoxFuture;
use http::Response;
use kubewright_identity::webhook::{ServiceRef, Upstream, Upstreams};
use kubewright_kinds::rules::api_services::{ApiService, Backend};

pub(super) use known::{Known, Published};

use super::response_body::ResponseBody;
use super::service::{ApiServer, Incoming};
use pass::Passage;

/// What is known of other API servers, and the ways to them.
pub(super) struct Aggregation {
    pub(super) upstreams: Upstreams,
    pub(super) known: Known,
}

impl Aggregation {
    pub(super) fn new(upstreams: Upstreams) -> Self {
        Self { upstreams, known: Known::default() }
    }

    fn upstream(&self, backend: &Backend, insecure: bool) -> Upstream {
        self.upstreams.upstream(service_of(backend), backend.bundle.clone(), insecure)
    }
}

fn service_of(backend: &Backend) -> ServiceRef<'_> {
    ServiceRef { namespace: &backend.namespace, name: &backend.service, port: backend.port }
}

/// The APIService by whose API server a path is answered: the one that serves the version that it names, or has the document of
/// OpenAPI v3, where this server has none.
pub(super) fn elsewhere(server: &ApiServer, segments: &[&str]) -> Option<ApiService> {
    let ["openapi", "v3", document @ ..] = segments else { return version_elsewhere(server, segments) };
    let kinds = server.engine().kinds();
    let is_here = match document {
        ["api", version] => kinds.in_version("", version).next().is_some(),
        ["apis", group, version] => kinds.in_version(group, version).next().is_some(),
        _ => false,
    };
    let published = server.aggregation().known.published();
    let owner = published.owner(&document.join("/")).filter(|_| !is_here)?;
    let engine = server.engine();
    engine.api_services(&engine.snapshot()).remote().find(|one| one.name == owner).cloned()
}

/// The APIService by which a path leads elsewhere; its segments are those between the slashes.
fn version_elsewhere(server: &ApiServer, segments: &[&str]) -> Option<ApiService> {
    let (group, version) = match segments {
        // One APIService stands for all of the core group.
        ["api", ..] => ("", "v1"),
        ["apis", group, version, ..] if !version.is_empty() => (*group, *version),
        _ => return None,
    };
    let engine = server.engine();
    engine.api_services(&engine.snapshot()).elsewhere(group, version).cloned()
}

/// The answer of the API server that serves what is asked for. Boxed: few requests go on, and what that takes is large.
pub(super) fn answer<'a>(
    server: &'a ApiServer,
    service: &'a ApiService,
    incoming: Incoming<'a>,
) -> BoxFuture<'a, Response<ResponseBody>> {
    let Incoming { parts, body, user, .. } = incoming;
    async move { Passage { server, service, parts: &parts, user: &user }.answer(body).await }.boxed()
}
