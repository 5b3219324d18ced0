//! What fields of Kubernetes' own types mean, by their names: values that a schema made of a Go type does not tell.
//!
//! Definitions embed PodSpec, Service and claims, and their schemas say `type: string` for what has five values, or a pattern for a
//! quantity. A name alone may mean something else in somebody's own type, so that a value is taken only where the schema allows its type.

use serde_json::{Value, json};

use crate::change::ENTRY;

/// The values of texts that are enumerations in `k8s.io/api`.
const CONSTANTS: [(&str, &[&str]); 17] = [
    ("accessModes", &["ReadWriteOnce", "ReadWriteMany", "ReadOnlyMany"]),
    ("concurrencyPolicy", &["Allow", "Forbid", "Replace"]),
    ("dnsPolicy", &["ClusterFirst", "Default"]),
    ("effect", &["NoSchedule", "PreferNoSchedule", "NoExecute"]),
    ("externalTrafficPolicy", &["Cluster", "Local"]),
    ("imagePullPolicy", &["Always", "IfNotPresent", "Never"]),
    ("internalTrafficPolicy", &["Cluster", "Local"]),
    ("ipFamilyPolicy", &["SingleStack", "PreferDualStack"]),
    ("pathType", &["Prefix", "Exact"]),
    ("podManagementPolicy", &["OrderedReady", "Parallel"]),
    ("preemptionPolicy", &["PreemptLowerPriority", "Never"]),
    ("protocol", &["TCP", "UDP"]),
    ("restartPolicy", &["Always", "OnFailure", "Never"]),
    ("serviceType", &["ClusterIP", "NodePort", "LoadBalancer"]),
    ("sessionAffinity", &["None", "ClientIP"]),
    ("terminationMessagePolicy", &["File", "FallbackToLogsOnError"]),
    ("whenUnsatisfiable", &["DoNotSchedule", "ScheduleAnyway"]),
];

/// What the field `type` has, by what is there now.
const TYPES: [&[&str]; 3] = [
    &["ClusterIP", "NodePort", "LoadBalancer"],
    &["RollingUpdate", "OnDelete"],
    &["RollingUpdate", "Recreate"],
];

/// Units of quantities (`k8s.io/apimachinery/pkg/api/resource`).
const UNITS: [&str; 16] =
    ["", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei", "u", "n"];
/// Units of durations (`time.ParseDuration`).
const TIMES: [&str; 4] = ["ms", "s", "m", "h"];

/// Other values of a text that somebody may want, by what it is called and what it is now; none where that is not known.
pub(crate) fn others(name: &str, schema: &Value, now: &str) -> Option<Vec<Value>> {
    if let Some(all) = constants(name, now) {
        return Some(all.iter().filter(|one| **one != now).map(|one| json!(one)).collect());
    }
    let (number, unit) = measured(now)?;
    let is_number = schema["x-kubernetes-int-or-string"] == true;
    let is_quantity = UNITS.contains(&unit) && (is_number || unit.len() == 2);
    if !is_quantity && !TIMES.contains(&unit) {
        return None;
    }
    let half = (number > 1).then(|| json!(format!("{}{unit}", number / 2)));
    Some([Some(json!(format!("{}{unit}", number.checked_mul(2)?))), half].into_iter().flatten().collect())
}

/// The key of an entry that somebody may add to the map at a path: resources are known by their names, what else there is by any.
pub(crate) fn entry(path: &str) -> &'static str {
    match path.rsplit('/').next() {
        Some("requests" | "limits") => "ephemeral-storage",
        _ => ENTRY,
    }
}

/// The number and the unit of a text such as `10Gi` or `90s`.
fn measured(text: &str) -> Option<(u64, &str)> {
    let end = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    Some((number.parse().ok()?, unit))
}

fn constants(name: &str, now: &str) -> Option<&'static [&'static str]> {
    if name == "type" {
        return TYPES.into_iter().find(|all| all.contains(&now));
    }
    let (_, all) = CONSTANTS.into_iter().find(|(known, _)| *known == name)?;
    all.contains(&now).then_some(all)
}

