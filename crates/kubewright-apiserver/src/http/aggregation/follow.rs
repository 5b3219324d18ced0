//! Whether the API servers behind this one answer, and what they serve: looked at when something changes, and again and again
//! (`k8s.io/kube-aggregator/pkg/controllers/status/remote`, and the controllers of discovery and OpenAPI).
//!
//! As long as no APIService leads elsewhere there is one task, which waits for a change of APIServices. Each that does has a task of
//! its own.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::future::{join, select_all};
use futures::stream::FuturesUnordered;
use futures::{FutureExt, StreamExt};
use kubewright_engine::verbs;
use kubewright_kinds::built_in::apiregistration::api_service::API_SERVICE;
use kubewright_kinds::built_in::core::service::SERVICE;
use kubewright_kinds::built_in::discovery::endpoint_slice::ENDPOINT_SLICE;
use kubewright_kinds::rules::api_services::availability::{self, Finding};
use kubewright_kinds::rules::api_services::{ApiService, Backend};
use kubewright_kinds::{BuiltIn, Summary};
use kubewright_spec::Version;
use kubewright_store::{Event, Name, Snapshot};
use serde_json::Value;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, sleep_until};

use super::super::service::{ApiServer, WeakApiServer};
use super::fetch::Fetch;
use super::{pass, service_of};
use kubewright_identity::authn::{SYSTEM_MASTERS, User};

/// How often an API server is looked at that answers, and at least one that does not.
const AVAILABILITY: Waits = Waits { first: Duration::from_millis(5), longest: Duration::from_secs(30) };
/// The same of discovery.
const DISCOVERY: Waits = Waits { first: Duration::from_millis(500), longest: Duration::from_secs(60) };
/// The same of OpenAPI, but that one that is known is asked for every [`OPENAPI_REFRESH`].
const OPENAPI: Waits = Waits { first: Duration::from_secs(60), longest: Duration::from_secs(3600) };
const OPENAPI_REFRESH: Duration = Duration::from_secs(60);
/// How long OpenAPI is left for after a change.
const OPENAPI_DELAY: Duration = Duration::from_secs(1);
/// How many requests find out whether an API server answers, at once.
const ATTEMPTS: usize = 5;
/// How long each may take.
const ATTEMPT: Duration = Duration::from_secs(5);
/// How soon is looked again when more has happened than is kept.
const AGAIN: Duration = Duration::from_millis(100);
/// The label of an EndpointSlice that names its Service.
const SERVICE_OF_SLICE: &str = "kubernetes.io/service-name";

/// Waits that grow, each twice as long as the one before.
#[derive(Clone, Copy)]
struct Waits {
    first: Duration,
    longest: Duration,
}

impl Waits {
    /// The wait after so many failures.
    fn after(self, failures: u32) -> Duration {
        self.first.saturating_mul(1 << failures.saturating_sub(1).min(20)).min(self.longest)
    }
}

/// What looks at one API server, and how it is told that something has changed.
struct Follower {
    backend: Backend,
    changed: Arc<Notify>,
    task: JoinHandle<()>,
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl ApiServer {
    /// Looks at the API servers that APIServices lead to, for as long as this one serves and is kept by somebody else: their conditions
    /// (`Available`) are kept, and what they serve stands in the discovery and the OpenAPI of this one.
    pub fn follow_api_services(&self) -> impl Future<Output = ()> + Send + 'static {
        let (server, shutdown) = (self.downgrade(), self.shutdown().clone());
        async move {
            shutdown.run_until_cancelled(follow(server)).await;
        }
    }
}

async fn follow(server: WeakApiServer) {
    let mut followers: BTreeMap<String, Follower> = BTreeMap::new();
    loop {
        let Some(here) = server.upgrade() else { return };
        let snapshot = here.engine().snapshot();
        let services = here.engine().api_services(&snapshot);
        let led =
            |name: &str| services.remote().find(|one| one.name == name).and_then(|one| one.backend.as_ref());
        followers.retain(|name, follower| led(name) == Some(&follower.backend));
        for (name, backend) in services.remote().filter_map(|one| Some((&one.name, one.backend.clone()?))) {
            followers.entry(name.clone()).or_insert_with(|| begin(&server, name.clone(), backend));
        }
        here.aggregation().known.publish(&services);
        let collections: &[&BuiltIn] =
            if followers.is_empty() { &[&API_SERVICE] } else { &[&API_SERVICE, &SERVICE, &ENDPOINT_SLICE] };
        let store = Arc::clone(here.engine().store());
        drop(here);
        let mut cursors = Vec::new();
        for kind in collections {
            let collection: Name = kind.collection().into();
            // Too much has happened since: look again.
            let Ok(cursor) = store.watch(&collection, snapshot.revision()) else { continue };
            cursors.push((*kind, cursor));
        }
        drop((store, snapshot));
        if cursors.len() < collections.len() {
            sleep(AGAIN).await;
            continue;
        }
        let waits = cursors.iter_mut().map(|(kind, cursor)| {
            let kind = *kind;
            async move { (kind, cursor.next().await) }.boxed()
        });
        match select_all(waits).await.0 {
            (_, Ok(None)) => return,
            (kind, Ok(Some(event))) => {
                let concerned = followers.values().filter(|one| concerns(kind, &event, &one.backend));
                concerned.for_each(|one| one.changed.notify_one());
            }
            (_, Err(_)) => followers.values().for_each(|one| one.changed.notify_one()),
        }
    }
}

