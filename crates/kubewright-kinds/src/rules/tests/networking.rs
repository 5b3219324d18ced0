use serde_json::{Value, json};

use super::samples::{SERVICE, of};
use super::{change_refused, each_is_refused, made, refused, rules, with};

#[test]
fn a_service_gets_its_defaults() {
    let service = made(SERVICE, &of(SERVICE));
    assert_eq!(
        service["spec"],
        json!({
            "type": "ClusterIP", "sessionAffinity": "None", "internalTrafficPolicy": "Cluster",
            "selector": {"app": "a"},
            "ports": [{"port": 80, "targetPort": 80, "protocol": "TCP"}]
        })
    );
    assert_eq!(service["status"], json!({"loadBalancer": {}}));
    let free = made(SERVICE, &json!({"spec": {"clusterIP": "None"}}));
    assert_eq!(free["spec"]["clusterIPs"], json!(["None"]));
}

#[test]
fn a_service_that_its_status_creates_lists_its_own_addresses() {
    let mut service = with(&of(SERVICE), "/spec/clusterIP", json!("None"));
    (rules(SERVICE).default)(&mut service);
    (rules(SERVICE).prepare_create)(&mut service);
    let said = super::messages(&(rules(SERVICE).validate)(&service));
    assert_eq!(said, ["spec.clusterIPs: Required value"]);
}

#[test]
fn services_are_checked() {
    each_is_refused(
        SERVICE,
        &of(SERVICE),
        &[
            ("/spec/ports", json!([]), &["spec.ports: Required value"]),
            (
                "/spec/ports",
                json!([{"port": 80}, {"port": 81}]),
                &["spec.ports[0].name: Required value", "spec.ports[1].name: Required value"],
            ),
            (
                "/spec/ports",
                json!([{"name": "x", "port": 80}, {"name": "y", "port": 80, "targetPort": 81}]),
                &[
                    "spec.ports[1]: Duplicate value: {\"Name\":\"\",\"Protocol\":\"TCP\",\"AppProtocol\":null,\"Port\":80,\"TargetPort\":0,\"NodePort\":0}",
                ],
            ),
            (
                "/spec/type",
                json!("Magic"),
                &[
                    "spec.type: Unsupported value: \"Magic\": supported values: \"ClusterIP\", \"ExternalName\", \"LoadBalancer\", \"NodePort\"",
                ],
            ),
            ("/spec/type", json!("ExternalName"), &["spec.externalName: Required value"]),
            (
                "/spec",
                json!({"type": "ExternalName", "externalName": "example.com", "ipFamilyPolicy": ""}),
                &["spec.ipFamilyPolicy: Forbidden: may not be set for ExternalName services"],
            ),
            (
                "/spec/clusterIP",
                json!("banana"),
                &[
                    "spec.clusterIPs[0]: Invalid value: \"banana\": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)",
                ],
            ),
            (
                "/spec/externalIPs",
                json!(["127.0.0.1"]),
                &[
                    "spec.externalIPs[0]: Invalid value: \"127.0.0.1\": may not be in the loopback range (127.0.0.0/8, ::1/128)",
                ],
            ),
            (
                "/spec/loadBalancerClass",
                json!("a"),
                &["spec.loadBalancerClass: Forbidden: may only be used when `type` is 'LoadBalancer'"],
            ),
            ("/spec/sessionAffinityConfig", json!({"clientIP": {}}), &[]),
            (
                "/spec/healthCheckNodePort",
                json!(30000),
                &[
                    "spec.healthCheckNodePort: Invalid value: 30000: may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'",
                ],
            ),
        ],
    );
}

fn with_addresses() -> Value {
    let mut service = of(SERVICE);
    service["spec"]["type"] = json!("NodePort");
    service["spec"]["clusterIP"] = json!("10.0.0.9");
    service["spec"]["ports"][0]["nodePort"] = json!(30001);
    service
}

