//! Horizontal pod autoscalers: `autoscaling/v1` knows one metric, the share of cpu, as a field of its own. All else is
//! kept in annotations (`pkg/apis/autoscaling/v1/conversion.go`).

use serde_json::{Map, Value, json};

use super::super::fill;

/// The annotations that hold what `v1` has no field for.
pub(crate) const ANNOTATIONS: [&str; 4] = [METRICS, CURRENT, CONDITIONS, BEHAVIOR];
const METRICS: &str = "autoscaling.alpha.kubernetes.io/metrics";
const CURRENT: &str = "autoscaling.alpha.kubernetes.io/current-metrics";
const CONDITIONS: &str = "autoscaling.alpha.kubernetes.io/conditions";
const BEHAVIOR: &str = "autoscaling.alpha.kubernetes.io/behavior";
/// What a target or a current value says, and the end of its name in `v1`.
const AMOUNTS: [(&str, &str); 3] =
    [("averageUtilization", "AverageUtilization"), ("averageValue", "AverageValue"), ("value", "Value")];

/// From `v1` to `v2`.
pub(crate) fn to_v2(object: &mut Value) {
    fill::set(object, "apiVersion", "autoscaling/v2");
    let mut read =
        |key: &str| take_annotation(object, key).and_then(|text| serde_json::from_str::<Value>(&text).ok());
    let (metrics, current, conditions, behavior) =
        (read(METRICS), read(CURRENT), read(CONDITIONS), read(BEHAVIOR));
    if let Some(spec) = fill::present(object, "spec") {
        let mut all: Vec<Value> =
            list(metrics).into_iter().map(|metric| rename_metric(metric, "target", false)).collect();
        if let Some(share) = take(spec, "targetCPUUtilizationPercentage") {
            all.push(cpu(&json!({"type": "Utilization", "averageUtilization": share}), "target"));
        }
        // An object that says nothing, as that of a bookmark, was never read from the store, which fills it in.
        if all.is_empty() && spec["maxReplicas"] != 0 {
            all.push(cpu(&json!({"type": "Utilization", "averageUtilization": 80}), "target"));
        }
        if !all.is_empty() {
            fill::set(spec, "metrics", all);
        }
        if let Some(behavior) = behavior.filter(Value::is_object) {
            fill::set(spec, "behavior", recase(behavior, false));
        }
    }
    if let Some(status) = fill::present(object, "status") {
        let share = take(status, "currentCPUUtilizationPercentage");
        let _ = take(status, "currentReplicas")
            .filter(|count| *count != 0)
            .map(|count| fill::set(status, "currentReplicas", count));
        let mut all: Vec<Value> =
            list(current).into_iter().map(|metric| rename_metric(metric, "current", false)).collect();
        if let (true, Some(share)) = (all.is_empty(), share) {
            all.push(cpu(&json!({"averageUtilization": share}), "current"));
        }
        // Go writes a list that is none.
        fill::set(status, "currentMetrics", if all.is_empty() { Value::Null } else { all.into() });
        if let Some(conditions) = conditions.filter(Value::is_array) {
            fill::set(status, "conditions", conditions);
        }
    }
}

/// From `v2` to `v1`.
pub(crate) fn from_v2(object: &mut Value) {
    fill::set(object, "apiVersion", "autoscaling/v1");
    let mut notes: Vec<(&str, Value)> = Vec::new();
    if let Some(spec) = fill::present(object, "spec") {
        let (shares, others): (Vec<Value>, Vec<Value>) =
            list(take(spec, "metrics")).into_iter().partition(|metric| cpu_share(metric, "target").is_some());
        if let Some(share) = shares.first().and_then(|metric| cpu_share(metric, "target")) {
            fill::set(spec, "targetCPUUtilizationPercentage", share.clone());
        }
        if !others.is_empty() {
            let others: Vec<Value> =
                others.into_iter().map(|metric| rename_metric(metric, "target", true)).collect();
            notes.push((METRICS, others.into()));
        }
        if let Some(behavior) = take(spec, "behavior") {
            notes.push((BEHAVIOR, of_internal(behavior)));
        }
    }
    if let Some(status) = fill::present(object, "status") {
        let current = list(take(status, "currentMetrics"));
        if let Some(share) = current.iter().find_map(|metric| cpu_share(metric, "current")) {
            fill::set(status, "currentCPUUtilizationPercentage", share.clone());
        }
        if !current.is_empty() {
            let current: Vec<Value> =
                current.into_iter().map(|metric| rename_metric(metric, "current", true)).collect();
            notes.push((CURRENT, current.into()));
        }
        if let Some(conditions) =
            take(status, "conditions").filter(|all| all.as_array().is_some_and(|all| !all.is_empty()))
        {
            notes.push((CONDITIONS, conditions));
        }
        // `v2` leaves a zero out, `v1` does not.
        if status.get("currentReplicas").is_none() {
            fill::set(status, "currentReplicas", 0);
        }
    }
    if notes.is_empty() {
        return;
    }
    if let Some(annotations) =
        fill::object(object, "metadata").and_then(|metadata| fill::map(metadata, "annotations"))
    {
        for (key, value) in notes {
            annotations.insert(key.to_owned(), in_order(&value).into());
        }
    }
}

