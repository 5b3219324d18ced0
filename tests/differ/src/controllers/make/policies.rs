//! Disruption budgets, autoscalers without metrics, quotas and limits.

use serde_json::{Value, json};

use crate::controllers::make::{Making, pods, workloads};
use crate::controllers::story::Step;

fn allowed(making: &mut Making) -> Value {
    let share = making.share();
    if making.chance(0.5) {
        json!({"minAvailable": share, "maxUnavailable": null})
    } else {
        json!({"maxUnavailable": share, "minAvailable": null})
    }
}

pub(super) fn budget(making: &mut Making) {
    let mut spec = allowed(making);
    spec["selector"] = making.value(&[
        json!({"matchLabels": {"app": "a"}}),
        json!({"matchLabels": {"app": "a"}}),
        json!({}),
        json!({"matchLabels": {"app": "s"}}),
    ]);
    if making.chance(0.2) {
        spec["unhealthyPodEvictionPolicy"] = json!(making.word(&["AlwaysAllow", "IfHealthyBudget"]));
    }
    making.step(Step::create("PodDisruptionBudget", json!({"kind": "PodDisruptionBudget", "apiVersion": "policy/v1", "metadata": {"name": "pdb"}, "spec": spec})));
    if making.chance(0.5) {
        let begin = making.one(&[
            workloads::deployment as fn(&mut Making),
            workloads::replica_set,
            workloads::stateful_set,
            pods::pod,
        ]);
        if let Some(begin) = begin {
            begin(making);
        }
    }
}

pub(super) fn change_budget(making: &mut Making) {
    match making.number(0, 7) {
        0 | 1 => {
            let spec = allowed(making);
            making.set("PodDisruptionBudget", "allow", "pdb", spec);
        }
        2 => {
            let app = making.app();
            making.set(
                "PodDisruptionBudget",
                "selector",
                "pdb",
                json!({"selector": {"matchLabels": {"app": app}}}),
            );
        }
        3 | 4 => {
            let pick = making.picked("Pod", None);
            making.step(pods::evict("@pick@").picking(pick));
        }
        5 => making.common("PodDisruptionBudget", "pdb", budget),
        _ => pods::any(making),
    }
}

/// The controller looks every fifteen seconds.
const LOOKED: u64 = 18_000;

fn metrics(making: &mut Making) -> Value {
    let resource = making.word(&["cpu", "memory"]);
    let one = [
        json!({"type": "Resource", "resource": {"name": resource, "target": {"type": "Utilization", "averageUtilization": 50}}}),
        json!({"type": "Resource", "resource": {"name": resource, "target": {"type": "AverageValue", "averageValue": "10m"}}}),
        json!({"type": "ContainerResource", "containerResource": {"name": resource, "container": "c", "target": {"type": "Utilization", "averageUtilization": 50}}}),
        json!({"type": "Pods", "pods": {"metric": {"name": "hits"}, "target": {"type": "AverageValue", "averageValue": "10"}}}),
        json!({"type": "Object", "object": {"metric": {"name": "hits"}, "describedObject": {"kind": "Service", "apiVersion": "v1", "name": "svc"}, "target": {"type": "Value", "value": "10"}}}),
        json!({"type": "External", "external": {"metric": {"name": "queue"}, "target": {"type": "AverageValue", "averageValue": "10"}}}),
    ];
    let mut metrics = vec![making.value(&one)];
    if making.chance(0.2) {
        let other = making.value(&one);
        if other != metrics[0] {
            metrics.push(other);
        }
    }
    json!(metrics)
}

pub(super) fn autoscaler(making: &mut Making) {
    making.quiet = making.quiet.max(LOOKED);
    let low = making.number(1, 3);
    let mut spec = json!({
        "minReplicas": low, "maxReplicas": low + making.number(0, 2),
        "scaleTargetRef": {"kind": "Deployment", "apiVersion": "apps/v1", "name": making.word(&["web", "web", "web", "none"])},
    });
    if making.chance(0.5) {
        spec["metrics"] = metrics(making);
    }
    if making.chance(0.2) {
        let policy = making.value(&[
            json!({"scaleDown": {"selectPolicy": "Disabled"}}),
            json!({"scaleUp": {"policies": [{"type": "Pods", "value": 1, "periodSeconds": 60}]}}),
            json!({"scaleDown": {"stabilizationWindowSeconds": 0, "policies": [{"type": "Percent", "value": 50, "periodSeconds": 30}]}}),
        ]);
        spec["behavior"] = policy;
    }
    making.step(Step::create("HorizontalPodAutoscaler", json!({"kind": "HorizontalPodAutoscaler", "apiVersion": "autoscaling/v2", "metadata": {"name": "hpa"}, "spec": spec})));
    if !making.steps.iter().any(|step| step.what == "Deployment/create") {
        workloads::deployment(making);
    }
}