/// A value that somebody may want of a field that is not there yet; none where its name and type are no known ones.
pub(crate) fn example(name: &str, schema: &Value) -> Option<Value> {
    let kind = schema["type"].as_str()?;
    let has = |field: &str| schema["properties"][field].is_object();
    let of_items = |field: &str| schema["items"]["properties"][field].is_object();
    Some(match (name, kind) {
        ("affinity", "object") if has("nodeAffinity") => json!({"nodeAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": {"matchExpressions": [
                {"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]}]}}]}}),
        ("tolerations", "array") if of_items("tolerationSeconds") => {
            json!([{"key": "trial", "operator": "Exists", "effect": "NoSchedule"}])
        }
        ("nodeSelector", "object") if schema["additionalProperties"]["type"] == "string" => {
            json!({"kubernetes.io/os": "linux"})
        }
        ("resources", "object") if has("limits") && has("requests") => {
            json!({"limits": {"cpu": "200m", "memory": "256Mi"}, "requests": {"cpu": "100m", "memory": "128Mi"}})
        }
        ("securityContext" | "podSecurityContext" | "containerSecurityContext", "object")
            if has("runAsUser") =>
        {
            json!({"runAsUser": 1000})
        }
        ("env", "array") if of_items("valueFrom") => json!([{"name": "TRIAL", "value": "1"}]),
        ("imagePullSecrets", "array") if of_items("name") => json!([{"name": "trial"}]),
        ("topologySpreadConstraints", "array") if of_items("topologyKey") => json!([{"maxSkew": 1,
            "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": {"matchLabels": {"trial": "1"}}}]),
        ("sidecars" | "containers" | "initContainers" | "extraContainers", "array") if of_items("image") => {
            json!([{"name": "trial", "image": "trial:1"}])
        }
        ("volumes", "array") if of_items("emptyDir") => json!([{"name": "trial", "emptyDir": {}}]),
        ("livenessProbe" | "readinessProbe" | "startupProbe", "object") if has("httpGet") => {
            json!({"httpGet": {"path": "/", "port": 8080}})
        }
        ("storage" | "size" | "cpu" | "memory", _) if schema["x-kubernetes-int-or-string"] == true => {
            json!("1Gi")
        }
        (_, "string") => {
            let (_, all) = CONSTANTS.into_iter().find(|(known, _)| *known == name)?;
            json!(all.last()?)
        }
        _ => return None,
    })
}

/// A value of a field that no node can fulfil; none where the name and the type are no known ones.
pub(crate) fn unschedulable(name: &str, schema: &Value) -> Option<Value> {
    let has = |field: &str| schema["properties"][field].is_object();
    Some(match (name, schema["type"].as_str()?) {
        ("affinity", "object") if has("nodeAffinity") => json!({"nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": [
                {"key": "trial", "operator": "In", "values": ["nowhere"]}]}]}}}),
        ("nodeSelector", "object") if schema["additionalProperties"]["type"] == "string" => {
            json!({"trial": "nowhere"})
        }
        ("resources", "object") if has("limits") && has("requests") => {
            json!({"limits": {"cpu": "100000"}, "requests": {"cpu": "100000"}})
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_is_an_enumeration_has_its_other_values() {
        let text = json!({"type": "string"});
        let found = others("imagePullPolicy", &text, "Always");
        assert_eq!(found, Some(vec![json!("IfNotPresent"), json!("Never")]));
        assert_eq!(others("type", &text, "OnDelete"), Some(vec![json!("RollingUpdate")]));
        assert_eq!(others("effect", &text, "strong"), None, "somebody's own type");
    }

    #[test]
    fn quantities_and_durations_become_twice_and_half_as_much() {
        let quantity = json!({"x-kubernetes-int-or-string": true});
        let text = json!({"type": "string"});
        let found = |schema: &Value, now: &str| others("x", schema, now);
        assert_eq!(found(&quantity, "10Gi"), Some(vec![json!("20Gi"), json!("5Gi")]));
        assert_eq!(found(&text, "10Gi"), Some(vec![json!("20Gi"), json!("5Gi")]));
        assert_eq!(found(&text, "1s"), Some(vec![json!("2s")]));
        assert_eq!((found(&text, "7"), found(&text, "v1"), found(&text, "2x")), (None, None, None));
    }

    #[test]
    fn a_field_that_is_not_there_gets_what_its_type_in_kubernetes_means() {
        let secrets = json!({"type": "array", "items": {"properties": {"name": {"type": "string"}}}});
        assert_eq!(example("imagePullSecrets", &secrets), Some(json!([{"name": "trial"}])));
        assert_eq!(example("affinity", &json!({"type": "string"})), None);
    }
}
