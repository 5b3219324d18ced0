//! Deployments, ReplicaSets, ReplicationControllers, StatefulSets and DaemonSets.

use serde_json::{Value, json};

use crate::controllers::make::{Making, pods};
use crate::controllers::story::{MERGE, Step};

fn named(kind: &str, version: &str, name: &str, spec: &Value) -> Value {
    json!({"kind": kind, "apiVersion": version, "metadata": {"name": name, "labels": {"app": name}}, "spec": spec})
}

fn scale(making: &mut Making, kind: &'static str, name: &str) {
    let replicas = making.number(0, 5);
    if making.chance(0.5) {
        making.set(kind, "scale", name, json!({"replicas": replicas}));
    } else {
        let step = Step::patch(kind, "scale", name, json!({"spec": {"replicas": replicas}}));
        making.step(step.sub("scale").media(MERGE));
    }
}

fn rolling(making: &mut Making) -> Value {
    match making.number(0, 3) {
        0 => json!({"type": "Recreate"}),
        1 => Value::Null,
        _ => {
            let (surge, unavailable) = (making.share(), making.share());
            if surge == 0 && unavailable == 0 {
                return json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}});
            }
            json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}})
        }
    }
}

pub(super) fn deployment(making: &mut Making) {
    let mut spec = json!({
        "replicas": making.number(0, 4),
        "selector": {"matchLabels": {"app": "a"}},
        "template": making.template("a"),
    });
    if making.chance(0.6) {
        spec["strategy"] = rolling(making);
    }
    if making.chance(0.3) {
        spec["revisionHistoryLimit"] = json!(making.number(0, 2));
    }
    if making.chance(0.1) {
        spec["paused"] = json!(true);
    }
    if making.chance(0.15) {
        spec["progressDeadlineSeconds"] = json!(2);
        making.quiet = making.quiet.max(4500);
    }
    if making.chance(0.15) {
        spec["minReadySeconds"] = json!(1);
        making.quiet = making.quiet.max(4500);
    }
    making.step(Step::create("Deployment", named("Deployment", "apps/v1", "web", &spec)));
}

pub(super) fn change_deployment(making: &mut Making) {
    const KIND: &str = "Deployment";
    match making.number(0, 19) {
        0..=2 => scale(making, KIND, "web"),
        3..=6 => making.other_template(KIND, "web"),
        7 => {
            let paused = making.chance(0.6);
            making.set(KIND, "pause", "web", json!({"paused": paused}));
        }
        8 => {
            let strategy = rolling(making);
            let strategy = if strategy["type"] == "Recreate" {
                json!({"type": "Recreate", "rollingUpdate": null})
            } else {
                strategy
            };
            making.set(KIND, "strategy", "web", json!({"strategy": strategy}));
        }
        9 => {
            let limit = making.number(0, 2);
            making.set(KIND, "history", "web", json!({"revisionHistoryLimit": limit}));
        }
        10 => {
            let pick = making.picked("ReplicaSet", Some("a"));
            making.step(Step::delete("ReplicaSet", "@pick@", None).picking(pick));
        }
        11 => {
            let pick = making.picked("ReplicaSet", Some("a"));
            let replicas = making.number(0, 3);
            making.step(
                Step::patch("ReplicaSet", "scale", "@pick@", json!({"spec": {"replicas": replicas}}))
                    .picking(pick),
            );
        }
        12 => making.common(KIND, "web", deployment),
        16 => {
            // A set that nobody owns and that it selects.
            let replicas = making.number(0, 2);
            let labels = json!({"app": "a", "old": "set"});
            let mut template = making.template("a");
            template["metadata"]["labels"] = labels.clone();
            let spec =
                json!({"replicas": replicas, "selector": {"matchLabels": labels}, "template": template});
            making.step(Step::object(
                "ReplicaSet",
                "old",
                json!({"metadata": {"labels": labels}, "spec": spec}),
            ));
        }
        17 => {
            let pick = making.picked("ReplicaSet", Some("a"));
            let patch = making.value(&[
                json!({"metadata": {"labels": {"app": "elsewhere"}}}),
                json!({"metadata": {"ownerReferences": null}}),
                json!({"metadata": {"annotations": {"deployment.kubernetes.io/revision": "7"}}}),
            ]);
            making.step(Step::patch("ReplicaSet", "spoil", "@pick@", patch).picking(pick));
        }
        18 => {
            let spec = making.value(&[
                json!({"minReadySeconds": 1}),
                json!({"minReadySeconds": 0}),
                json!({"progressDeadlineSeconds": 3}),
            ]);
            making.quiet = making.quiet.max(4500);
            making.set(KIND, "seconds", "web", spec);
        }
        _ => pods::one_of(making, "a"),
    }
}

