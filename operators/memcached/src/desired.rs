//! The objects that a Memcached is meant to have.

use std::collections::BTreeMap;

use k8s_openapi::api::{apps::v1::Deployment, core::v1::Service, policy::v1::PodDisruptionBudget};
use kube::{ResourceExt, api::ObjectMeta};
use serde_json::{Value, json};

use crate::Memcached;

/// The port of memcached.
pub(crate) const PORT: u16 = 11211;
/// The user of memcached in its images.
const USER: i64 = 11211;
/// How much a pod may use besides its items, in mebibytes.
const OVERHEAD: i32 = 64;

/// By which its pods are known.
pub(crate) fn labels(name: &str) -> BTreeMap<String, String> {
    [("app", "memcached"), ("memcached_cr", name)]
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .into()
}

/// The same as autoscalers read it.
pub(crate) fn selector(name: &str) -> String {
    labels(name).iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(",")
}

/// Name and labels of each of its objects.
fn metadata(memcached: &Memcached) -> ObjectMeta {
    let name = memcached.name_any();
    ObjectMeta {
        labels: Some(labels(&name)),
        name: Some(name),
        namespace: memcached.namespace(),
        ..ObjectMeta::default()
    }
}

/// An object of these parts, which have its type.
fn object<K: kubewright::Object>(memcached: &Memcached, spec: &Value) -> serde_json::Result<K> {
    kubewright::object::from_value(json!({"metadata": metadata(memcached), "spec": spec}))
}

/// The Deployment.
pub(crate) fn deployment(memcached: &Memcached) -> serde_json::Result<Deployment> {
    let labels = labels(&memcached.name_any());
    let apart = json!({
        "weight": 100,
        "podAffinityTerm": {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": labels}},
    });
    let spec = json!({
        "replicas": memcached.spec.size,
        "selector": {"matchLabels": labels},
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
        "template": {
            "metadata": {"labels": labels},
            "spec": {
                "affinity": {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [apart]}},
                "automountServiceAccountToken": false,
                "securityContext": {
                    "runAsNonRoot": true, "runAsUser": USER, "seccompProfile": {"type": "RuntimeDefault"},
                },
                "containers": [container(memcached)],
            },
        },
    });
    object(memcached, &spec)
}

fn container(memcached: &Memcached) -> Value {
    let spec = &memcached.spec;
    // Words of their own: of `-c=1024` memcached reads `=1024`, and says that it has to be greater than 0.
    let (memory, connections) = (spec.memory_megabytes.to_string(), spec.max_connections.to_string());
    let command = ["memcached", "-m", &memory, "-c", &connections, "-o", "modern"];
    let mut command: Vec<String> = command.map(str::to_owned).to_vec();
    command.extend(spec.extra_args.iter().cloned());
    let memory = format!("{}Mi", spec.memory_megabytes + OVERHEAD);
    let answers = json!({"tcpSocket": {"port": PORT}, "periodSeconds": 5});
    json!({
        "name": "memcached",
        "image": spec.image,
        "command": command,
        "ports": [{"name": "memcached", "containerPort": PORT, "protocol": "TCP"}],
        "resources": {"requests": {"memory": memory}, "limits": {"memory": memory}},
        "readinessProbe": answers,
        "livenessProbe": {"tcpSocket": {"port": PORT}, "periodSeconds": 20},
        "securityContext": {
            "allowPrivilegeEscalation": false,
            "readOnlyRootFilesystem": true,
            "capabilities": {"drop": ["ALL"]},
        },
    })
}

/// The Service, by whose name clients reach it.
pub(crate) fn service(memcached: &Memcached) -> serde_json::Result<Service> {
    let ports = json!([{"name": "memcached", "port": PORT, "protocol": "TCP", "targetPort": PORT}]);
    object(memcached, &json!({"selector": labels(&memcached.name_any()), "ports": ports}))
}

/// The budget of disruptions; one pod alone has none, so that its node can be drained.
pub(crate) fn budget(memcached: &Memcached) -> serde_json::Result<Option<PodDisruptionBudget>> {
    if memcached.spec.size < 2 {
        return Ok(None);
    }
    let selector = json!({"matchLabels": labels(&memcached.name_any())});
    object(memcached, &json!({"maxUnavailable": 1, "selector": selector})).map(Some)
}
