//! Priorities: pods that make room for others on the story's node.

use serde_json::{Value, json};

use crate::controllers::make::{Making, pods, policies};
use crate::controllers::story::Step;

const CLASSES: &[(&str, i32, &str)] = &[
    ("@run@-low", 10, "PreemptLowerPriority"),
    ("@run@-high", 1000, "PreemptLowerPriority"),
    ("@run@-polite", 1000, "Never"),
];

fn class(making: &mut Making, name: &str, value: i32, policy: &str) {
    making.step(Step::object("PriorityClass", name, json!({"value": value, "preemptionPolicy": policy})));
}

pub(super) fn priority(making: &mut Making) {
    for (name, value, policy) in CLASSES {
        class(making, name, *value, policy);
    }
    for name in ["low1", "low2"] {
        one(making, name, "@run@-low", "1500m");
    }
    if making.chance(0.3) {
        let least = making.number(0, 2);
        let spec = json!({"minAvailable": least, "selector": {"matchLabels": {"app": "p"}}});
        making.step(Step::object("PodDisruptionBudget", "pdb", json!({"spec": spec})));
    }
}

/// A pod of a class, of a size.
fn one(making: &mut Making, name: &str, class: &str, cpu: &str) {
    // Not what anybody adopts.
    let app = making.word(&["p", "p", "q"]);
    let template = making.template(app);
    let mut spec = template["spec"].clone();
    spec["nodeSelector"] = json!({"differ": "@run@"});
    spec["tolerations"] = json!([{"key": "differ", "operator": "Exists"}]);
    spec["containers"][0]["resources"] = json!({"requests": {"cpu": cpu}});
    spec["priorityClassName"] = json!(class);
    if let Some(spec) = spec.as_object_mut() {
        spec.remove("schedulerName");
    }
    let labels = &template["metadata"]["labels"];
    making.step(Step::object("Pod", name, json!({"metadata": {"labels": labels}, "spec": spec})));
}

pub(super) fn change_priority(making: &mut Making) {
    match making.number(0, 9) {
        0..=2 => {
            let name = making.word(&["high1", "high2"]);
            let (class, cpu) =
                (making.word(&["@run@-high", "@run@-high", "@run@-polite"]), making.word(&["1", "2", "3"]));
            one(making, name, class, cpu);
        }
        3 => {
            let name = making.word(&["low1", "low2", "low3"]);
            let cpu = making.word(&["500m", "1500m", "3"]);
            one(making, name, "@run@-low", cpu);
        }
        4 => {
            // It goes only when the story lets it.
            let name = making.word(&["low1", "low2"]);
            let finalizers = making.value(&[json!([super::HOLD]), Value::Null]);
            let patch = json!({"metadata": {"finalizers": finalizers}});
            making.step(Step::patch(
                "Pod",
                if finalizers.is_null() { "release" } else { "hold" },
                name,
                patch,
            ));
        }
        5 => {
            let name = making.word(&["low1", "low2", "high1"]);
            making.step(Step::delete("Pod", name, None));
        }
        6 => policies::change_budget(making),
        7 => {
            let (name, value, policy) = making.one(CLASSES).unwrap_or(("@run@-low", 10, "Never"));
            making.step(Step::delete("PriorityClass", name, None));
            if making.chance(0.5) {
                class(making, name, value, policy);
            }
        }
        8 => super::cluster::change_node(making),
        _ => pods::change_pod(making),
    }
}
