//! The rules of built-in kinds: what looks for one thing in a list of others does it by name.

use kubewright_kinds::Kinds;
use serde_json::{Value, json};

use super::{grows_with_the_size_alone, steps};

fn many(size: usize, item: impl Fn(usize) -> Value) -> Value {
    (0..size).map(item).collect()
}

fn pod(size: usize) -> Value {
    let name = |what: &str, at: usize| format!("{what}-{at}");
    let container = |at: usize| {
        json!({
            "name": name("c", at), "image": "i",
            "env": [{"name": "A", "valueFrom": {"fileKeyRef": {"volumeName": name("v", at), "path": "p", "key": "k"}}}],
            "ports": [{"containerPort": 80, "name": "p"}],
            "resources": {"claims": [{"name": name("r", at)}]},
            "volumeMounts": [{"name": name("v", at), "mountPath": "/a"}],
        })
    };
    let mut pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": "default"},
        "spec": {
            "containers": many(size, container),
            "ephemeralContainers": many(size, |at| json!({"name": name("e", at), "image": "i"})),
            "volumes": many(size, |at| json!({"name": name("v", at), "emptyDir": {}})),
            "resourceClaims": many(size, |at| json!({"name": name("r", at), "resourceClaimName": "x"})),
            "tolerations": many(size, |at| json!({"key": name("t", at), "operator": "Exists"})),
            "schedulingGates": many(size, |at| json!({"name": name("g", at)})),
            "topologySpreadConstraints": many(size, |at| {
                json!({"maxSkew": 1, "topologyKey": name("k", at), "whenUnsatisfiable": "DoNotSchedule"})
            }),
        },
    });
    pod["spec"]["containers"][0]["volumeMounts"] =
        many(size, |at| json!({"name": name("v", at), "mountPath": format!("/{at}")}));
    pod["spec"]["containers"][0]["volumeDevices"] =
        many(size, |at| json!({"name": name("d", at), "devicePath": format!("/dev/{at}")}));
    pod
}

fn service(size: usize) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "a", "namespace": "default"},
        "spec": {
            "type": "NodePort", "clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1"],
            "ports": many(size, |at| json!({"name": format!("p{at}"), "port": at + 1, "nodePort": at + 30000})),
        },
        "status": {"loadBalancer": {"ingress": many(size, |at| json!({"ip": format!("10.0.1.{at}")}))}},
    })
}

fn stateful_set(size: usize) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "a", "namespace": "default"},
        "spec": {
            "selector": {"matchLabels": {"a": "b"}}, "serviceName": "a",
            "template": {"metadata": {"labels": {"a": "b"}}, "spec": pod(size)["spec"]},
            "volumeClaimTemplates": many(size, |at| {
                json!({"metadata": {"name": format!("v-{at}")}, "spec": {"accessModes": ["ReadWriteOnce"],
                    "resources": {"requests": {"storage": "1Gi"}}}})
            }),
        },
    })
}

#[test]
fn the_cost_of_rules_grows_with_the_size_alone() {
    type Make = fn(usize) -> Value;
    for (group, plural, object) in
        [("", "pods", pod as Make), ("", "services", service), ("apps", "statefulsets", stateful_set)]
    {
        let kind = Kinds::built_in().get(group, "v1", plural).expect("a built-in kind").clone();
        grows_with_the_size_alone(plural, 32, |size| {
            let mut old = object(size);
            kind.rules.default(&mut old);
            let mut new = old.clone();
            if let Some(list) = new["spec"]["tolerations"].as_array_mut() {
                list.reverse();
            }
            steps(|| {
                kind.schema().decode(&mut new.clone()).expect("it is of its kind");
                kind.rules.prepare_update(&mut new, &old);
                drop(kind.rules.errors_on_create(&old, true));
                drop(kind.rules.errors_on_update(&new, &old, true));
                drop((kind.rules.validate_status)(&new, &old));
                drop(kubewright_kinds::rules::pods::validate_ephemeral_containers(&new, &old));
            })
        });
    }
}