pub(super) fn replica_set(making: &mut Making) {
    let mut spec = json!({
        "replicas": making.number(0, 4),
        "selector": {"matchLabels": {"app": "a"}},
        "template": making.template("a"),
    });
    if making.chance(0.1) {
        spec["minReadySeconds"] = json!(1);
        making.quiet = making.quiet.max(4000);
    }
    making.step(Step::create("ReplicaSet", named("ReplicaSet", "apps/v1", "set", &spec)));
}

pub(super) fn change_replica_set(making: &mut Making) {
    match making.number(0, 9) {
        0..=2 => scale(making, "ReplicaSet", "set"),
        3 => making.other_template("ReplicaSet", "set"),
        4 => making.common("ReplicaSet", "set", replica_set),
        _ => pods::one_of(making, "a"),
    }
}

pub(super) fn controller(making: &mut Making) {
    let spec =
        json!({"replicas": making.number(0, 4), "selector": {"app": "b"}, "template": making.template("b")});
    making.step(Step::create("ReplicationController", named("ReplicationController", "v1", "rc", &spec)));
}

pub(super) fn change_controller(making: &mut Making) {
    match making.number(0, 9) {
        0..=2 => scale(making, "ReplicationController", "rc"),
        3 => making.other_template("ReplicationController", "rc"),
        4 => making.common("ReplicationController", "rc", controller),
        _ => pods::one_of(making, "b"),
    }
}

fn stateful_strategy(making: &mut Making) -> Value {
    match making.number(0, 4) {
        0 => json!({"type": "OnDelete", "rollingUpdate": null}),
        1 => json!({"type": "RollingUpdate", "rollingUpdate": {"partition": making.number(0, 3)}}),
        2 => {
            let most = making.value(&[json!(1), json!(2), json!("50%"), json!(3)]);
            json!({"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": most, "partition": making.number(0, 1)}})
        }
        _ => json!({"type": "RollingUpdate"}),
    }
}

pub(super) fn stateful_set(making: &mut Making) {
    let mut spec = json!({
        "replicas": making.number(0, 4),
        "serviceName": "db",
        "selector": {"matchLabels": {"app": "s"}},
        "template": making.template("s"),
    });
    if making.chance(0.5) {
        spec["podManagementPolicy"] = json!("Parallel");
    }
    if making.chance(0.5) {
        spec["updateStrategy"] = stateful_strategy(making);
    }
    if making.chance(0.15) {
        spec["ordinals"] = json!({"start": making.number(1, 3)});
    }
    if making.chance(0.3) {
        spec["revisionHistoryLimit"] = json!(making.number(0, 2));
    }
    if making.chance(0.2) {
        spec["volumeClaimTemplates"] = json!([{"metadata": {"name": "data"}, "spec": {
            "accessModes": ["ReadWriteOnce"], "storageClassName": "none", "resources": {"requests": {"storage": "1Gi"}}}}]);
        spec["template"]["spec"]["schedulerName"] = json!("nobody");
        if making.chance(0.6) {
            let (deleted, scaled) = (making.word(&["Retain", "Delete"]), making.word(&["Retain", "Delete"]));
            spec["persistentVolumeClaimRetentionPolicy"] =
                json!({"whenDeleted": deleted, "whenScaled": scaled});
        }
    }
    if making.chance(0.1) {
        spec["minReadySeconds"] = json!(1);
        making.quiet = making.quiet.max(4500);
    }
    making.step(Step::create("StatefulSet", named("StatefulSet", "apps/v1", "db", &spec)));
}