#[test]
fn a_service_keeps_its_addresses_and_ports() {
    let old = made(SERVICE, &with_addresses());
    let mut new = json!({"metadata": old["metadata"], "spec": {"type": "NodePort", "ports": [{"port": 81}]}});
    (rules(SERVICE).default)(&mut new);
    (rules(SERVICE).prepare_update)(&mut new, &old);
    assert_eq!(
        (&new["spec"]["clusterIP"], &new["spec"]["clusterIPs"]),
        (&json!("10.0.0.9"), &json!(["10.0.0.9"]))
    );
    assert_eq!(new["spec"]["ports"][0]["nodePort"], 30001);
    let said = change_refused(SERVICE, &with_addresses(), |service| {
        service["spec"]["clusterIP"] = json!("10.0.0.8");
        service["spec"]["clusterIPs"] = json!(["10.0.0.8"]);
    });
    assert_eq!(said, ["spec.clusterIPs[0]: Invalid value: [\"10.0.0.8\"]: may not change once set"]);
}

#[test]
fn a_balanced_service_that_is_to_have_no_more_ports_of_nodes_keeps_those_that_it_has() {
    let balanced = with(&with_addresses(), "/spec/type", json!("LoadBalancer"));
    let old = made(SERVICE, &balanced);
    let mut new = with(&old, "/spec/allocateLoadBalancerNodePorts", json!(false));
    (rules(SERVICE).prepare_update)(&mut new, &old);
    assert_eq!(new["spec"]["ports"], old["spec"]["ports"]);
}

#[test]
fn a_policy_of_families_that_is_empty_is_not_taken_from_before() {
    let said = change_refused(SERVICE, &with_addresses(), |service| {
        service["spec"]["ipFamilyPolicy"] = json!("");
    });
    let policies = "\"PreferDualStack\", \"RequireDualStack\", \"SingleStack\"";
    assert_eq!(said, [format!("spec.ipFamilyPolicy: Unsupported value: \"\": supported values: {policies}")]);
}

#[test]
fn the_controller_of_a_class_is_compared_before_it_is_looked_at() {
    let class = ("networking.k8s.io", "v1", "ingressclasses");
    let good = json!({"metadata": {"name": "a"}, "spec": {"controller": "example.com/a"}});
    let said = change_refused(class, &good, |class| class["spec"]["controller"] = json!("x"));
    assert_eq!(
        said,
        [
            "spec.controller: Invalid value: \"x\": field is immutable",
            "spec.controller: Invalid value: \"x\": must be a domain-prefixed path (such as \"acme.io/foo\")"
        ]
    );
}

#[test]
fn a_topology_that_is_dropped_of_a_slice_is_a_change() {
    let slices = ("discovery.k8s.io", "v1", "endpointslices");
    let slice =
        json!({"metadata": {"name": "a"}, "addressType": "IPv4", "endpoints": [{"addresses": ["10.1.0.1"]}]});
    let old = with(&made(slices, &slice), "/metadata/generation", json!(3));
    let mut new = with(&old, "/endpoints/0/deprecatedTopology", json!({"a": "b"}));
    (rules(slices).prepare_update)(&mut new, &old);
    assert_eq!(new["endpoints"], old["endpoints"]);
    assert_eq!((&old["metadata"]["generation"], &new["metadata"]["generation"]), (&json!(3), &json!(4)));
}

#[test]
fn a_service_loses_what_its_new_type_has_not() {
    let old = made(SERVICE, &with_addresses());
    let mut inner = with(&old, "/spec/type", json!("ClusterIP"));
    (rules(SERVICE).prepare_update)(&mut inner, &old);
    assert!(inner["spec"]["ports"][0].get("nodePort").is_none());
    assert!(inner["spec"].get("externalTrafficPolicy").is_none());
    let mut outer = with(&old, "/spec/type", json!("ExternalName"));
    outer["spec"]["externalName"] = json!("example.com");
    (rules(SERVICE).prepare_update)(&mut outer, &old);
    for field in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
        assert!(outer["spec"].get(field).is_none(), "{field}");
    }
    assert!(super::messages(&rules(SERVICE).errors_on_update(&outer, &old, true)).is_empty());
}