/// Whether a change of a Service, or of an EndpointSlice, is one of what an API server is behind.
fn concerns(kind: &BuiltIn, event: &Event<Summary>, backend: &Backend) -> bool {
    let Some((namespace, name)) = event.entry.key.split_once('/') else { return false };
    if namespace != backend.namespace {
        return false;
    }
    if std::ptr::eq(kind, &SERVICE) {
        return name == backend.service;
    }
    let entries = [Some(&event.entry), event.previous.as_ref()];
    entries.into_iter().flatten().any(|entry| {
        let slice: Value = serde_json::from_slice(&entry.bytes).unwrap_or_default();
        slice["metadata"]["labels"][SERVICE_OF_SLICE] == backend.service.as_str()
    })
}

fn begin(server: &WeakApiServer, name: String, backend: Backend) -> Follower {
    let changed = Arc::new(Notify::new());
    let (server, notified) = (server.clone(), Arc::clone(&changed));
    let task = tokio::spawn(async move {
        let available = Notify::new();
        join(
            keep_condition(&server, &name, &notified, &available),
            keep_documents(&server, &name, &available),
        )
        .await;
    });
    Follower { backend, changed, task }
}

/// The APIService as it is now, where it leads elsewhere.
fn current(server: &WeakApiServer, name: &str) -> Option<(ApiServer, ApiService, Backend)> {
    let server = server.upgrade()?;
    let snapshot = server.engine().snapshot();
    let services = server.engine().api_services(&snapshot);
    let service = services.remote().find(|one| one.name == name)?.clone();
    let backend = service.backend.clone()?;
    Some((server, service, backend))
}

/// Keeps the condition `Available` of one APIService.
async fn keep_condition(server: &WeakApiServer, name: &str, changed: &Notify, available: &Notify) {
    let mut failures = 0;
    while let Some((server, service, backend)) = current(server, name) {
        let finding = look(&server, &service, &backend).await;
        let kinds = server.engine().kinds();
        let Some(kind) = kinds.find(&API_SERVICE) else { return };
        let stored = server.engine().snapshot().get(&kind.collection, name).cloned();
        let stored: Value =
            stored.and_then(|entry| serde_json::from_slice(&entry.bytes).ok()).unwrap_or_default();
        if !availability::says(&stored, &finding) {
            if let Err(why) = verbs::report_availability(server.engine(), kind, name, &finding).await {
                tracing::debug!(%name, why = why.message, "the condition of an APIService is not written");
            }
            available.notify_one();
        }
        failures = if finding.reason == "FailedDiscoveryCheck" { failures + 1 } else { 0 };
        drop((server, kinds));
        let wait = if failures > 0 { AVAILABILITY.after(failures) } else { AVAILABILITY.longest };
        tokio::select! {
            biased;
            () = changed.notified() => {}
            () = sleep(wait) => {}
        }
    }
}

/// Finds out whether an API server answers.
async fn look(server: &ApiServer, service: &ApiService, backend: &Backend) -> Finding {
    let snapshot = server.engine().snapshot();
    if !server.aggregation().upstreams.is_in_process(service_of(backend))
        && let Some(finding) = without_asking(&snapshot, backend)
    {
        return finding;
    }
    let mut attempts: FuturesUnordered<_> =
        (0..ATTEMPTS).map(|_| ask(server, &snapshot, service, backend)).collect();
    let mut last = String::new();
    while let Some(answered) = attempts.next().await {
        match answered {
            Ok(()) => return Finding::passed(),
            Err(why) => last = why,
        }
    }
    Finding::failed(last)
}