pub(super) fn change_autoscaler(making: &mut Making) {
    match making.number(0, 4) {
        4 => {
            let metrics = metrics(making);
            making.set("HorizontalPodAutoscaler", "metrics", "hpa", json!({"metrics": metrics}));
        }
        0 => {
            let low = making.number(1, 4);
            let high = low + making.number(0, 2);
            making.set(
                "HorizontalPodAutoscaler",
                "limits",
                "hpa",
                json!({"minReplicas": low, "maxReplicas": high}),
            );
        }
        1 => {
            let replicas = making.number(0, 6);
            making.set("Deployment", "scale", "web", json!({"replicas": replicas}));
        }
        2 => {
            let name = making.word(&["web", "none"]);
            making.set("HorizontalPodAutoscaler", "target", "hpa", json!({"scaleTargetRef": {"name": name}}));
        }
        _ => making.common("HorizontalPodAutoscaler", "hpa", autoscaler),
    }
}

fn hard(making: &mut Making) -> Value {
    let all = [
        ("pods", json!("2")),
        ("count/deployments.apps", json!("1")),
        ("count/replicasets.apps", json!("2")),
        ("count/jobs.batch", json!("1")),
        ("requests.cpu", json!("25m")),
        ("limits.cpu", json!("50m")),
        ("requests.memory", json!("64Mi")),
        ("services", json!("1")),
        ("services.nodeports", json!("1")),
        ("configmaps", json!("3")),
        ("secrets", json!("1")),
        ("persistentvolumeclaims", json!("1")),
        ("requests.storage", json!("3Gi")),
        ("count/pods", json!("4")),
        ("count/endpointslices.discovery.k8s.io", json!("3")),
        ("count/leases.coordination.k8s.io", json!("1")),
        ("count/controllerrevisions.apps", json!("2")),
        ("count/poddisruptionbudgets.policy", json!("0")),
        ("count/serviceaccounts", json!("1")),
        ("count/events", json!("100")),
        ("replicationcontrollers", json!("1")),
        ("resourcequotas", json!("1")),
        ("services.loadbalancers", json!("0")),
        ("cpu", json!("25m")),
        ("memory", json!("32Mi")),
        ("limits.memory", json!("64Mi")),
        ("requests.ephemeral-storage", json!("1Gi")),
        ("@run@.storageclass.storage.k8s.io/requests.storage", json!("2Gi")),
        ("@run@.storageclass.storage.k8s.io/persistentvolumeclaims", json!("1")),
    ];
    let mut hard = json!({});
    for _ in 0..making.number(1, 3) {
        if let Some((name, value)) = making.one(&all) {
            hard[name] = value;
        }
    }
    hard
}

pub(super) fn quota(making: &mut Making) {
    let mut spec = json!({"hard": hard(making)});
    if making.chance(0.15) {
        let operator = making.word(&["In", "NotIn", "Exists", "DoesNotExist"]);
        let values = match operator {
            "In" | "NotIn" => json!(["system-node-critical", "@run@-low"]),
            _ => Value::Null,
        };
        spec = json!({"hard": {"pods": making.number(0, 2).to_string()}, "scopeSelector": {"matchExpressions": [{"scopeName": "PriorityClass", "operator": operator, "values": values}]}});
    } else if making.chance(0.25) {
        spec = json!({"hard": {"pods": making.number(1, 3).to_string()}, "scopes": [making.word(&["BestEffort", "NotBestEffort", "Terminating", "NotTerminating"])]});
    }
    making.step(Step::create(
        "ResourceQuota",
        json!({"kind": "ResourceQuota", "apiVersion": "v1", "metadata": {"name": "quota"}, "spec": spec}),
    ));
    if making.chance(0.6) {
        let begin = making.one(&[
            workloads::replica_set as fn(&mut Making),
            workloads::deployment,
            pods::pod,
            super::services::service,
            super::storage::claim,
            super::jobs::job,
        ]);
        if let Some(begin) = begin {
            begin(making);
        }
    }
}

pub(super) fn change_quota(making: &mut Making) {
    match making.number(0, 6) {
        0 | 1 => {
            let hard = hard(making);
            making.set("ResourceQuota", "hard", "quota", json!({"hard": hard}));
        }
        2 => {
            let hard = hard(making);
            making.set(
                "ResourceQuota",
                "raise",
                "quota",
                json!({"hard": {"pods": "10", "configmaps": null, "secrets": hard["secrets"]}}),
            );
        }
        3 => making.common("ResourceQuota", "quota", quota),
        4 => {
            let name = making.word(&["c1", "c2", "c3"]);
            let kind = making.word(&["ConfigMap", "Secret"]);
            making.step(Step::create(
                kind,
                json!({"kind": kind, "apiVersion": "v1", "metadata": {"name": name}}),
            ));
        }
        5 => pods::pod(making),
        _ => pods::any(making),
    }
}

pub(super) fn limits(making: &mut Making) {
    let limit = making.value(&[
        json!({"type": "Container", "default": {"cpu": "50m"}, "defaultRequest": {"cpu": "5m"}}),
        json!({"type": "Container", "max": {"cpu": "15m"}}),
        json!({"type": "Pod", "max": {"memory": "16Mi"}}),
        json!({"type": "PersistentVolumeClaim", "max": {"storage": "2Gi"}}),
    ]);
    making.step(Step::create("LimitRange", json!({"kind": "LimitRange", "apiVersion": "v1", "metadata": {"name": "limits"}, "spec": {"limits": [limit]}})));
    workloads::replica_set(making);
}

pub(super) fn change_limits(making: &mut Making) {
    match making.number(0, 2) {
        0 => making.common("LimitRange", "limits", limits),
        1 => workloads::change_replica_set(making),
        _ => pods::pod(making),
    }
}
