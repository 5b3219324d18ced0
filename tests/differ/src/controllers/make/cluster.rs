//! Owners and the garbage collector, namespaces, accounts, roles, requests for certificates, and nodes.

use serde_json::{Value, json};

use crate::controllers::make::{HOLD, Making, pods, workloads};
use crate::controllers::story::Step;

const JANE: &str = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlIYU1JR0FBZ0VBTUI0eERUQUxCZ05WQkFvTUJIUmxZVzB4RFRBTEJnTlZCQU1NQkdwaGJtVXdXVEFUQmdjcQpoa2pPUFFJQkJnZ3Foa2pPUFFNQkJ3TkNBQVJOMkJxL1VsMWR3bHJGbFVucWYwVTEwUWNmbnVEUDExWFhxbVdwCk1OSzlMMlphcHlUbDZHZXd3SUFBclNpeUxJOHY0SWphVVJheDk5QkpnOWUyQTl4bm9BQXdDZ1lJS29aSXpqMEUKQXdJRFNRQXdSZ0loQUthdHAwVGVLa0JXV3BmdzFFYUtzS1lkUUJ3am9tU3BOWXhncVBIK0dzNXRBaUVBNEdDWApNQUd6d21PV0RDZlp2MnplQlFiTTdEeStZTFFFWlhRRFU3ZGFQOTg9Ci0tLS0tRU5EIENFUlRJRklDQVRFIFJFUVVFU1QtLS0tLQo=";
const KUBELET: &str = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlIdk1JR1dBZ0VBTURReEZUQVRCZ05WQkFvTURITjVjM1JsYlRwdWIyUmxjekViTUJrR0ExVUVBd3dTYzNsegpkR1Z0T201dlpHVTZaMjlzWkdWdU1Ga3dFd1lIS29aSXpqMENBUVlJS29aSXpqMERBUWNEUWdBRXl4NWoyNWVkCkd1ZWttZXNXTVZWc2Ivc2dwM1h3RDV0Nk1WcVprZmU0N2hGaGhJS1JoT0tEbUhTMTd4WXl6QWxrKzFhbkQrdTYKWTBMVGdzK0dMbFZiaDZBQU1Bb0dDQ3FHU000OUJBTUNBMGdBTUVVQ0lDRC9NTlNMMEpOckN6U1Nxa3pMN1dENgphNnpRUmpvZ3JvNmNmT1dXVkxVTEFpRUF0aEl6bzZHQ0N4UVdwYVN2OGdnRndZQjJZa1NzTFBRVnk0SDZDWSs5CktTTT0KLS0tLS1FTkQgQ0VSVElGSUNBVEUgUkVRVUVTVC0tLS0tCg==";

fn thing(making: &mut Making, name: &str, owners: &[(&str, &str)]) {
    let mut references = Vec::new();
    for (kind, owner) in owners {
        let mut reference = json!({"apiVersion": if *kind == "Deployment" { "apps/v1" } else { "v1" }, "kind": kind, "name": owner, "uid": format!("@uid:{kind}/{owner}@")});
        if making.chance(0.5) {
            reference["blockOwnerDeletion"] = json!(making.chance(0.7));
        }
        if references.is_empty() && making.chance(0.3) {
            reference["controller"] = json!(true);
        }
        references.push(reference);
    }
    let finalizers = if making.chance(0.15) { json!([HOLD]) } else { Value::Null };
    making.step(Step::create(
        "ConfigMap",
        json!({"kind": "ConfigMap", "apiVersion": "v1",
        "metadata": {"name": name, "ownerReferences": references, "finalizers": finalizers}}),
    ));
}

/// A tree of owners.
pub(super) fn owners(making: &mut Making) {
    thing(making, "root", &[]);
    thing(making, "child", &[("ConfigMap", "root")]);
    match making.number(0, 6) {
        0 => thing(making, "leaf", &[("ConfigMap", "child")]),
        4 => {
            // An owner of the whole cluster.
            making.step(Step::object("ClusterRole", "@run@-owner", json!({"rules": []})));
            let reference = json!([{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "name": "@run@-owner", "uid": "@uid:ClusterRole/@run@-owner@"}]);
            making.step(Step::object(
                "ConfigMap",
                "leaf",
                json!({"metadata": {"ownerReferences": reference}}),
            ));
        }
        5 => {
            // One of the cluster that an object of a namespace is said to own, and one whose owner has another kind or name.
            let reference = json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "root", "uid": "@uid:ConfigMap/root@"}]);
            making.step(Step::object(
                "ClusterRole",
                "@run@-owner",
                json!({"metadata": {"ownerReferences": reference}, "rules": []}),
            ));
            let (kind, name) = (making.word(&["ConfigMap", "Secret"]), making.word(&["other", "root"]));
            let reference =
                json!([{"apiVersion": "v1", "kind": kind, "name": name, "uid": "@uid:ConfigMap/root@"}]);
            making.step(Step::object(
                "ConfigMap",
                "leaf",
                json!({"metadata": {"ownerReferences": reference}}),
            ));
        }

        1 => thing(making, "leaf", &[("ConfigMap", "child"), ("ConfigMap", "root")]),
        2 => {
            thing(making, "second", &[]);
            thing(making, "leaf", &[("ConfigMap", "child"), ("ConfigMap", "second")]);
        }
        _ => thing(making, "leaf", &[("ConfigMap", "gone")]),
    }
}

