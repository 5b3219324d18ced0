//! Autoscalers and disruption budgets.

use serde_json::{Value, json};

use super::Columns;
use super::age::age;
use super::column::{CREATION_DESCRIPTION, NAME, integer, text as column};
use super::printer::Printer;
use super::value::{at, cells, items, number, quantity, text, with_more};

/// Prints horizontal pod autoscalers.
pub const AUTOSCALERS: Printer = Printer::new(
    &[
        NAME,
        column("Reference"),
        column("Targets"),
        column("MinPods"),
        column("MaxPods"),
        column("Replicas"),
        column("Age"),
    ],
    |scaler, now| {
        cells![
            text(scaler, "/metadata/name"),
            format!(
                "{}/{}",
                text(scaler, "/spec/scaleTargetRef/kind"),
                text(scaler, "/spec/scaleTargetRef/name")
            ),
            targets(scaler),
            at(scaler, "/spec/minReplicas").map_or("<unset>".to_owned(), ToString::to_string),
            number(scaler, "/spec/maxReplicas"),
            number(scaler, "/status/currentReplicas"),
            age(scaler, now),
        ]
    },
);

/// Prints scales of built-in kinds.
pub const SCALES: Printer = Printer::new(
    &[
        column("Name"),
        integer("Desired").described("replicas is the desired number of instances for the scaled object."),
        integer("Available")
            .described("replicas is the actual number of observed instances of the scaled object."),
        column("Age").described(CREATION_DESCRIPTION),
    ],
    |scale, now| {
        cells![
            text(scale, "/metadata/name"),
            number(scale, "/spec/replicas"),
            number(scale, "/status/replicas"),
            age(scale, now),
        ]
    },
);

/// The columns of scales of custom kinds, as a definition would tell them
/// (`k8s.io/apiextensions-apiserver/pkg/apiserver/customresource_handler.go`).
#[must_use]
pub fn columns_of_custom_scales() -> Columns {
    let column = |name: &str, kind: &str, path: &str, description: &str| json!({"name": name, "type": kind, "jsonPath": path, "description": description});
    Columns::custom(&[
        column("Desired", "integer", ".spec.replicas", "Number of desired replicas"),
        column("Available", "integer", ".status.replicas", "Number of actual replicas"),
        column("Age", "date", ".metadata.creationTimestamp", CREATION_DESCRIPTION),
    ])
}

/// Prints pod disruption budgets.
pub const DISRUPTION_BUDGETS: Printer = Printer::new(
    &[
        NAME,
        column("Min Available"),
        column("Max Unavailable"),
        integer("Allowed Disruptions"),
        column("Age"),
    ],
    |budget, now| {
        let limit = |pointer: &str| match at(budget, pointer) {
            Some(_) => quantity(budget, pointer),
            None => "N/A".to_owned(),
        };
        cells![
            text(budget, "/metadata/name"),
            limit("/spec/minAvailable"),
            limit("/spec/maxUnavailable"),
            number(budget, "/status/disruptionsAllowed"),
            age(budget, now),
        ]
    },
);

/// What Go prints of a quantity that is none (`Quantity.String`).
const NO_QUANTITY: &str = "<nil>";

/// The first two metrics, each as current value and target, and how many more there are.
fn targets(scaler: &Value) -> String {
    let (specs, statuses) = (items(scaler, "/spec/metrics"), items(scaler, "/status/currentMetrics"));
    let metrics: Vec<String> =
        specs.iter().enumerate().map(|(index, spec)| metric(spec, statuses.get(index))).collect();
    if metrics.is_empty() { "<none>".to_owned() } else { with_more(&metrics, 2, ", ") }
}

fn metric(spec: &Value, status: Option<&Value>) -> String {
    let (source, named) = match text(spec, "/type") {
        "External" => ("external", false),
        "Pods" => ("pods", false),
        "Object" => ("object", false),
        "Resource" => ("resource", true),
        "ContainerResource" => ("containerResource", true),
        _ => return "<unknown type>".to_owned(),
    };
    let spec = &spec[source];
    let status = status.and_then(|status| at(status, &format!("/{source}")));
    let average = at(spec, "/target/averageValue").is_some();
    let (field, unit, suffix, absent) = match (source, named, average) {
        ("pods", ..) => ("averageValue", "", "", NO_QUANTITY),
        (_, true, true) => ("averageValue", "", "", NO_QUANTITY),
        (_, true, false) => ("averageUtilization", "%", "", "<auto>"),
        (_, false, true) => ("averageValue", "", " (avg)", NO_QUANTITY),
        (_, false, false) => ("value", "", "", NO_QUANTITY),
    };
    let shown = |value: &Value, pointer: &str, absent: &str| match at(value, pointer) {
        None => absent.to_owned(),
        Some(_) => format!("{}{unit}", quantity(value, pointer)),
    };
    // Where a status is there, only an average or a share may be unknown.
    let unknown = if unit.is_empty() && suffix.is_empty() { NO_QUANTITY } else { "<unknown>" };
    let current =
        status.map_or("<unknown>".to_owned(), |status| shown(status, &format!("/current/{field}"), unknown));
    let target = shown(spec, &format!("/target/{field}"), absent);
    let name = if named { format!("{}: ", text(spec, "/name")) } else { String::new() };
    format!("{name}{current}/{target}{suffix}")
}

#[cfg(test)]
#[expect(clippy::needless_pass_by_value, reason = "literals read better than references to them")]
mod tests {
    use jiff::Timestamp;

    use super::*;

    fn shown(metrics: Value, current: Value) -> String {
        targets(&json!({"spec": {"metrics": metrics}, "status": {"currentMetrics": current}}))
    }

    #[test]
    fn metrics_are_shown_by_their_type() {
        let cpu =
            json!({"type": "Resource", "resource": {"name": "cpu", "target": {"averageUtilization": 80}}});
        assert_eq!(shown(json!([cpu]), Value::Null), "cpu: <unknown>/80%");
        let object = json!({"type": "Object", "object": {"target": {"value": "5"}}});
        assert_eq!(
            shown(json!([object]), json!([{"object": {"current": {"averageValue": "1"}}}])),
            "<nil>/5"
        );
        let current =
            json!([{"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": 5}}}]);
        assert_eq!(shown(json!([cpu]), current), "cpu: 5%/80%");
        let pods = json!({"type": "Pods", "pods": {"target": {"averageValue": "10"}}});
        let external = json!({"type": "External", "external": {"target": {"averageValue": "3"}}});
        assert_eq!(shown(json!([pods, external]), Value::Null), "<unknown>/10, <unknown>/3 (avg)");
        assert_eq!(
            shown(json!([pods, external, cpu]), Value::Null),
            "<unknown>/10, <unknown>/3 (avg) + 1 more..."
        );
        assert_eq!(shown(json!([{"type": "Odd"}]), Value::Null), "<unknown type>");
        assert_eq!(shown(json!([]), Value::Null), "<none>");
    }

    #[test]
    fn a_budget_shows_numbers_and_percentages() {
        let budget = json!({"metadata": {"name": "b"}, "spec": {"minAvailable": "50%"}});
        assert_eq!(
            (DISRUPTION_BUDGETS.cells)(&budget, Timestamp::UNIX_EPOCH)[..4],
            cells!["b", "50%", "N/A", 0]
        );
        let budget = json!({"spec": {"maxUnavailable": 1}});
        assert_eq!((DISRUPTION_BUDGETS.cells)(&budget, Timestamp::UNIX_EPOCH)[2], "1");
    }
}
