//! Whether an object does what it is there for: what a later wave of an apply waits for.
//!
//! The rules are those of kstatus (`sigs.k8s.io/cli-utils/pkg/kstatus/status`), but that a Job has to be complete.

use serde_json::Value;

/// Why an object is not ready, in words; none when it is. `group` and `kind` say what it is, `object` is its JSON.
///
/// Of each kind: it is not being deleted; its controller has seen this generation (`status.observedGeneration`, if there is one);
/// its conditions `Reconciling` and `Stalled` are not true. Of workloads all replicas are updated and available, a Job is
/// complete, a claim or volume is bound, a Pod is ready or has succeeded, a definition of a kind is established, an APIService available. Of all
/// other kinds the condition `Ready`, if there is one, is true.
pub(super) fn why_not(group: &str, kind: &str, object: &Value) -> Option<String> {
    let (metadata, status) = (&object["metadata"], &object["status"]);
    if !metadata["deletionTimestamp"].is_null() {
        return Some("it is being deleted".to_owned());
    }
    if let (Some(generation), Some(seen)) =
        (metadata["generation"].as_i64(), status["observedGeneration"].as_i64())
        && generation != seen
    {
        return Some(format!("generation {generation} is not observed yet"));
    }
    let untrue = |name: &str| not_true(status, name);
    match (group, kind) {
        ("apps", "Deployment" | "StatefulSet" | "DaemonSet") if status["observedGeneration"].is_null() => {
            Some("it is not observed yet".to_owned())
        }
        ("apps", "Deployment") => {
            let wanted = wanted(object);
            let counts = [("updatedReplicas", "updated"), ("availableReplicas", "available")];
            counts.iter().find_map(|(field, word)| too_few(status, field, word, wanted)).or_else(|| {
                let old = count(status, "replicas") - count(status, "updatedReplicas");
                (old > 0).then(|| format!("{old} old replicas are to end"))
            })
        }
        ("apps", "StatefulSet") => {
            let wanted = wanted(object);
            let strategy = &object["spec"]["updateStrategy"];
            let kept = strategy["rollingUpdate"]["partition"].as_i64().unwrap_or_default();
            let is_manual = strategy["type"] == "OnDelete";
            let updated = if is_manual { 0 } else { (wanted - kept).max(0) };
            too_few(status, "readyReplicas", "ready", wanted)
                .or_else(|| too_few(status, "updatedReplicas", "updated", updated))
        }
        ("apps", "DaemonSet") => {
            let wanted = count(status, "desiredNumberScheduled");
            let is_manual = object["spec"]["updateStrategy"]["type"] == "OnDelete";
            let updated = if is_manual { 0 } else { wanted };
            too_few(status, "numberReady", "ready", wanted)
                .or_else(|| too_few(status, "updatedNumberScheduled", "updated", updated))
        }
        ("apps", "ReplicaSet") | ("", "ReplicationController") => {
            too_few(status, "availableReplicas", "available", wanted(object))
        }
        ("batch", "Job") => untrue("Complete").map(|why| match condition(status, "Failed") {
            Some(_) => describe(status, "Failed"),
            None => why,
        }),
        ("", "Pod") if status["phase"] == "Succeeded" => None,
        ("", "Pod") => untrue("Ready"),
        ("", "PersistentVolumeClaim" | "PersistentVolume") => {
            let phase = status["phase"].as_str().unwrap_or_default();
            let is_ready = phase == "Bound" || (kind == "PersistentVolume" && phase == "Available");
            (!is_ready).then(|| format!("its phase is {phase:?}"))
        }
        ("apiextensions.k8s.io", "CustomResourceDefinition") => untrue("Established"),
        ("apiregistration.k8s.io", "APIService") => untrue("Available"),
        _ => {
            let hinders = ["Reconciling", "Stalled"]
                .into_iter()
                .find(|name| condition(status, name).is_some_and(|condition| condition["status"] == "True"));
            hinders
                .map(|name| describe(status, name))
                .or_else(|| condition(status, "Ready").and_then(|_| untrue("Ready")))
        }
    }
}

/// How many replicas are wanted; one where nothing is said.
fn wanted(object: &Value) -> i64 {
    object["spec"]["replicas"].as_i64().unwrap_or(1)
}

fn count(status: &Value, field: &str) -> i64 {
    status[field].as_i64().unwrap_or_default()
}

fn too_few(status: &Value, field: &str, word: &str, wanted: i64) -> Option<String> {
    let there = count(status, field);
    (there < wanted).then(|| format!("{there} of {wanted} {word}"))
}

fn condition<'a>(status: &'a Value, name: &str) -> Option<&'a Value> {
    status["conditions"].as_array()?.iter().find(|condition| condition["type"] == name)
}

fn not_true(status: &Value, name: &str) -> Option<String> {
    let is_true = condition(status, name).is_some_and(|condition| condition["status"] == "True");
    (!is_true).then(|| describe(status, name))
}