pub(super) fn change_owners(making: &mut Making) {
    let name = making.word(&["root", "root", "child", "leaf", "second"]);
    match making.number(0, 11) {
        10 => {
            // A circle.
            for (name, owner) in [("root", "leaf"), ("leaf", "root")] {
                let blocks = making.chance(0.7);
                let reference = json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": owner, "uid": format!("@uid:ConfigMap/{owner}@"), "blockOwnerDeletion": blocks}]);
                making.step(Step::patch(
                    "ConfigMap",
                    "own",
                    name,
                    json!({"metadata": {"ownerReferences": reference}}),
                ));
            }
        }
        11 => making.delete("ClusterRole", "@run@-owner"),
        0..=3 => making.delete("ConfigMap", name),
        4 => making.step(Step::patch("ConfigMap", "hold", name, json!({"metadata": {"finalizers": [HOLD]}}))),
        5 => {
            making.step(Step::patch("ConfigMap", "release", name, json!({"metadata": {"finalizers": null}})));
        }
        6 => making.step(Step::patch(
            "ConfigMap",
            "disown",
            name,
            json!({"metadata": {"ownerReferences": null}}),
        )),
        7 => {
            let owner = making.word(&["root", "second", "child"]);
            let reference = json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": owner, "uid": format!("@uid:ConfigMap/{owner}@"), "blockOwnerDeletion": true}]);
            making.step(Step::patch(
                "ConfigMap",
                "own",
                name,
                json!({"metadata": {"ownerReferences": reference}}),
            ));
        }
        8 => thing(making, name, &[]),
        _ => {
            // A workload that an object owns.
            let spec = json!({"replicas": making.number(0, 2), "selector": {"matchLabels": {"app": "o"}}, "template": making.template("o")});
            let reference = json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "root", "uid": "@uid:ConfigMap/root@", "blockOwnerDeletion": true}]);
            making.step(Step::create("Deployment", json!({"kind": "Deployment", "apiVersion": "apps/v1", "metadata": {"name": "owned", "ownerReferences": reference}, "spec": spec})));
        }
    }
}

/// A namespace with something in it that is deleted as a whole.
pub(super) fn namespace(making: &mut Making) {
    for _ in 0..making.number(1, 2) {
        match making.number(0, 4) {
            0 => workloads::deployment(making),
            1 => pods::pod(making),
            2 => thing(making, "root", &[]),
            3 => super::services::service(making),
            _ => workloads::stateful_set(making),
        }
    }
    making.quiet = making.quiet.max(6000);
}

pub(super) fn change_namespace(making: &mut Making) {
    match making.number(0, 4) {
        0 => thing(making, "child", &[("ConfigMap", "root")]),
        1 => making.step(
            Step::patch("ConfigMap", "release", "root", json!({"metadata": {"finalizers": null}}))
                .quiet(18_000),
        ),
        2 => {
            let labels = making.value(&[json!({"team": "x"}), json!({"kubernetes.io/metadata.name": null})]);
            making.step(Step::patch("Namespace", "label", "@run@", json!({"metadata": {"labels": labels}})));
        }
        3 => making.step(Step::delete("ConfigMap", "kube-root-ca.crt", None)),
        _ => making.step(Step::delete("Namespace", "@run@", None)),
    }
}

pub(super) fn account(making: &mut Making) {
    making.step(Step::create(
        "ServiceAccount",
        json!({"kind": "ServiceAccount", "apiVersion": "v1", "metadata": {"name": "robot"}}),
    ));
    if making.chance(0.7) {
        secret(making);
    }
}

fn secret(making: &mut Making) {
    let whose = making.word(&["robot", "robot", "default", "none"]);
    let name = making.word(&["key", "other"]);
    making.step(Step::create(
        "Secret",
        json!({"kind": "Secret", "apiVersion": "v1", "type": "kubernetes.io/service-account-token",
        "metadata": {"name": name, "annotations": {"kubernetes.io/service-account.name": whose}}}),
    ));
}

