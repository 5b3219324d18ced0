//! Whether the server is well: `/healthz`, `/livez` and `/readyz` (`k8s.io/apiserver/pkg/server/healthz`), and what was found when
//! somebody asked.
//!
//! The checks are those of kube-apiserver whose subject is here too, under its names and in its order. It has three more,
//! of several API servers that know of each other, which there are none of here: `peer-endpoint-reconciler-controller` and
//! `start-kube-apiserver-identity-lease-controller` and `-garbage-collector`.

use std::sync::Arc;

use http::{Response, StatusCode};
use kubewright_codec::request::Query;
use kubewright_meta::ApiError;

use super::super::respond;
use super::super::response_body::ResponseBody;
use super::super::service::ApiServer;

/// How it is found out whether a check holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asks {
    /// It holds from the first answer on: a server answers only when it has what it begins with (`bootstrap`), and what follows
    /// a write there is done by the write.
    Nobody,
    /// The store, which is where etcd is there.
    Store,
    /// Whether the server is to end.
    Shutdown,
}

/// Who has a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    All,
    Readyz,
    /// All but `readyz`.
    Others,
}

/// A check: its name, how it is found out, and who has it.
type Check = (&'static str, Asks, At);

/// All checks. What begins with `poststarthook/` is what kube-apiserver starts when it listens, told here by whom it is about:
/// admission, `generic-apiserver-start-informers` and `storage-readiness` (the state that all reads are of), the limits on requests in flight and the
/// status of flow schemas (`priority-and-fairness-*`), the counts of `/metrics` (`storage-object-count-tracker-hook`),
/// definitions (`apiextensions`, `crd`), the first objects, the addresses of services, and servers behind this one
/// (`aggregator`, `apiservice`).
const CHECKS: [Check; 35] = [
    ("ping", Asks::Nobody, At::All),
    ("log", Asks::Nobody, At::All),
    // This server asks itself without TLS: there is no certificate that could expire.
    ("loopback-serving-certificate", Asks::Nobody, At::Others),
    ("etcd", Asks::Store, At::All),
    ("etcd-readiness", Asks::Store, At::Readyz),
    ("informer-sync", Asks::Nobody, At::Readyz),
    ("poststarthook/start-apiserver-admission-initializer", Asks::Nobody, At::All),
    ("poststarthook/generic-apiserver-start-informers", Asks::Nobody, At::All),
    ("poststarthook/priority-and-fairness-config-consumer", Asks::Nobody, At::All),
    ("poststarthook/priority-and-fairness-filter", Asks::Nobody, At::All),
    ("poststarthook/storage-object-count-tracker-hook", Asks::Nobody, At::All),
    ("poststarthook/start-apiextensions-informers", Asks::Nobody, At::All),
    ("poststarthook/start-apiextensions-controllers", Asks::Nobody, At::All),
    ("poststarthook/crd-informer-synced", Asks::Nobody, At::All),
    ("poststarthook/start-system-namespaces-controller", Asks::Nobody, At::All),
    ("poststarthook/start-cluster-authentication-info-controller", Asks::Nobody, At::All),
    ("poststarthook/storage-readiness", Asks::Nobody, At::All),
    ("poststarthook/start-legacy-token-tracking-controller", Asks::Nobody, At::All),
    ("poststarthook/start-service-ip-repair-controllers", Asks::Nobody, At::All),
    ("poststarthook/rbac/bootstrap-roles", Asks::Nobody, At::All),
    ("poststarthook/scheduling/bootstrap-system-priority-classes", Asks::Nobody, At::All),
    ("poststarthook/priority-and-fairness-config-producer", Asks::Nobody, At::All),
    ("poststarthook/bootstrap-controller", Asks::Nobody, At::All),
    ("poststarthook/start-kubernetes-service-cidr-controller", Asks::Nobody, At::All),
    ("poststarthook/aggregator-reload-proxy-client-cert", Asks::Nobody, At::All),
    ("poststarthook/start-kube-aggregator-informers", Asks::Nobody, At::All),
    ("poststarthook/apiservice-status-local-available-controller", Asks::Nobody, At::All),
    ("poststarthook/apiservice-status-remote-available-controller", Asks::Nobody, At::All),
    ("poststarthook/apiservice-registration-controller", Asks::Nobody, At::All),
    ("poststarthook/apiservice-discovery-controller", Asks::Nobody, At::All),
    ("poststarthook/kube-apiserver-autoregistration", Asks::Nobody, At::All),
    ("autoregister-completion", Asks::Nobody, At::All),
    ("poststarthook/apiservice-openapi-controller", Asks::Nobody, At::All),
    ("poststarthook/apiservice-openapiv3-controller", Asks::Nobody, At::All),
    ("shutdown", Asks::Shutdown, At::Readyz),
];

fn of_path(of: &str) -> impl Iterator<Item = (&'static str, Asks)> {
    let is_readyz = of == "readyz";
    let has = move |at: At| match at {
        At::All => true,
        At::Readyz => is_readyz,
        At::Others => !is_readyz,
    };
    CHECKS.into_iter().filter(move |(.., at)| has(*at)).map(|(name, asks, _)| (name, asks))
}

/// The names of the checks of `healthz`, `livez` or `readyz`.
pub(super) fn checks(of: &str) -> impl Iterator<Item = &'static str> {
    of_path(of).map(|(name, _)| name)
}

