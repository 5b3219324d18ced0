//! What people look at, and are called by, when an operator runs: a dashboard for Grafana, and alerts for Prometheus. Both ask for the
//! metrics of the runtime (`kubewright_runtime::metrics`), and a test holds that each of these is told.

mod dashboard;
mod rules;
#[cfg(test)]
mod tests;

use serde_json::{Value, json};

use crate::{
    Error,
    inventory::{Inventory, Part, name},
};

/// The file of the dashboard.
pub(crate) const DASHBOARD: &str = "operator.json";

/// Grafana's sidecar, as its chart has it, loads dashboards from ConfigMaps with this label.
pub(crate) const DASHBOARD_LABEL: (&str, &str) = ("grafana_dashboard", "1");

/// Where the metrics come from.
struct Source<'a> {
    operator: &'a str,
    /// The namespace of the operator.
    home: &'a str,
    /// The Service of the metrics, by whose name the series have the label `job` (that of a ServiceMonitor, unless it says
    /// otherwise).
    job: &'a str,
    labels: &'a Value,
    has_webhooks: bool,
}

impl<'a> Source<'a> {
    /// None of an operator whose metrics have no Service.
    fn of(operator: &'a str, inventory: &Inventory<'a>) -> Option<Self> {
        let service = inventory.one(&Part::MetricsService)?;
        Some(Self {
            operator,
            home: inventory.home(),
            job: name(service),
            labels: &service["metadata"]["labels"],
            has_webhooks: inventory.has_webhooks(),
        })
    }

    /// The operator's series, and no others.
    fn selector(&self) -> String {
        format!("{{namespace=\"{}\", job=\"{}\"}}", self.home, self.job)
    }
}

/// The alerts, for the Prometheus operator.
pub(crate) fn rules(operator: &str, inventory: &Inventory<'_>) -> Option<Value> {
    Some(rules::rules(&Source::of(operator, inventory)?))
}

/// The dashboard, as the text that Grafana imports.
///
/// # Errors
/// Never: it is plain JSON.
pub(crate) fn dashboard(operator: &str, inventory: &Inventory<'_>) -> Result<Option<String>, Error> {
    let Some(source) = Source::of(operator, inventory) else { return Ok(None) };
    let text = serde_json::to_string_pretty(&dashboard::dashboard(&source));
    let text = text.map_err(|error| Error::Yaml(error.to_string()))?;
    Ok(Some(text + "\n"))
}

/// The name of the ConfigMap that the dashboard is in.
pub(crate) fn dashboard_name(operator: &str) -> String {
    format!("{operator}-dashboard")
}

/// The dashboard as an object.
///
/// # Errors
/// As [`dashboard`].
pub(crate) fn dashboard_map(operator: &str, inventory: &Inventory<'_>) -> Result<Option<Value>, Error> {
    let Some(text) = dashboard(operator, inventory)? else { return Ok(None) };
    let (label, value) = DASHBOARD_LABEL;
    Ok(Some(json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": dashboard_name(operator),
            "namespace": inventory.home(),
            "labels": {"app.kubernetes.io/name": operator, label: value},
        },
        "data": {DASHBOARD: text},
    })))
}