pub(super) fn change_account(making: &mut Making) {
    match making.number(0, 7) {
        0 => making.step(Step::delete("ServiceAccount", "default", None)),
        1 => secret(making),
        2 => {
            let data = making.value(&[
                json!({"token": null}),
                json!({"ca.crt": null}),
                json!({"namespace": "eA=="}),
                json!({"extra": "eA=="}),
            ]);
            making.step(Step::patch("Secret", "spoil", "key", json!({"data": data})));
        }
        3 => {
            let whose = making.word(&["default", "none"]);
            making.step(Step::patch(
                "Secret",
                "rename",
                "key",
                json!({"metadata": {"annotations": {"kubernetes.io/service-account.name": whose}}}),
            ));
        }
        4 => {
            let patch = making.value(&[
                json!({"data": null}),
                json!({"data": {"ca.crt": "x"}}),
                json!({"data": {"extra": "x"}}),
                json!({"metadata": {"annotations": null}}),
            ]);
            making.step(Step::patch("ConfigMap", "spoil", "kube-root-ca.crt", patch));
        }
        5 => making.step(Step::delete("ConfigMap", "kube-root-ca.crt", None)),
        6 => pods::pod(making),
        _ => making.common("ServiceAccount", "robot", account),
    }
}

fn rules(making: &mut Making) -> Value {
    let resource = making.word(&["pods", "configmaps", "secrets"]);
    let verb = making.word(&["get", "list"]);
    json!([{"apiGroups": [""], "resources": [resource], "verbs": [verb]}])
}

pub(super) fn role(making: &mut Making) {
    let selectors = making.value(&[
        json!([{"matchLabels": {"differ": "@run@"}}]),
        json!([{"matchLabels": {"differ": "@run@", "side": "left"}}, {"matchLabels": {"differ": "@run@", "side": "right"}}]),
    ]);
    let own = if making.chance(0.3) { rules(making) } else { Value::Null };
    making.step(Step::create("ClusterRole", json!({"kind": "ClusterRole", "apiVersion": "rbac.authorization.k8s.io/v1",
        "metadata": {"name": "@run@-all"}, "aggregationRule": {"clusterRoleSelectors": selectors}, "rules": own})));
    part(making);
}

fn part(making: &mut Making) {
    let name = making.word(&["@run@-one", "@run@-two", "@run@-three"]);
    let side = making.word(&["left", "right"]);
    let rules = rules(making);
    making.step(Step::create(
        "ClusterRole",
        json!({"kind": "ClusterRole", "apiVersion": "rbac.authorization.k8s.io/v1",
        "metadata": {"name": name, "labels": {"differ": "@run@", "side": side}}, "rules": rules}),
    ));
}