/// What the Service and its EndpointSlices say.
fn without_asking(snapshot: &Snapshot<Summary>, backend: &Backend) -> Option<Finding> {
    let Backend { namespace, service: name, port, .. } = backend;
    let read = |bytes: &[u8]| serde_json::from_slice::<Value>(bytes).unwrap_or_default();
    let service = snapshot.get(SERVICE.collection(), &format!("{namespace}/{name}"));
    let service = service.map(|entry| read(&entry.bytes));
    let prefix = format!("{namespace}/");
    let slices = snapshot.range(ENDPOINT_SLICE.collection(), &prefix, None);
    let slices: Vec<Value> = slices
        .map(|entry| read(&entry.bytes))
        .filter(|slice| slice["metadata"]["labels"][SERVICE_OF_SLICE] == name.as_str())
        .collect();
    availability::behind_service((namespace, name, *port), service.as_ref(), &slices)
}

/// One request for the discovery of the version.
async fn ask(
    server: &ApiServer,
    snapshot: &Snapshot<Summary>,
    service: &ApiService,
    backend: &Backend,
) -> Result<(), String> {
    let upstreams = &server.aggregation().upstreams;
    // Before v1.36 any certificate does for that.
    let insecure = backend.insecure || server.engine().kinds().version() < Version::V1_36;
    let upstream = server.aggregation().upstream(backend, insecure);
    let route = upstreams.route(&upstream, snapshot)?;
    let path = match &*service.name {
        "v1." => format!("/api/{}", service.version),
        _ => format!("/apis/{}/{}", service.group, service.version),
    };
    let url = format!("https://{}{path}", route.host());
    let user = User::new("system:kube-aggregator", [SYSTEM_MASTERS]);
    let sending = upstreams.send(&upstream, &route, pass::get(&path, &user));
    let answered = server.engine().world().clock.wait_outside(ATTEMPT, sending).await;
    let late = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)";
    let failed = |why: String| Err(format!("failing or missing response from {url}: {why}"));
    match answered.unwrap_or_else(|_| Err(late.to_owned())) {
        Ok(response) if (200..300).contains(&response.status().as_u16()) => Ok(()),
        Ok(response) => failed(format!("bad status from {url}: {}", response.status().as_u16())),
        Err(why) => failed(format!("Get {url:?}: {why}")),
    }
}

/// Keeps what is known of one API server's discovery and OpenAPI.
async fn keep_documents(server: &WeakApiServer, name: &str, available: &Notify) {
    let (mut discovery, mut openapi) = (0, 0);
    let mut openapi_due = Instant::now() + OPENAPI_DELAY;
    let mut discovery_due = Instant::now();
    loop {
        let Some((here, service, backend)) = current(server, name) else { return };
        let fetch = Fetch { server: &here, service: &service, backend: &backend };
        let known = &here.aggregation().known;
        let mut said = known.said(name);
        let now = Instant::now();
        if now >= discovery_due {
            match fetch.resources().await {
                Ok(resources) => {
                    (said.resources, said.is_current, discovery) = (resources, true, 0);
                    discovery_due = Instant::now() + DISCOVERY.longest;
                }
                Err(why) => {
                    tracing::debug!(%name, %why, "the discovery of an API server is stale");
                    (said.is_current, discovery) = (false, discovery + 1);
                    // Before v1.36 it is asked for every minute, known or not.
                    let every_minute = here.engine().kinds().version() < Version::V1_36;
                    let wait = if every_minute { DISCOVERY.longest } else { DISCOVERY.after(discovery) };
                    discovery_due = Instant::now() + wait;
                }
            }
        }
        if now >= openapi_due {
            let asked = fetch.openapi(&mut said).await;
            openapi = if asked.is_ok() { 0 } else { openapi + 1 };
            openapi_due =
                Instant::now() + if openapi == 0 { OPENAPI_REFRESH } else { OPENAPI.after(openapi) };
            if let Err(why) = asked {
                tracing::debug!(%name, %why, "the OpenAPI of an API server is not known");
            }
        }
        known.keep(name, said, &here.engine().api_services(&here.engine().snapshot()));
        drop(here);
        tokio::select! {
            biased;
            () = available.notified() => {
                (discovery_due, openapi_due) = (Instant::now(), Instant::now() + OPENAPI_DELAY);
            }
            () = sleep_until(discovery_due.min(openapi_due)) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_their_longest() {
        let millis = |failures| AVAILABILITY.after(failures).as_millis();
        assert_eq!([1, 2, 3, 13, 99].map(millis), [5, 10, 20, 20_480, 30_000]);
        assert_eq!(DISCOVERY.after(2), Duration::from_secs(1));
    }
}
