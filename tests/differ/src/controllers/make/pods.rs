//! Pods: bare ones, and what happens to those of workloads.

use serde_json::{Value, json};

use crate::controllers::make::{HOLD, Making};
use crate::controllers::story::{Pick, STRATEGIC, Step};

/// Something happens to a pod with a label, as a kubelet or a user would do it.
pub(super) fn one_of(making: &mut Making, app: &str) {
    let pick = making.picked("Pod", Some(app));
    happen(making, "@pick@", Some(&pick));
}

/// Something happens to any pod.
pub(super) fn any(making: &mut Making) {
    let pick = making.picked("Pod", None);
    happen(making, "@pick@", Some(&pick));
}

fn happen(making: &mut Making, name: &str, pick: Option<&Pick>) {
    let with = |step: Step| match pick {
        Some(pick) => step.picking(pick.clone()),
        None => step,
    };
    let step = match making.number(0, 13) {
        0..=2 => Step::delete("Pod", name, None),
        3 => {
            let step = status("fail", name, &json!({"phase": "Failed", "conditions": [ready("False")]}));
            step.quiet(4000)
        }
        4 => status("succeed", name, &json!({"phase": "Succeeded", "conditions": [ready("False")]}))
            .quiet(4000),
        5 | 6 => status("unready", name, &json!({"conditions": [ready("False")]})),
        7 | 8 => {
            let told = json!({"phase": "Running", "conditions": [ready("True")], "podIP": "10.9.8.7", "podIPs": [{"ip": "10.9.8.7"}]});
            if making.by_hand {
                status("run", name, &told)
            } else {
                status("ready", name, &json!({"conditions": [ready("True")]}))
            }
        }
        9 => {
            let app = making.word(&["other", "a", "b"]);
            Step::patch("Pod", "relabel", name, json!({"metadata": {"labels": {"app": app}}}))
        }
        10 => Step::patch("Pod", "disown", name, json!({"metadata": {"ownerReferences": null}})),
        11 => {
            making.step(with(Step::patch("Pod", "hold", name, json!({"metadata": {"finalizers": [HOLD]}}))));
            making.step(with(Step::delete("Pod", name, None)));
            return;
        }
        12 => {
            let cost = making.word(&["-5", "5"]);
            Step::patch(
                "Pod",
                "cost",
                name,
                json!({"metadata": {"annotations": {"controller.kubernetes.io/pod-deletion-cost": cost}}}),
            )
        }
        _ => evict(name),
    };
    making.step(with(step));
}

pub(super) fn evict(name: &str) -> Step {
    let body = json!({"kind": "Eviction", "apiVersion": "policy/v1", "metadata": {"name": name}});
    let step = Step::patch("Pod", "evict", name, body).sub("eviction").method("POST");
    step.media(crate::controllers::story::JSON)
}

pub(super) fn status(what: &str, name: &str, status: &Value) -> Step {
    Step::patch("Pod", what, name, json!({"status": status})).sub("status").media(STRATEGIC)
}

fn ready(status: &str) -> Value {
    json!({"type": "Ready", "status": status, "lastTransitionTime": "@now@"})
}

/// A bare pod, at times one that must be where the story's node is.
pub(super) fn pod(making: &mut Making) {
    let name = making.word(&["p1", "p2", "p3"]);
    let app = making.app();
    let template = making.template(app);
    let mut spec = template["spec"].clone();
    if making.nodes {
        spec["nodeSelector"] = json!({"differ": "@run@"});
        let tolerations = [
            json!([{"key": "differ", "operator": "Exists"}]),
            json!([{"key": "differ", "operator": "Equal", "value": "@run@", "effect": "NoSchedule"}]),
            json!([{"operator": "Exists"}]),
            json!([{"key": "differ", "operator": "Exists"}, {"key": "evict", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 2}]),
            Value::Null,
        ];
        spec["tolerations"] = making.value(&tolerations);
        schedule(making, &mut spec, app);
    } else if making.chance(0.2) {
        spec["nodeSelector"] = json!({"no": "node"});
    }
    if making.chance(0.15) {
        spec["hostname"] = json!("h");
        spec["subdomain"] = json!(making.word(&["svc", "other"]));
    }
    // Simulated nodes differ in whether they say that gates are open.
    if making.by_hand && making.chance(0.1) {
        spec["readinessGates"] = json!([{"conditionType": "differ.example.com/ready"}]);
    }
    let adopted = making.steps.iter().any(|step| {
        ["ReplicaSet/create", "Deployment/create", "ReplicationController/create"]
            .contains(&step.what.as_str())
    });
    if adopted {
        // Whoever adopts it may delete it before or after it is scheduled.
        spec["schedulerName"] = json!("nobody");
    }
    if making.chance(0.1) {
        spec["schedulingGates"] = json!([{"name": "differ.example.com/gate"}]);
    }
    let labels = &template["metadata"]["labels"];
    making.step(Step::create(
        "Pod",
        json!({"kind": "Pod", "apiVersion": "v1", "metadata": {"name": name, "labels": labels}, "spec": spec}),
    ));
}

/// Where it may be scheduled.
fn schedule(making: &mut Making, spec: &mut Value, app: &str) {
    let selector = json!({"matchLabels": {"app": app}});
    match making.number(0, 8) {
        0 => {
            spec["affinity"] = json!({"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution":
                [{"labelSelector": selector, "topologyKey": "kubernetes.io/hostname"}]}});
        }
        1 => {
            spec["affinity"] = json!({"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution":
                [{"labelSelector": {"matchLabels": {"app": making.app()}}, "topologyKey": "kubernetes.io/hostname"}]}});
        }
        2 => {
            spec["topologySpreadConstraints"] = json!([{"maxSkew": 1, "topologyKey": "zone",
                "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector}]);
        }
        3 => {
            let operator = making.word(&["In", "NotIn", "Exists", "DoesNotExist", "Gt"]);
            let values = match operator {
                "In" | "NotIn" => json!([making.word(&["z1", "z2"])]),
                "Gt" => json!(["1"]),
                _ => Value::Null,
            };
            let key = if operator == "Gt" { "size" } else { "zone" };
            spec["affinity"] = json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms":
                [{"matchExpressions": [{"key": key, "operator": operator, "values": values}]}]}}});
        }
        4 => {
            let cpu = making.word(&["500m", "3", "5"]);
            spec["containers"][0]["resources"] = json!({"requests": {"cpu": cpu}});
        }
        5 => {
            spec["containers"][0]["ports"] = json!([{"containerPort": 80, "hostPort": 8080}]);
        }
        _ => {}
    }
}

pub(super) fn change_pod(making: &mut Making) {
    match making.number(0, 6) {
        0..=2 => pod(making),
        3 => {
            let name = making.word(&["p1", "p2", "p3"]);
            making.step(Step::patch("Pod", "ungate", name, json!({"spec": {"schedulingGates": []}})));
        }
        4 => {
            let name = making.word(&["p1", "p2", "p3"]);
            making.step(Step::patch("Pod", "release", name, json!({"metadata": {"finalizers": null}})));
        }
        _ => {
            let name = making.word(&["p1", "p2", "p3"]);
            happen(making, name, None);
        }
    }
}
