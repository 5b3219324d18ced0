use std::collections::BTreeMap;

use serde_json::json;

use super::*;

struct Stored(BTreeMap<(&'static str, String), Value>);

impl Objects for Stored {
    fn get(&self, collection: &str, key: &str) -> Option<Bytes> {
        let found = self.0.iter().find(|((of, name), _)| *of == collection && name == key);
        found.map(|(_, object)| object.to_string().into())
    }

    fn all(&self, collection: &str, namespace: &str) -> Vec<Bytes> {
        let inside = |key: &str| namespace.is_empty() || key.starts_with(&format!("{namespace}/"));
        let found = self.0.iter().filter(|((of, key), _)| *of == collection && inside(key));
        found.map(|(_, object)| object.to_string().into()).collect()
    }
}

/// A pod on the node `n` that uses a bit of everything, and one on another node that uses `theirs`.
fn cluster() -> Stored {
    let pod = json!({"metadata": {"name": "p", "namespace": "ns"}, "spec": {
        "nodeName": "n", "serviceAccountName": "bot",
        "imagePullSecrets": [{"name": "pull"}],
        "containers": [{"env": [
                {"valueFrom": {"secretKeyRef": {"name": "env", "key": "k"}}},
                {"valueFrom": {"configMapKeyRef": {"name": "env", "key": "k"}}}],
            "envFrom": [{"secretRef": {"name": "all"}}, {"configMapRef": {"name": "all"}}]}],
        "initContainers": [{"envFrom": [{"secretRef": {"name": "init"}}]}],
        "volumes": [
            {"name": "a", "secret": {"secretName": "file"}},
            {"name": "b", "configMap": {"name": "file"}},
            {"name": "c", "projected": {"sources": [{"secret": {"name": "part"}}, {"configMap": {"name": "part"}}]}},
            {"name": "d", "persistentVolumeClaim": {"claimName": "claim"}},
            {"name": "e", "ephemeral": {}},
            {"name": "f", "csi": {"nodePublishSecretRef": {"name": "csi"}}}]}});
    let other = json!({"metadata": {"name": "o", "namespace": "ns"}, "spec": {"nodeName": "m",
        "serviceAccountName": "theirs", "imagePullSecrets": [{"name": "theirs"}]}});
    let mirror = json!({"metadata": {"name": "m", "namespace": "ns", "annotations": {MIRROR: "x"}},
        "spec": {"nodeName": "n", "imagePullSecrets": [{"name": "mirrored"}]}});
    let volume = json!({"metadata": {"name": "pv"}, "spec": {"claimRef": {"namespace": "ns", "name": "claim"},
        "csi": {"nodeStageSecretRef": {"name": "stage"}, "controllerPublishSecretRef": {"name": "controller"}}}});
    let attachment = json!({"metadata": {"name": "va"}, "spec": {"nodeName": "n"}});
    Stored(
        [
            (("/pods", "ns/p".to_owned()), pod),
            (("/pods", "ns/o".to_owned()), other),
            (("/pods", "ns/m".to_owned()), mirror),
            (("/persistentvolumes", "pv".to_owned()), volume),
            (("storage.k8s.io/volumeattachments", "va".to_owned()), attachment),
        ]
        .into(),
    )
}

fn ask(what: &Attributes<'_>) -> Decision {
    decide(&cluster(), &User::new("system:node:n", [NODES]), what)
}

fn get(resource: &'static str, name: &'static str) -> Attributes<'static> {
    Attributes { verb: "get", resource, name, namespace: "ns", ..Attributes::default() }
}

#[test]
fn a_node_reads_what_the_pods_on_it_use_and_nothing_else() {
    for name in ["pull", "env", "all", "init", "file", "part", "csi", "stage"] {
        assert!(ask(&get("secrets", name)).allowed(), "{name}");
    }
    for name in ["env", "all", "file", "part"] {
        assert!(ask(&get("configmaps", name)).allowed(), "{name}");
    }
    for what in [
        get("persistentvolumeclaims", "claim"),
        get("persistentvolumeclaims", "p-e"),
        get("persistentvolumes", "pv"),
        get("serviceaccounts", "bot"),
        get("pods", "p"),
        Attributes { group: "storage.k8s.io", namespace: "", ..get("volumeattachments", "va") },
        Attributes { verb: "create", subresource: "token", ..get("serviceaccounts", "bot") },
        Attributes { verb: "watch", ..get("secrets", "pull") },
        Attributes { verb: "patch", subresource: "status", ..get("persistentvolumeclaims", "claim") },
    ] {
        assert!(ask(&what).allowed(), "{what:?}");
    }
    for what in [
        get("secrets", "theirs"),
        get("secrets", "mirrored"),
        get("secrets", "controller"),
        get("configmaps", "none"),
        get("serviceaccounts", "theirs"),
        get("pods", "o"),
        get("persistentvolumes", "none"),
        Attributes { namespace: "other", ..get("secrets", "pull") },
    ] {
        assert_eq!(
            ask(&what),
            Decision::no_opinion("no relationship found between node 'n' and this object"),
            "{what:?}"
        );
    }
}

#[test]
fn what_a_node_may_not_do_at_all_says_why() {
    let verb = |verb, what: Attributes<'static>| Attributes { verb, ..what };
    for (what, why) in [
        (verb("create", get("secrets", "pull")), "can only read resources of this type"),
        (verb("list", get("persistentvolumes", "")), "can only get individual resources of this type"),
        (Attributes { namespace: "", ..get("secrets", "") }, "can only read namespaced object of this type"),
        (verb("list", get("secrets", "")), "No Object name found"),
        (verb("list", get("pods", "")), "can only list/watch pods with spec.nodeName field selector"),
        (get("nodes", "m"), "node 'n' cannot read 'm', only its own Node object"),
        (verb("list", get("nodes", "")), "node 'n' cannot read all nodes, only its own Node object"),
        (
            Attributes { group: "coordination.k8s.io", ..get("leases", "n") },
            "can only access leases in the \"kube-node-lease\" system namespace",
        ),
        (
            Attributes { group: "coordination.k8s.io", namespace: LEASES, ..get("leases", "m") },
            "can only access node lease with the same name as the requesting node",
        ),
        (
            verb("delete", get("serviceaccounts", "bot")),
            "can only create tokens for individual service accounts",
        ),
    ] {
        let why = match what.verb {
            "delete" => "can only create tokens for individual service accounts",
            _ => why,
        };
        assert_eq!(ask(&what), Decision::no_opinion(why), "{what:?}");
    }
}

#[test]
fn a_node_writes_what_belongs_to_nodes() {
    for what in [
        Attributes { verb: "create", ..get("nodes", "") },
        Attributes { verb: "patch", subresource: "status", ..get("nodes", "n") },
        get("nodes", "n"),
        Attributes { verb: "list", field_selector: "spec.nodeName=n", ..get("pods", "") },
        Attributes { verb: "create", subresource: "eviction", ..get("pods", "p") },
        Attributes { verb: "update", group: "coordination.k8s.io", namespace: LEASES, ..get("leases", "n") },
        Attributes { verb: "create", ..get("events", "") },
        Attributes { verb: "watch", ..get("services", "") },
    ] {
        assert!(ask(&what).allowed(), "{what:?}");
    }
    assert!(
        !ask(&Attributes { verb: "list", field_selector: "spec.nodeName!=n", ..get("pods", "") }).allowed()
    );
    assert!(!ask(&Attributes { verb: "delete", ..get("services", "s") }).allowed());
}

#[test]
fn who_is_no_node_is_not_decided_about() {
    let ask = |name: &str, groups: &[&str]| {
        decide(&cluster(), &User::new(name, groups.iter().copied()), &get("nodes", "n"))
    };
    assert_eq!(ask("alice", &[NODES]), Decision::no_opinion(""));
    assert_eq!(ask("system:node:n", &["other"]), Decision::no_opinion(""));
    assert_eq!(ask("system:node:", &[NODES]), Decision::no_opinion("unknown node for user \"system:node:\""));
}