#[test]
fn ingresses_are_checked() {
    let ingress = ("networking.k8s.io", "v1", "ingresses");
    let path = "/spec/rules/0/http/paths/0";
    let shown = "spec.rules[0].http.paths[0]";
    each_is_refused(
        ingress,
        &of(ingress),
        &[
            (
                "/spec/rules",
                json!([]),
                &["spec: Invalid value: []: either `defaultBackend` or `rules` must be specified"],
            ),
            (
                "/spec/rules/0/host",
                json!("10.0.0.1"),
                &["spec.rules[0].host: Invalid value: \"10.0.0.1\": must be a DNS name, not an IP address"],
            ),
            (
                &format!("{path}/path"),
                json!("x"),
                &[&format!("{shown}.path: Invalid value: \"x\": must be an absolute path")],
            ),
            (
                &format!("{path}/path"),
                json!("/a//b"),
                &[&format!("{shown}.path: Invalid value: \"/a//b\": must not contain '//'")],
            ),
            (
                &format!("{path}/pathType"),
                json!("Odd"),
                &[&format!(
                    "{shown}.pathType: Unsupported value: \"Odd\": supported values: \"Exact\", \"ImplementationSpecific\", \"Prefix\""
                )],
            ),
            (
                &format!("{path}/backend/service/port"),
                json!({}),
                &[&format!("{shown}.backend: Required value: port name or number is required")],
            ),
            (
                &format!("{path}/backend"),
                json!({}),
                &[&format!("{shown}.backend: Invalid value: \"\": resource or service backend is required")],
            ),
        ],
    );
}

#[test]
fn network_policies_are_checked() {
    let policy = ("networking.k8s.io", "v1", "networkpolicies");
    assert_eq!(made(policy, &of(policy))["spec"]["policyTypes"], json!(["Ingress"]));
    let peer = "/spec/ingress/0/from/0";
    let shown = "spec.ingress[0].from[0]";
    each_is_refused(
        policy,
        &of(policy),
        &[
            (peer, json!({}), &[&format!("{shown}: Required value: must specify a peer")]),
            (
                &format!("{peer}/podSelector"),
                json!({}),
                &[&format!("{shown}: Forbidden: may not specify both ipBlock and another peer")],
            ),
            (
                &format!("{peer}/ipBlock/except"),
                json!(["11.0.0.0/16"]),
                &[&format!(
                    "{shown}.ipBlock.except[0]: Invalid value: \"11.0.0.0/16\": must be a strict subset of `cidr`"
                )],
            ),
            (
                "/spec/ingress/0/ports",
                json!([{"port": "web", "endPort": 90}]),
                &[
                    "spec.ingress[0].ports[0].endPort: Invalid value: 90: may not be specified when `port` is non-numeric",
                ],
            ),
            (
                "/spec/ingress/0/ports",
                json!([{"port": 100, "endPort": 90}]),
                &[
                    "spec.ingress[0].ports[0].endPort: Invalid value: 100: must be greater than or equal to `port`",
                ],
            ),
        ],
    );
}

#[test]
fn endpoints_and_slices_are_checked() {
    let endpoints = ("", "v1", "endpoints");
    each_is_refused(
        endpoints,
        &of(endpoints),
        &[
            (
                "/subsets/0/addresses",
                json!([]),
                &["subsets[0]: Required value: must specify `addresses` or `notReadyAddresses`"],
            ),
            (
                "/subsets/0/addresses/0/ip",
                json!("169.254.0.1"),
                &[
                    "subsets[0].addresses[0].ip: Invalid value: \"169.254.0.1\": may not be in the link-local range (169.254.0.0/16, fe80::/10)",
                ],
            ),
        ],
    );
    let slice = ("discovery.k8s.io", "v1", "endpointslices");
    each_is_refused(
        slice,
        &of(slice),
        &[
            ("/addressType", Value::Null, &["addressType: Required value"]),
            (
                "/endpoints/0/addresses",
                json!([]),
                &["endpoints[0].addresses: Required value: must contain at least 1 address"],
            ),
            (
                "/endpoints/0/addresses",
                json!(["2001:db8::1"]),
                &["endpoints[0].addresses: Invalid value: \"2001:db8::1\": must be an IPv4 address"],
            ),
            ("/ports/1", json!({"port": 81}), &["ports[1].name: Duplicate value: \"\""]),
        ],
    );
    let said = change_refused(slice, &of(slice), |slice| slice["addressType"] = json!("FQDN"));
    assert_eq!(said, ["addressType: Invalid value: \"FQDN\": field is immutable"]);
}

#[test]
fn ip_addresses_are_named_after_themselves() {
    let address = ("networking.k8s.io", "v1", "ipaddresses");
    let named = with(&of(address), "/metadata/name", json!("a"));
    assert_eq!(
        refused(address, &named),
        [
            "metadata.name: Invalid value: \"a\": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
        ]
    );
}
