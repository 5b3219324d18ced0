//! `/metrics`: what the server counts, in the text format of Prometheus, under kube-apiserver's names.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};

use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Response, StatusCode};
use jiff::Timestamp;
use parking_lot::Mutex;

use super::super::respond;
use super::super::response_body::ResponseBody;
use super::super::service::ApiServer;

/// What the server counts.
#[derive(Debug)]
pub(in crate::http) struct Metrics {
    started: Timestamp,
    requests: Mutex<BTreeMap<&'static str, u64>>,
    panics: AtomicU64,
    /// What was found by checks, by their names and the paths that were asked.
    checks: Mutex<BTreeMap<(&'static str, &'static str), Found>>,
}

/// What was found by a check.
#[derive(Clone, Copy, Debug, Default)]
struct Found {
    /// Whether it held when it was asked the last time.
    holds: bool,
    successes: u64,
    errors: u64,
}

impl Metrics {
    /// Nothing yet.
    pub(in crate::http) fn new(started: Timestamp) -> Self {
        Self { started, requests: Mutex::default(), panics: AtomicU64::new(0), checks: Mutex::default() }
    }

    /// A request of this verb was let in.
    pub(in crate::http) fn answered(&self, verb: &'static str) {
        *self.requests.lock().entry(verb).or_default() += 1;
    }

    /// A request made the server panic.
    pub(in crate::http) fn panicked(&self) {
        self.panics.fetch_add(1, Ordering::Relaxed);
    }
}

impl Metrics {
    /// A check of `healthz`, `livez` or `readyz` was asked.
    pub(super) fn checked(&self, name: &'static str, of: &'static str, holds: bool) {
        let mut checks = self.checks.lock();
        let found = checks.entry((name, of)).or_default();
        found.holds = holds;
        *if holds { &mut found.successes } else { &mut found.errors } += 1;
    }

    /// Counts checks from none again.
    pub(super) fn forget_checks(&self) {
        self.checks.lock().clear();
    }

    /// `/metrics/slis`: what checks found (`k8s.io/component-base/metrics/prometheus/slis`).
    pub(super) fn slis(&self) -> String {
        let (checks, mut out) = (self.checks.lock(), String::new());
        if !checks.is_empty() {
            let help = "[STABLE] This metric records the result of a single healthcheck.";
            head(&mut out, "kubernetes_healthcheck", "gauge", help);
            for ((name, of), found) in checks.iter() {
                let holds = u8::from(found.holds);
                let _ = writeln!(out, "kubernetes_healthcheck{{name=\"{name}\",type=\"{of}\"}} {holds}");
            }
            let help = "[STABLE] This metric records the results of all healthcheck.";
            head(&mut out, "kubernetes_healthchecks_total", "counter", help);
            for ((name, of), found) in checks.iter() {
                for (status, count) in [("error", found.errors), ("success", found.successes)] {
                    if count > 0 {
                        let _ = writeln!(
                            out,
                            "kubernetes_healthchecks_total{{name=\"{name}\",status=\"{status}\",type=\"{of}\"}} {count}"
                        );
                    }
                }
            }
        }
        self.started(&mut out, "[ALPHA] Start time of the process since unix epoch in seconds.");
        out
    }

    fn started(&self, out: &mut String, help: &str) {
        head(out, "process_start_time_seconds", "gauge", help);
        let _ = writeln!(out, "process_start_time_seconds {}", self.started.as_second());
    }
}

/// Metrics as Prometheus reads them.
pub(super) fn response(text: String) -> Response<ResponseBody> {
    let mut response = respond::text(StatusCode::OK, text);
    let media_type =
        HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8; escaping=underscores");
    response.headers_mut().insert(CONTENT_TYPE, media_type);
    response
}

/// The text.
pub(super) fn text(server: &ApiServer) -> String {
    let metrics = server.metrics();
    let mut out = String::new();
    head(
        &mut out,
        "apiserver_request_total",
        "counter",
        "Counter of apiserver requests broken out for each verb.",
    );
    for (verb, count) in metrics.requests.lock().iter().filter(|(verb, _)| !verb.is_empty()) {
        let verb = verb.to_ascii_uppercase();
        let _ = writeln!(out, "apiserver_request_total{{verb=\"{verb}\"}} {count}");
    }
    head(&mut out, "apiserver_panics_total", "counter", "Counter of requests that ended with a panic.");
    let _ = writeln!(out, "apiserver_panics_total {}", metrics.panics.load(Ordering::Relaxed));

    passed_over(&mut out, server);

    head(&mut out, "apiserver_storage_objects", "gauge", "Number of stored objects split by kind.");
    let (engine, snapshot) = (server.engine(), server.engine().snapshot());
    let kinds = engine.kinds();
    let stored = kinds.iter().filter(|kind| kind.is_storage());
    let counts: BTreeMap<String, usize> =
        stored.map(|kind| (kind.group_resource(), snapshot.len(&kind.collection))).collect();
    for (resource, count) in counts.iter().filter(|(_, count)| **count > 0) {
        let _ = writeln!(out, "apiserver_storage_objects{{resource=\"{resource}\"}} {count}");
    }
    metrics.started(&mut out, "Start time of the process since unix epoch in seconds.");
    head(&mut out, "kubernetes_build_info", "gauge", "The version that the server is compatible with.");
    let served = server.engine().kinds().version();
    let _ = writeln!(
        out,
        "kubernetes_build_info{{git_version=\"v{}\",major=\"1\",minor=\"{}\"}} 1",
        served.release(),
        served.minor()
    );
    out
}

/// The webhooks that let requests pass because they could not be asked
/// (`k8s.io/apiserver/pkg/admission/metrics`, `webhookFailOpen`).
fn passed_over(out: &mut String, server: &ApiServer) {
    const NAME: &str = "apiserver_admission_webhook_fail_open_count";
    let totals = server.engine().admission().webhooks().fail_open().totals();
    if totals.is_empty() {
        return;
    }
    let help = "Admission webhook fail open count, identified by name and broken out for each admission type (validating or admit).";
    head(out, NAME, "counter", help);
    for (passed, total) in totals {
        let _ = writeln!(out, "{NAME}{{name=\"{}\",type=\"{}\"}} {total}", passed.webhook, passed.phase);
    }
}

fn head(out: &mut String, name: &str, kind: &str, help: &str) {
    let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}");
}