/// The fields of the types that annotations hold, in an order that is that of each of them in Go.
const ORDER: [&str; 40] = [
    "type",
    "status",
    "lastTransitionTime",
    "reason",
    "message",
    "object",
    "pods",
    "resource",
    "containerResource",
    "external",
    "kind",
    "target",
    "metricName",
    "metricSelector",
    "name",
    "apiVersion",
    "targetValue",
    "currentValue",
    "targetAverageUtilization",
    "currentAverageUtilization",
    "targetAverageValue",
    "currentAverageValue",
    "container",
    "selector",
    "averageValue",
    "matchLabels",
    "matchExpressions",
    "key",
    "operator",
    "values",
    "ScaleUp",
    "ScaleDown",
    "StabilizationWindowSeconds",
    "SelectPolicy",
    "Policies",
    "Tolerance",
    "Type",
    "Value",
    "PeriodSeconds",
    "observedGeneration",
];

/// A value as Go writes it as JSON.
fn in_order(value: &Value) -> String {
    match value {
        Value::Array(items) => format!("[{}]", items.iter().map(in_order).collect::<Vec<_>>().join(",")),
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_by_key(|(key, _)| ORDER.iter().position(|known| known == key));
            let member = |(key, value): (&String, &Value)| {
                let key = Value::from(key.as_str());
                // Labels are sorted by their names alone.
                if key == "matchLabels" {
                    format!("{key}:{value}")
                } else {
                    format!("{key}:{}", in_order(value))
                }
            };
            format!("{{{}}}", fields.into_iter().map(member).collect::<Vec<_>>().join(","))
        }
        scalar => scalar.to_string(),
    }
}

/// How fast it scales, as the internal type is written: with all its fields.
fn of_internal(behavior: Value) -> Value {
    let mut behavior = recase(behavior, true);
    for direction in ["ScaleUp", "ScaleDown"] {
        fill::absent(&mut behavior, direction, Value::Null);
        if let Some(rules) = fill::present(&mut behavior, direction) {
            for field in ["StabilizationWindowSeconds", "SelectPolicy", "Policies", "Tolerance"] {
                fill::absent(rules, field, Value::Null);
            }
        }
    }
    behavior
}

fn take(parent: &mut Value, key: &str) -> Option<Value> {
    parent.as_object_mut()?.remove(key).filter(|value| !value.is_null())
}

fn list(value: Option<Value>) -> Vec<Value> {
    match value {
        Some(Value::Array(items)) => items,
        _ => Vec::new(),
    }
}

/// Removes an annotation, and the annotations with the last of them.
fn take_annotation(object: &mut Value, key: &str) -> Option<String> {
    let metadata = fill::present(object, "metadata")?;
    let annotations = fill::present(metadata, "annotations")?;
    let text = take(annotations, key)?.as_str()?.to_owned();
    if annotations.as_object().is_some_and(Map::is_empty) {
        fill::remove(metadata, "annotations");
    }
    Some(text)
}

fn cpu(amount: &Value, role: &str) -> Value {
    json!({"type": "Resource", "resource": {"name": "cpu", role: amount}})
}

fn cpu_share<'a>(metric: &'a Value, role: &str) -> Option<&'a Value> {
    let resource = &metric["resource"];
    let is_cpu = metric["type"] == "Resource" && resource["name"] == "cpu";
    resource.get(role)?.get("averageUtilization").filter(|share| is_cpu && !share.is_null())
}