pub(super) fn change_stateful_set(making: &mut Making) {
    const KIND: &str = "StatefulSet";
    match making.number(0, 15) {
        14 => {
            // A revision goes, or says another number.
            let pick = making.picked("ControllerRevision", None);
            let step = if making.chance(0.5) {
                Step::delete("ControllerRevision", "@pick@", None)
            } else {
                Step::patch("ControllerRevision", "renumber", "@pick@", json!({"revision": 9}))
            };
            making.step(step.picking(pick));
        }
        15 => {
            let seconds = making.number(0, 1);
            making.quiet = making.quiet.max(4500);
            making.set(KIND, "seconds", "db", json!({"minReadySeconds": seconds}));
        }
        0..=2 => scale(making, KIND, "db"),
        3..=5 => making.other_template(KIND, "db"),
        6 => {
            let strategy = stateful_strategy(making);
            making.set(KIND, "strategy", "db", json!({"updateStrategy": strategy}));
        }
        7 => {
            let start = making.number(0, 2);
            making.set(KIND, "ordinals", "db", json!({"ordinals": {"start": start}}));
        }
        8 => {
            let limit = making.number(0, 2);
            making.set(KIND, "history", "db", json!({"revisionHistoryLimit": limit}));
        }
        9 => {
            let (deleted, scaled) = (making.word(&["Retain", "Delete"]), making.word(&["Retain", "Delete"]));
            let policy = json!({"persistentVolumeClaimRetentionPolicy": {"whenDeleted": deleted, "whenScaled": scaled}});
            making.set(KIND, "retention", "db", policy);
        }
        10 => making.common(KIND, "db", stateful_set),
        _ => pods::one_of(making, "s"),
    }
}

fn daemon_strategy(making: &mut Making) -> Value {
    match making.number(0, 3) {
        0 => json!({"type": "OnDelete", "rollingUpdate": null}),
        1 => json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}),
        _ => {
            json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": making.value(&[json!(1), json!(2), json!("50%")])}})
        }
    }
}

pub(super) fn daemon_set(making: &mut Making) {
    let mut template = making.template("d");
    if making.chance(0.3) {
        template["spec"]["nodeSelector"] = json!({"differ": "@run@"});
    }
    let mut spec = json!({"selector": {"matchLabels": {"app": "d"}}, "template": template});
    if making.chance(0.1) {
        spec["minReadySeconds"] = json!(1);
        making.quiet = making.quiet.max(4500);
    }
    if making.chance(0.5) {
        spec["updateStrategy"] = daemon_strategy(making);
    }
    if making.chance(0.3) {
        spec["revisionHistoryLimit"] = json!(making.number(0, 2));
    }
    making.step(Step::create("DaemonSet", named("DaemonSet", "apps/v1", "agent", &spec)));
}

pub(super) fn change_daemon_set(making: &mut Making) {
    match making.number(0, 12) {
        8 => {
            let tolerations = making.value(&[
                Value::Null,
                json!([{"key": "differ", "operator": "Equal", "value": "@run@", "effect": "NoSchedule"}]),
                json!([{"key": "differ", "operator": "Equal", "value": "@run@"}, {"key": "evict", "operator": "Exists"}]),
            ]);
            making.set(
                "DaemonSet",
                "tolerate",
                "agent",
                json!({"template": {"spec": {"tolerations": tolerations}}}),
            );
        }
        9 => {
            let limit = making.number(0, 2);
            making.set("DaemonSet", "history", "agent", json!({"revisionHistoryLimit": limit}));
        }
        0..=3 => making.other_template("DaemonSet", "agent"),
        4 => {
            let strategy = daemon_strategy(making);
            making.set("DaemonSet", "strategy", "agent", json!({"updateStrategy": strategy}));
        }
        5 => {
            let selector = making.value(&[Value::Null, json!({"differ": "@run@"}), json!({"no": "node"})]);
            making.set(
                "DaemonSet",
                "selector",
                "agent",
                json!({"template": {"spec": {"nodeSelector": selector}}}),
            );
        }
        6 => making.common("DaemonSet", "agent", daemon_set),
        7 if making.nodes => super::cluster::change_node(making),
        _ => pods::one_of(making, "d"),
    }
}