pub(super) fn change_role(making: &mut Making) {
    let name = making.word(&["@run@-one", "@run@-two", "@run@-three"]);
    match making.number(0, 5) {
        0 | 1 => part(making),
        2 => {
            let rules = rules(making);
            making.step(Step::patch("ClusterRole", "rules", name, json!({"rules": rules})));
        }
        3 => {
            let labels =
                making.value(&[json!({"differ": null}), json!({"differ": "@run@"}), json!({"side": "left"})]);
            making.step(Step::patch("ClusterRole", "label", name, json!({"metadata": {"labels": labels}})));
        }
        4 => making.step(Step::delete("ClusterRole", name, None)),
        _ => {
            let patch = making.value(&[json!({"rules": []}), json!({"aggregationRule": null}), json!({"aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"side": "left", "differ": "@run@"}}]}})]);
            making.step(Step::patch("ClusterRole", "aggregate", "@run@-all", patch));
        }
    }
}

pub(super) fn request(making: &mut Making) {
    let signer = making.word(&[
        "kubernetes.io/kube-apiserver-client",
        "kubernetes.io/kube-apiserver-client-kubelet",
        "example.com/own",
        "kubernetes.io/kubelet-serving",
        "kubernetes.io/legacy-unknown",
    ]);
    let usages = making.value(&[
        json!(["client auth"]),
        json!(["digital signature", "client auth"]),
        json!(["digital signature", "key encipherment", "client auth"]),
        json!(["digital signature", "key encipherment", "server auth"]),
        json!(["digital signature"]),
    ]);
    let request = making.word(&[JANE, KUBELET]);
    let mut spec = json!({"signerName": signer, "usages": usages, "request": request});
    if making.chance(0.3) {
        spec["expirationSeconds"] = json!(making.number(600, 700_000));
    }
    let name = making.word(&["@run@-one", "@run@-two"]);
    making.step(Step::create("CertificateSigningRequest", json!({"kind": "CertificateSigningRequest", "apiVersion": "certificates.k8s.io/v1", "metadata": {"name": name}, "spec": spec})));
}

pub(super) fn change_request(making: &mut Making) {
    let name = making.word(&["@run@-one", "@run@-two"]);
    match making.number(0, 4) {
        0..=2 => {
            let kind = making.word(&["Approved", "Approved", "Denied", "Failed"]);
            let body = json!({"status": {"conditions": [{"type": kind, "status": "True", "reason": "Story", "message": "as told"}]}});
            let sub = if kind == "Failed" { "status" } else { "approval" };
            making.step(Step::patch("CertificateSigningRequest", kind, name, body).sub(sub));
        }
        3 => request(making),
        _ => making.step(Step::delete("CertificateSigningRequest", name, None)),
    }
}

/// The node that a story with nodes has from the beginning.
pub(super) fn first_node(making: &mut Making) {
    add(making, "@run@-a", "z1");
}

fn add(making: &mut Making, name: &str, zone: &str) {
    let size = making.number(1, 3).to_string();
    making.step(Step::create("Node", json!({"kind": "Node", "apiVersion": "v1",
        "metadata": {"name": name, "labels": {"differ": "@run@", "zone": zone, "topology.kubernetes.io/zone": format!("@run@-{zone}"), "size": size, "kubernetes.io/hostname": name}},
        "spec": {"taints": [{"key": "differ", "value": "@run@", "effect": "NoSchedule"}]},
        "status": {"capacity": {"cpu": "4", "memory": "8Gi", "pods": "20"}, "allocatable": {"cpu": "4", "memory": "8Gi", "pods": "20"}}})).quiet(4000));
}

pub(super) fn node(making: &mut Making) {
    pods::pod(making);
    if making.chance(0.5) {
        add(making, "@run@-b", "z2");
    }
}

/// Replicas that are spread over the story's nodes, or kept apart or together on them.
fn spread(making: &mut Making) {
    let selector = json!({"matchLabels": {"app": "n"}});
    let term =
        json!([{"labelSelector": selector, "topologyKey": making.word(&["zone", "kubernetes.io/hostname"])}]);
    let mut template = json!({"metadata": {"labels": {"app": "n"}}, "spec": {"containers": [{"name": "c", "image": "registry.local/web:1"}],
        "nodeSelector": {"differ": "@run@"}, "tolerations": [{"key": "differ", "operator": "Exists", "effect": "NoSchedule"}]}});
    match making.number(0, 3) {
        0 => {
            template["spec"]["affinity"] =
                json!({"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": term}});
        }
        1 => {
            template["spec"]["affinity"] =
                json!({"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": term}});
        }
        2 => {
            template["spec"]["topologySpreadConstraints"] = json!([{"maxSkew": 1, "topologyKey": "zone", "minDomains": 2,
                "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector}]);
        }
        _ => {
            template["spec"]["topologySpreadConstraints"] = json!([{"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "nodeTaintsPolicy": "Honor",
                "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector}]);
        }
    }
    // As many as both nodes have alike.
    let replicas = making.word(&["2", "4"]).parse::<u32>().unwrap_or(2);
    making.step(Step::object(
        "ReplicaSet",
        "spread",
        json!({"spec": {"replicas": replicas, "selector": selector, "template": template}}),
    ));
}

pub(super) fn change_node(making: &mut Making) {
    let name = making.word(&["@run@-a", "@run@-a", "@run@-b"]);
    let own = json!({"key": "differ", "value": "@run@", "effect": "NoSchedule"});
    match making.number(0, 10) {
        9 => spread(making),
        10 => {
            making.step(Step::delete("Node", "@run@-b", None));
            if making.chance(0.5) {
                add(making, "@run@-b", "z2");
            }
        }
        0 | 1 => {
            let taints = making.value(&[
                json!([own, {"key": "evict", "effect": "NoExecute"}]),
                json!([own, {"key": "evict", "value": "now", "effect": "NoExecute"}]),
                json!([own]),
                json!([own, {"key": "more", "effect": "NoSchedule"}]),
                json!([own, {"key": "soft", "effect": "PreferNoSchedule"}]),
            ]);
            making.step(Step::patch("Node", "taint", name, json!({"spec": {"taints": taints}})).quiet(5500));
        }
        2 => {
            let cordoned = making.chance(0.6);
            making.step(Step::patch("Node", "cordon", name, json!({"spec": {"unschedulable": cordoned}})));
        }
        3 => {
            let labels = making.value(&[
                json!({"zone": "z2"}),
                json!({"differ": null}),
                json!({"size": "5"}),
                json!({"differ": "@run@"}),
            ]);
            making.step(Step::patch("Node", "label", name, json!({"metadata": {"labels": labels}})));
        }
        4 => add(making, "@run@-b", "z2"),
        _ => pods::change_pod(making),
    }
}