/// One metric, from `v2` to the form that annotations have (`flat`) or back. `role` is `target` or `current`.
fn rename_metric(metric: Value, role: &str, flat: bool) -> Value {
    let Value::Object(fields) = metric else { return metric };
    let renamed = fields.into_iter().map(|(kind, source)| {
        let source = match source {
            Value::Object(source) if flat => Value::Object(flatten(source, &kind, role)),
            Value::Object(source) => Value::Object(unflatten(source, &kind, role)),
            other => other,
        };
        (kind, source)
    });
    Value::Object(renamed.collect())
}

/// What `v1` calls an amount: objects tell the average without a prefix.
fn flat_name(kind: &str, role: &str, (amount, end): (&str, &str)) -> String {
    if kind == "object" && amount == "averageValue" { amount.to_owned() } else { format!("{role}{end}") }
}

/// Whether `v1` has a field for an amount of a metric of a kind. What it has none for is lost there.
fn has_amount(kind: &str, amount: &str) -> bool {
    match kind {
        "object" | "external" => amount != "averageUtilization",
        "pods" => amount == "averageValue",
        _ => amount != "value",
    }
}

fn selector_name(kind: &str) -> &'static str {
    if kind == "external" { "metricSelector" } else { "selector" }
}

fn flatten(mut source: Map<String, Value>, kind: &str, role: &str) -> Map<String, Value> {
    if let Some(Value::Object(mut amounts)) = source.remove(role) {
        for amount in AMOUNTS {
            if let Some(value) = amounts.remove(amount.0).filter(|_| has_amount(kind, amount.0)) {
                source.insert(flat_name(kind, role, amount), value);
            }
        }
    }
    if let Some(Value::Object(mut identifier)) = source.remove("metric") {
        for (from, to) in [("name", "metricName"), ("selector", selector_name(kind))] {
            if let Some(value) = identifier.remove(from) {
                source.insert(to.to_owned(), value);
            }
        }
    }
    if let Some(described) = source.remove("describedObject") {
        source.insert("target".to_owned(), described);
    }
    add_zero(&mut source, kind, role);
    source
}

/// What is no pointer in `v1` is zero there where nothing is said of it.
fn add_zero(source: &mut Map<String, Value>, kind: &str, role: &str) {
    let always = match (kind, role) {
        ("object", "target") => "targetValue",
        ("object" | "external", "current") => "currentValue",
        ("pods", "target") => "targetAverageValue",
        ("pods" | "resource" | "containerResource", "current") => "currentAverageValue",
        _ => return,
    };
    if source.get(always).is_none_or(Value::is_null) {
        source.insert(always.to_owned(), "0".into());
    }
}

fn unflatten(mut source: Map<String, Value>, kind: &str, role: &str) -> Map<String, Value> {
    if kind == "object"
        && let Some(described) = source.remove("target")
    {
        source.insert("describedObject".to_owned(), described);
    }
    let mut identifier = Map::new();
    for (from, to) in [("metricName", "name"), (selector_name(kind), "selector")] {
        if let Some(value) = source.remove(from) {
            identifier.insert(to.to_owned(), value);
        }
    }
    if !identifier.is_empty() {
        source.insert("metric".to_owned(), identifier.into());
    }
    add_zero(&mut source, kind, role);
    let mut amounts = Map::new();
    for amount in AMOUNTS {
        if let Some(value) = source.remove(&flat_name(kind, role, amount)) {
            amounts.insert(amount.0.to_owned(), value);
        }
    }
    if role == "target" {
        if kind == "object"
            && amounts.contains_key("averageValue")
            && amounts.get("value").is_some_and(|zero| *zero == "0")
        {
            amounts.remove("value");
        }
        let has = |amount: &str| amounts.contains_key(amount);
        let kind = match () {
            () if has("averageUtilization") => "Utilization",
            () if has("value") && (kind == "external" || !has("averageValue")) => "Value",
            () => "AverageValue",
        };
        amounts.insert("type".to_owned(), kind.into());
    }
    if !amounts.is_empty() {
        source.insert(role.to_owned(), amounts.into());
    }
    source
}

