//! What an operator does, as pictures.

use serde_json::{Value, json};

use super::Source;
use crate::MARK;

/// Which series: those of the variables that stand above the pictures.
const OF: &str = "{namespace=~\"$namespace\", job=~\"$job\"}";
/// The time over which rates are taken.
const RATE: &str = "[$__rate_interval]";
/// Of this size is a picture; there are two in a row.
const WIDTH: usize = 12;
const HEIGHT: usize = 8;

/// One picture.
struct Panel {
    title: &'static str,
    unit: &'static str,
    /// Expressions, and what their lines are called.
    lines: Vec<(String, &'static str)>,
}

fn panel<const N: usize>(
    title: &'static str,
    unit: &'static str,
    lines: [(String, &'static str); N],
) -> Panel {
    Panel { title, unit, lines: lines.into() }
}

/// A dashboard for Grafana.
pub(super) fn dashboard(source: &Source<'_>) -> Value {
    let mut panels = reconciles();
    panels.extend(queue());
    panels.extend(program());
    if source.has_webhooks {
        panels.extend(webhooks());
    }
    let panels: Vec<Value> =
        panels.iter().enumerate().map(|(number, panel)| picture(number, panel)).collect();
    json!({
        "title": format!("Operator {}", source.operator),
        "uid": format!("operator-{}", source.operator).chars().take(40).collect::<String>(),
        "description": MARK,
        "tags": ["kubernetes", "operator"],
        "editable": true,
        "schemaVersion": 39,
        "refresh": "30s",
        "time": {"from": "now-1h", "to": "now"},
        "templating": {"list": [
            {"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus"},
            variable("namespace", "label_values(controller_runtime_max_concurrent_reconciles{}, namespace)", ".*"),
            variable(
                "job",
                "label_values(controller_runtime_max_concurrent_reconciles{namespace=~\"$namespace\"}, job)",
                source.job,
            ),
        ]},
        "panels": panels,
    })
}

fn variable(name: &str, query: &str, wanted: &str) -> Value {
    json!({
        "name": name, "label": name, "type": "query", "query": {"query": query, "refId": name},
        "datasource": data(), "refresh": 2, "includeAll": true, "allValue": ".*", "multi": true,
        "current": {"text": wanted, "value": wanted},
    })
}

fn data() -> Value {
    json!({"type": "prometheus", "uid": "${datasource}"})
}

fn picture(number: usize, panel: &Panel) -> Value {
    let targets: Vec<Value> = panel
        .lines
        .iter()
        .zip('A'..)
        .map(|((expression, legend), id)| {
            json!({"expr": expression, "legendFormat": legend, "refId": id.to_string(), "datasource": data()})
        })
        .collect();
    json!({
        "id": number + 1,
        "type": "timeseries",
        "title": panel.title,
        "datasource": data(),
        "gridPos": {"x": number % 2 * WIDTH, "y": number / 2 * HEIGHT, "w": WIDTH, "h": HEIGHT},
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
        "targets": targets,
    })
}

/// How often it happens in a second.
fn rate(by: &str, counter: &str) -> String {
    format!("sum by ({by}) (rate({counter}{OF}{RATE}))")
}

/// What this part of the times is below.
fn quantile(part: &str, by: &str, histogram: &str) -> String {
    format!("histogram_quantile({part}, sum by ({by}, le) (rate({histogram}_bucket{OF}{RATE})))")
}

fn sum(by: &str, gauge: &str) -> String {
    format!("sum by ({by}) ({gauge}{OF})")
}

fn max(by: &str, gauge: &str) -> String {
    format!("max by ({by}) ({gauge}{OF})")
}

fn reconciles() -> Vec<Panel> {
    let by = "controller";
    vec![
        panel(
            "Reconciles",
            "ops",
            [(rate("controller, result", "controller_runtime_reconcile_total"), "{{controller}} {{result}}")],
        ),
        panel(
            "Reconciles that failed",
            "ops",
            [
                (rate(by, "controller_runtime_reconcile_errors_total"), "{{controller}} errors"),
                (rate(by, "controller_runtime_terminal_reconcile_errors_total"), "{{controller}} for good"),
                (rate(by, "controller_runtime_reconcile_panics_total"), "{{controller}} panics"),
                (rate(by, "controller_runtime_reconcile_timeouts_total"), "{{controller}} time-outs"),
            ],
        ),
        panel(
            "Time of reconciles",
            "s",
            [
                (quantile("0.5", by, "controller_runtime_reconcile_time_seconds"), "{{controller}} median"),
                (quantile("0.99", by, "controller_runtime_reconcile_time_seconds"), "{{controller}} 99 %"),
            ],
        ),
        panel(
            "Workers",
            "none",
            [
                (sum(by, "controller_runtime_active_workers"), "{{controller}} busy"),
                (sum(by, "controller_runtime_max_concurrent_reconciles"), "{{controller}} at most"),
            ],
        ),
        panel(
            "Writes, and Events that were dropped",
            "ops",
            [
                (rate(by, "kubewright_controller_writes_total"), "{{controller}} writes"),
                (rate(by, "kubewright_controller_events_dropped_total"), "{{controller}} dropped Events"),
            ],
        ),
    ]
}

fn queue() -> Vec<Panel> {
    vec![
        panel(
            "Keys in the queue",
            "none",
            [(sum("controller, priority", "workqueue_depth"), "{{controller}} priority {{priority}}")],
        ),
        panel(
            "Time in the queue, and with a worker",
            "s",
            [
                (quantile("0.99", "name", "workqueue_queue_duration_seconds"), "{{name}} 99 % wait"),
                (quantile("0.99", "name", "workqueue_work_duration_seconds"), "{{name}} 99 % work"),
            ],
        ),
        panel(
            "Keys that came",
            "ops",
            [
                (rate("name", "workqueue_adds_total"), "{{name}} added"),
                (rate("name", "workqueue_retries_total"), "{{name}} for later"),
            ],
        ),
        panel(
            "Work that goes on",
            "s",
            [
                (sum("name", "workqueue_unfinished_work_seconds"), "{{name}} unfinished"),
                (max("name", "workqueue_longest_running_processor_seconds"), "{{name}} longest"),
            ],
        ),
    ]
}

fn program() -> Vec<Panel> {
    vec![
        panel(
            "Requests to the API server",
            "ops",
            [(rate("method, code", "rest_client_requests_total"), "{{method}} {{code}}")],
        ),
        panel(
            "Time of requests",
            "s",
            [
                (quantile("0.99", "verb", "rest_client_request_duration_seconds"), "{{verb}} 99 %"),
                (
                    quantile("0.99", "verb", "rest_client_rate_limiter_duration_seconds"),
                    "{{verb}} 99 % held back",
                ),
            ],
        ),
        panel(
            "Who leads",
            "none",
            [
                (max("pod, name", "leader_election_master_status"), "{{pod}} leads by {{name}}"),
                (rate("name", "leader_election_slowpath_total"), "{{name}} slow renewals"),
            ],
        ),
        panel("Memory", "bytes", [(max("pod", "process_resident_memory_bytes"), "{{pod}}")]),
        panel("Processors", "none", [(rate("pod", "process_cpu_seconds_total"), "{{pod}}")]),
        panel("Tasks", "none", [(max("pod", "tokio_alive_tasks"), "{{pod}}")]),
    ]
}

fn webhooks() -> Vec<Panel> {
    vec![
        panel(
            "Requests to webhooks",
            "ops",
            [
                (rate("webhook, code", "controller_runtime_webhook_requests_total"), "{{webhook}} {{code}}"),
                (sum("webhook", "controller_runtime_webhook_requests_in_flight"), "{{webhook}} in flight"),
            ],
        ),
        panel(
            "Time of webhooks",
            "s",
            [(quantile("0.99", "webhook", "controller_runtime_webhook_latency_seconds"), "{{webhook}} 99 %")],
        ),
        panel(
            "Webhooks that failed",
            "ops",
            [
                (rate("pod", "controller_runtime_webhook_panics_total"), "{{pod}} panics"),
                (
                    rate("pod", "controller_runtime_conversion_webhook_panics_total"),
                    "{{pod}} panics of conversions",
                ),
                (rate("pod", "certwatcher_read_certificate_errors_total"), "{{pod}} certificates not read"),
            ],
        ),
    ]
}
