//! Whether the server is well: `/healthz`, `/livez` and `/readyz` (`k8s.io/apiserver/pkg/server/healthz`).
//!
//! The checks are those of kube-apiserver's whose subject is here too, under its names.

use std::sync::Arc;

use http::{Response, StatusCode};
use kubewright_codec::request::Query;
use kubewright_meta::ApiError;

use super::super::respond;
use super::super::response_body::ResponseBody;
use super::super::service::ApiServer;

/// What all three ask, in this order. A server answers only when it has what the hooks make (`bootstrap`).
const CHECKS: [&str; 8] = [
    "ping",
    "log",
    "etcd",
    "poststarthook/start-apiextensions-controllers",
    "poststarthook/crd-informer-synced",
    "poststarthook/start-system-namespaces-controller",
    "poststarthook/rbac/bootstrap-roles",
    "poststarthook/scheduling/bootstrap-system-priority-classes",
];

/// The names of the checks of `healthz`, `livez` or `readyz`.
pub(super) fn checks(of: &str) -> Vec<&'static str> {
    let mut checks = CHECKS.to_vec();
    if of == "readyz" {
        checks.insert(3, "etcd-readiness");
        checks.insert(4, "informer-sync");
        checks.push("shutdown");
    }
    checks
}

/// Answers for one of the three, or for one check of it.
pub(super) fn answer(
    server: &ApiServer,
    of: &str,
    check: &str,
    query: &Query,
) -> Result<Response<ResponseBody>, ApiError> {
    let checks = checks(of);
    if !check.is_empty() {
        return match checks.iter().find(|known| **known == check) {
            None => Err(ApiError::no_such_path()),
            Some(check) => Ok(match fault(server, check) {
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
    for check in &checks {
        if excluded.contains(check) {
            excluded.retain(|name| name != check);
            told.push_str(&format!("[+]{check} excluded: ok\n"));
        } else if let Some(why) = fault(server, check) {
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
            names.join(", ")
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

/// What a check finds wrong. The store is asked for what would be etcd's.
fn fault(server: &ApiServer, check: &str) -> Option<Arc<str>> {
    match check {
        "etcd" | "etcd-readiness" => server.engine().store().health().err(),
        "shutdown" if server.shutdown().is_cancelled() => Some("process is shutting down".into()),
        _ => None,
    }
}

fn failed(text: String) -> Response<ResponseBody> {
    respond::plain_error(StatusCode::INTERNAL_SERVER_ERROR, text)
}