/// Answers for one of the three, or for one check of it.
pub(super) fn answer(
    server: &ApiServer,
    of: &'static str,
    check: &str,
    query: &Query,
) -> Result<Response<ResponseBody>, ApiError> {
    if !check.is_empty() {
        return match of_path(of).find(|(known, _)| *known == check) {
            None => Err(ApiError::no_such_path()),
            Some((_, asks)) => Ok(match fault(server, asks) {
                None => respond::text(StatusCode::OK, "ok"),
                Some(why) => failed(format!("internal server error: {why}\n")),
            }),
        };
    }
    let mut excluded: Vec<&str> = query.all("exclude").collect();
    excluded.sort_unstable();
    excluded.dedup();
    let mut told = String::new();
    let mut failing = Vec::new();
    for (check, asks) in of_path(of) {
        if excluded.contains(&check) {
            excluded.retain(|name| *name != check);
            told.push_str(&format!("[+]{check} excluded: ok\n"));
            continue;
        }
        let fault = fault(server, asks);
        server.metrics().checked(check, of, fault.is_none());
        if let Some(why) = fault {
            failing.push(format!("[-]{check} failed: {why}"));
            told.push_str(&format!("[-]{check} failed: reason withheld\n"));
        } else {
            told.push_str(&format!("[+]{check} ok\n"));
        }
    }
    if !excluded.is_empty() {
        let names: Vec<String> = excluded.iter().map(|name| format!("{name:?}")).collect();
        told.push_str(&format!(
            "warn: some health checks cannot be excluded: no matches for {}\n",
            names.join(",")
        ));
    }
    if !failing.is_empty() {
        // The client is not told (`handleRootHealth`); the log is.
        tracing::info!("{of} check failed: {}", failing.join(", "));
        return Ok(failed(format!("{told}{of} check failed\n")));
    }
    let verbose = query.get("verbose").is_some();
    let text = if verbose { format!("{told}{of} check passed\n") } else { "ok".to_owned() };
    Ok(respond::plain_error(StatusCode::OK, text))
}

/// What a check finds wrong.
fn fault(server: &ApiServer, asks: Asks) -> Option<Arc<str>> {
    match asks {
        Asks::Nobody => None,
        Asks::Store => server.engine().store().health().err(),
        Asks::Shutdown => server.shutdown().is_cancelled().then(|| "process is shutting down".into()),
    }
}

fn failed(text: String) -> Response<ResponseBody> {
    respond::plain_error(StatusCode::INTERNAL_SERVER_ERROR, text)
}