/// A condition in words: `Ready is False: 3 of 5 members`.
fn describe(status: &Value, name: &str) -> String {
    let Some(condition) = condition(status, name) else { return format!("it is not {name} yet") };
    let is = condition["status"].as_str().unwrap_or("Unknown");
    match condition["message"].as_str().or_else(|| condition["reason"].as_str()).filter(|why| !why.is_empty())
    {
        Some(why) => format!("{name} is {is}: {why}"),
        None => format!("{name} is {is}"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::why_not;

    /// A kind by group and name, spec and status of an object of generation 2, and why it is not ready.
    type Case = (&'static str, &'static str, Value, Value, Option<&'static str>);

    fn condition(name: &str, is: &str) -> Value {
        json!({"conditions": [{"type": name, "status": is, "message": "why"}]})
    }

    fn expect(cases: impl IntoIterator<Item = Case>) {
        for (group, kind, spec, status, expected) in cases {
            let object = json!({"metadata": {"generation": 2}, "spec": spec, "status": status});
            assert_eq!(why_not(group, kind, &object).as_deref(), expected, "{kind} {object}");
        }
    }

    #[test]
    fn a_workload_is_ready_when_all_of_it_is_updated_and_available() {
        expect([
            ("apps", "Deployment", json!({"replicas": 2}), json!({}), Some("it is not observed yet")),
            (
                "apps",
                "Deployment",
                json!({}),
                json!({"observedGeneration": 1}),
                Some("generation 2 is not observed yet"),
            ),
            (
                "apps",
                "Deployment",
                json!({"replicas": 2}),
                json!({"observedGeneration": 2, "replicas": 2, "updatedReplicas": 1}),
                Some("1 of 2 updated"),
            ),
            (
                "apps",
                "Deployment",
                json!({"replicas": 2}),
                json!({"observedGeneration": 2, "replicas": 2, "updatedReplicas": 2, "availableReplicas": 1}),
                Some("1 of 2 available"),
            ),
            (
                "apps",
                "Deployment",
                json!({}),
                json!({"observedGeneration": 2, "replicas": 2, "updatedReplicas": 1, "availableReplicas": 2}),
                Some("1 old replicas are to end"),
            ),
            (
                "apps",
                "Deployment",
                json!({}),
                json!({"observedGeneration": 2, "replicas": 1, "updatedReplicas": 1, "availableReplicas": 1}),
                None,
            ),
            (
                "apps",
                "StatefulSet",
                json!({"replicas": 3}),
                json!({"observedGeneration": 2, "readyReplicas": 3, "updatedReplicas": 2}),
                Some("2 of 3 updated"),
            ),
            (
                "apps",
                "StatefulSet",
                json!({"replicas": 3, "updateStrategy": {"rollingUpdate": {"partition": 1}}}),
                json!({"observedGeneration": 2, "readyReplicas": 3, "updatedReplicas": 2}),
                None,
            ),
            (
                "apps",
                "StatefulSet",
                json!({"updateStrategy": {"type": "OnDelete"}}),
                json!({"observedGeneration": 2, "readyReplicas": 1}),
                None,
            ),
            (
                "apps",
                "DaemonSet",
                json!({}),
                json!({"observedGeneration": 2, "desiredNumberScheduled": 2, "numberReady": 2, "updatedNumberScheduled": 1}),
                Some("1 of 2 updated"),
            ),
            ("apps", "ReplicaSet", json!({"replicas": 0}), json!({}), None),
            ("batch", "Job", json!({}), json!({}), Some("it is not Complete yet")),
            ("batch", "Job", json!({}), condition("Complete", "True"), None),
            ("batch", "Job", json!({}), condition("Failed", "True"), Some("Failed is True: why")),
        ]);
    }

    #[test]
    fn what_is_no_workload_is_ready_by_its_phase_or_conditions() {
        expect([
            ("", "ConfigMap", json!({}), json!(null), None),
            ("", "Pod", json!({}), json!({"phase": "Succeeded"}), None),
            ("", "Pod", json!({}), condition("Ready", "False"), Some("Ready is False: why")),
            (
                "",
                "PersistentVolumeClaim",
                json!({}),
                json!({"phase": "Pending"}),
                Some("its phase is \"Pending\""),
            ),
            ("", "PersistentVolume", json!({}), json!({"phase": "Available"}), None),
            (
                "apiextensions.k8s.io",
                "CustomResourceDefinition",
                json!({}),
                condition("Established", "True"),
                None,
            ),
            ("example.com", "Shop", json!({}), json!({}), None),
            ("example.com", "Shop", json!({}), condition("Ready", "Unknown"), Some("Ready is Unknown: why")),
            ("example.com", "Shop", json!({}), condition("Stalled", "True"), Some("Stalled is True: why")),
            ("example.com", "Shop", json!({}), condition("Stalled", "False"), None),
        ]);
        let ending = json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}});
        assert_eq!(why_not("", "ConfigMap", &ending).as_deref(), Some("it is being deleted"));
    }
}
