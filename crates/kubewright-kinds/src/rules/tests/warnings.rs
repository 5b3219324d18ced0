//! What good objects are warned of: the words of kube-apiserver v1.36.3.

use serde_json::json;

use super::{made, rules};

fn warned(kind: super::Kind, object: &serde_json::Value) -> Vec<String> {
    rules(kind).warnings(&made(kind, object), None)
}

#[test]
fn pods_are_warned_of_what_is_gone_and_of_what_is_hardly_meant() {
    let pod = json!({"metadata": {"name": "a.b"}, "spec": {
        "containers": [{"name": "c", "image": "nginx", "env": [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}],
            "ports": [{"containerPort": 80}, {"containerPort": 80}]}],
        "imagePullSecrets": [{}],
        "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "x", "whenUnsatisfiable": "ScheduleAnyway"}],
        "volumes": [{"name": "v", "glusterfs": {"endpoints": "a", "path": "b"}}]}});
    assert_eq!(
        warned(("", "v1", "pods"), &pod),
        [
            "metadata.name: this is used in the Pod's hostname, which can result in surprising behavior; a DNS label is recommended: [must not contain dots]",
            "spec.topologySpreadConstraints[0].labelSelector: a null labelSelector results in matching no pod",
            "spec.volumes[0].glusterfs: deprecated in v1.25, non-functional in v1.26+",
            "spec.imagePullSecrets[0].name: invalid empty name \"\"",
            "spec.containers[0].env[1]: hides previous definition of \"A\", which may be dropped when using apply",
            "spec.containers[0].ports[1]: duplicate port definition with spec.containers[0].ports[0]",
        ]
    );
}

#[test]
fn services_are_warned_of_fields_that_are_ignored_or_on_their_way_out() {
    let service = json!({"spec": {"type": "ClusterIP", "externalName": "x", "trafficDistribution": "PreferClose",
        "externalIPs": ["1.2.3.4"], "ports": [{"port": 80}]}});
    assert_eq!(
        warned(("", "v1", "services"), &service),
        [
            "spec.externalIPs is deprecated and may no longer be implemented in some clusters",
            "spec.externalName is ignored when spec.type is not \"ExternalName\"",
            "spec.trafficDistribution: \"PreferClose\" is deprecated; use \"PreferSameZone\"",
        ]
    );
}

#[test]
fn a_template_is_looked_at_again_only_when_the_generation_is_raised() {
    let kind = ("apps", "v1", "deployments");
    let deployment = json!({"spec": {"selector": {"matchLabels": {"a": "b"}}, "template": {
        "metadata": {"labels": {"a": "b"}},
        "spec": {"terminationGracePeriodSeconds": -1, "containers": [{"name": "c", "image": "nginx"}]}}}});
    let old = made(kind, &deployment);
    let mut labelled = old.clone();
    labelled["metadata"]["labels"] = json!({"x": "y"});
    assert!(rules(kind).warnings(&labelled, Some(&old)).is_empty());
    let mut scaled = old.clone();
    scaled["spec"]["replicas"] = json!(3);
    assert_eq!(
        rules(kind).warnings(&scaled, Some(&old)),
        [
            "spec.template.spec.terminationGracePeriodSeconds: must be >= 0; negative values are invalid and will be treated as 1"
        ]
    );
}

/// Its strategy calls `GetWarningsForPodTemplate` with both templates the other way round.
#[test]
fn a_replication_controller_is_warned_of_the_template_that_it_had() {
    let kind = ("", "v1", "replicationcontrollers");
    let of = |seconds: i64| {
        made(
            kind,
            &json!({"spec": {"selector": {"a": "b"}, "template": {"metadata": {"labels": {"a": "b"}},
            "spec": {"terminationGracePeriodSeconds": seconds, "containers": [{"name": "c", "image": "nginx"}]}}}}),
        )
    };
    let (good, bad) = (of(1), of(-1));
    assert_eq!(rules(kind).warnings(&bad, None).len(), 1);
    assert!(rules(kind).warnings(&bad, Some(&good)).is_empty());
    assert_eq!(rules(kind).warnings(&good, Some(&bad)).len(), 1);
    assert!(rules(kind).warnings(&bad, Some(&bad)).is_empty());
}

#[test]
fn an_address_is_warned_of_when_it_is_not_written_as_it_should_be() {
    let policy = json!({"spec": {"podSelector": {}, "ingress": [{"from": [
        {"ipBlock": {"cidr": "10.1.2.3/8"}}, {"ipBlock": {"cidr": "FD00::/8"}}]}]}});
    let at = |peer: usize| format!("spec.ingress[0].from[{peer}].ipBlock.cidr");
    assert_eq!(
        warned(("networking.k8s.io", "v1", "networkpolicies"), &policy),
        [
            format!(
                "{}: CIDR value \"10.1.2.3/8\" is ambiguous in this context (should be \"10.0.0.0/8\" or \"10.1.2.3/32\"?)",
                at(0)
            ),
            format!(
                "{}: IPv6 CIDR value \"FD00::/8\" should be in RFC 5952 canonical format (\"fd00::/8\")",
                at(1)
            ),
        ]
    );
}
