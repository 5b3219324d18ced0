//! `/metrics`: what the server counts, in the text format of Prometheus, under kube-apiserver's names.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};

use jiff::Timestamp;
use parking_lot::Mutex;

use super::super::service::ApiServer;

/// What the server counts.
#[derive(Debug)]
pub(in crate::http) struct Metrics {
    started: Timestamp,
    requests: Mutex<BTreeMap<&'static str, u64>>,
    panics: AtomicU64,
}

impl Metrics {
    /// Nothing yet.
    pub(in crate::http) fn new(started: Timestamp) -> Self {
        Self { started, requests: Mutex::new(BTreeMap::new()), panics: AtomicU64::new(0) }
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
    head(
        &mut out,
        "process_start_time_seconds",
        "gauge",
        "Start time of the process since unix epoch in seconds.",
    );
    let _ = writeln!(out, "process_start_time_seconds {}", metrics.started.as_second());
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
