//! When somebody is to be told.

use serde_json::{Value, json};

use super::Source;

/// One alert.
struct Alert {
    name: &'static str,
    expression: String,
    /// For how long it has to be so.
    lasting: &'static str,
    severity: &'static str,
    summary: &'static str,
    description: &'static str,
}

/// A `PrometheusRule`, for the Prometheus operator.
pub(super) fn rules(source: &Source<'_>) -> Value {
    let rules: Vec<Value> = alerts(&source.selector())
        .into_iter()
        .map(|alert| {
            json!({
                "alert": alert.name,
                "expr": alert.expression,
                "for": alert.lasting,
                "labels": {"severity": alert.severity, "operator": source.operator},
                "annotations": {"summary": alert.summary, "description": alert.description},
            })
        })
        .collect();
    json!({
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PrometheusRule",
        "metadata": {
            "name": format!("{}-alerts", source.operator),
            "namespace": source.home,
            "labels": source.labels,
        },
        "spec": {"groups": [{"name": source.operator, "rules": rules}]},
    })
}

fn alerts(of: &str) -> [Alert; 5] {
    [
        Alert {
            name: "OperatorReconcileErrors",
            // The longest back-off is 1000 s: a key that always fails does so in every 20 minutes.
            expression: format!(
                "sum by (job, controller) (rate(controller_runtime_reconcile_errors_total{of}[20m])) > 0"
            ),
            lasting: "30m",
            severity: "warning",
            summary: "Reconciles of {{ $labels.controller }} fail.",
            description: "For half an hour reconciles of {{ $labels.controller }} ({{ $labels.job }}) have failed. Its log, and \
                          /debug/reconciles beside its metrics, name the objects and the errors.",
        },
        Alert {
            name: "OperatorReconcilePanics",
            expression: format!(
                "sum by (job, controller) (increase(controller_runtime_reconcile_panics_total{of}[15m])) > 0"
            ),
            lasting: "0m",
            severity: "warning",
            summary: "A reconcile of {{ $labels.controller }} has panicked.",
            description: "A reconcile, predicate or mapping of {{ $labels.controller }} ({{ $labels.job }}) has panicked: a mistake in \
                          the operator. Its log has the message.",
        },
        Alert {
            name: "OperatorQueueGrows",
            expression: format!(
                "sum by (job, controller) (workqueue_depth{of}) > 10 and sum by (job, controller) (deriv(workqueue_depth{of}[15m])) > 0"
            ),
            lasting: "15m",
            severity: "warning",
            summary: "The work queue of {{ $labels.controller }} grows.",
            description: "For a quarter of an hour more objects have come than {{ $labels.controller }} ({{ $labels.job }}) reconciles; \
                          {{ $value }} wait. It may need more workers (concurrency), or its reconciles are slow.",
        },
        Alert {
            name: "OperatorWorkUnfinished",
            expression: format!(
                "max by (job, controller) (workqueue_longest_running_processor_seconds{of}) > 600 and max by (job, controller) \
                 (workqueue_unfinished_work_seconds{of}) > 600"
            ),
            lasting: "5m",
            severity: "warning",
            summary: "A reconcile of {{ $labels.controller }} does not end.",
            description: "A reconcile of {{ $labels.controller }} ({{ $labels.job }}) has gone on for {{ $value }} seconds. It may hang: \
                          a time-out of the controller would drop it.",
        },
        Alert {
            name: "OperatorNoLeader",
            expression: format!("max by (job, name) (leader_election_master_status{of}) == 0"),
            lasting: "5m",
            severity: "critical",
            summary: "No replica leads by the lease {{ $labels.name }}.",
            description: "For five minutes no replica of {{ $labels.job }} has led by the lease {{ $labels.name }}: nothing is \
                          reconciled.",
        },
    ]
}