/// The names of fields with a capital first letter (as Go writes its own structs) or a small one.
fn recase(value: Value, upper: bool) -> Value {
    match value {
        Value::Object(fields) => fields
            .into_iter()
            .filter(|(_, value)| !value.is_null())
            .map(|(key, value)| {
                let mut letters = key.chars();
                let first = letters
                    .next()
                    .map(|first| if upper { first.to_ascii_uppercase() } else { first.to_ascii_lowercase() });
                (first.into_iter().chain(letters).collect::<String>(), recase(value, upper))
            })
            .collect::<Map<String, Value>>()
            .into(),
        Value::Array(items) => items.into_iter().map(|item| recase(item, upper)).collect::<Vec<_>>().into(),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_share_of_cpu_is_a_field_of_v1() {
        let mut object = json!({"apiVersion": "autoscaling/v1", "spec": {"maxReplicas": 3, "targetCPUUtilizationPercentage": 50}});
        let before = object.clone();
        to_v2(&mut object);
        assert_eq!(object["apiVersion"], "autoscaling/v2");
        assert_eq!(
            object["spec"]["metrics"],
            json!([{"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}}])
        );
        from_v2(&mut object);
        assert_eq!(object, before);
    }

    #[test]
    fn an_amount_that_v1_has_no_field_for_is_lost_there_and_zeros_are_told() {
        let mut object = json!({
            "metadata": {"name": "a"},
            "spec": {"metrics": [{"type": "Object", "object": {"target": {"type": "Value", "value": "5", "averageUtilization": 7}}}]},
            "status": {"desiredReplicas": 0}
        });
        from_v2(&mut object);
        assert_eq!(object["status"], json!({"currentReplicas": 0, "desiredReplicas": 0}));
        assert!(!object["metadata"]["annotations"][METRICS].to_string().contains("Utilization"));
        to_v2(&mut object);
        assert_eq!(object["status"], json!({"desiredReplicas": 0, "currentMetrics": null}));
    }

    #[test]
    fn a_zero_that_an_annotation_leaves_out_is_one() {
        let annotation = |metrics: Value| json!({"annotations": {METRICS: metrics.to_string()}});
        let target = json!({"kind": "Service", "name": "s"});
        let object = |more: Value| {
            let mut object = json!({"target": target, "metricName": "m"});
            object.as_object_mut().expect("an object").extend(more.as_object().expect("fields").clone());
            let mut scaler =
                json!({"metadata": annotation(json!([{"type": "Object", "object": object}])), "spec": {}});
            to_v2(&mut scaler);
            scaler["spec"]["metrics"][0]["object"]["target"].take()
        };
        assert_eq!(object(json!({})), json!({"type": "Value", "value": "0"}));
        let average = json!({"type": "AverageValue", "averageValue": "1"});
        assert_eq!(object(json!({"averageValue": "1", "targetValue": "0"})), average);
        let current =
            json!([{"type": "Resource", "resource": {"name": "cpu", "currentAverageUtilization": 5}}]);
        let mut scaler = json!({"metadata": {"annotations": {CURRENT: current.to_string()}}, "status": {}});
        to_v2(&mut scaler);
        let told = &scaler["status"]["currentMetrics"][0]["resource"]["current"];
        assert_eq!(*told, json!({"averageUtilization": 5, "averageValue": "0"}));
    }

    #[test]
    fn what_v1_has_no_field_for_goes_through_annotations_and_comes_back() {
        let mut object = json!({
            "apiVersion": "autoscaling/v2",
            "metadata": {"name": "a", "annotations": {"own": "x"}},
            "spec": {
                "maxReplicas": 3,
                "metrics": [
                    {"type": "Resource", "resource": {"name": "memory", "target": {"type": "AverageValue", "averageValue": "1Gi"}}},
                    {"type": "Object", "object": {"describedObject": {"kind": "Service", "name": "s"}, "metric": {"name": "hits"}, "target": {"type": "Value", "value": "5"}}},
                    {"type": "External", "external": {"metric": {"name": "queue", "selector": {"matchLabels": {"a": "b"}}}, "target": {"type": "AverageValue", "averageValue": "30"}}},
                    {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}}
                ],
                "behavior": {"scaleUp": {"selectPolicy": "Max", "policies": [{"type": "Pods", "value": 4, "periodSeconds": 15}]}}
            },
            "status": {
                "currentMetrics": [{"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": 10, "averageValue": "10m"}}}],
                "conditions": [{"type": "AbleToScale", "status": "True"}]
            }
        });
        let before = object.clone();
        from_v2(&mut object);
        assert_eq!(object["spec"]["targetCPUUtilizationPercentage"], 50);
        assert_eq!(object["status"]["currentCPUUtilizationPercentage"], 10);
        assert!(object["spec"].get("metrics").is_none() && object["spec"].get("behavior").is_none());
        assert!(
            object["metadata"]["annotations"][METRICS]
                .as_str()
                .is_some_and(|text| text.contains("targetAverageValue"))
        );
        to_v2(&mut object);
        assert_eq!(object, before);
    }
}
