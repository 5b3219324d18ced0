//! What the server gives a service: addresses of its networks, families, node ports. The answers are those of
//! kube-apiserver v1.36.3 with the same networks.

use std::net::SocketAddr;
use std::sync::Arc;

use kubewright_apiserver::http;
use kubewright_engine::{NodePorts, Settings};
use kubewright_meta::cidr::ServiceCidrs;
use kubewright_store::Memory;
use serde_json::{Value, json};

use super::NAMESPACE;
use crate::support::Api;

async fn cluster(cidrs: &str) -> Api {
    let service_cidrs = ServiceCidrs::parse(cidrs).expect("networks");
    Api::start_with(Settings { service_cidrs, ..Settings::default() }).await
}

fn services() -> String {
    format!("{NAMESPACE}/services")
}

fn service(name: &str, spec: impl Into<Value>) -> Value {
    let spec = spec.into();
    let mut object =
        json!({"metadata": {"name": name}, "spec": {"ports": [{"port": 80}], "selector": {"a": "b"}}});
    for (field, value) in spec.as_object().expect("fields") {
        object["spec"][field] = value.clone();
    }
    object
}

/// The families of a service, and those of its addresses.
fn families(service: &Value) -> (Value, Vec<&str>) {
    let addresses = service["spec"]["clusterIPs"].as_array().into_iter().flatten();
    let family =
        |address: &Value| if address.as_str().is_some_and(|ip| ip.contains(':')) { "IPv6" } else { "IPv4" };
    (service["spec"]["ipFamilies"].clone(), addresses.map(family).collect())
}

#[tokio::test(start_paused = true)]
async fn the_first_address_is_that_of_the_server_and_the_networks_are_told() {
    for (cidrs, first, list, family) in [
        ("10.0.0.0/24", "10.0.0.1", json!(["10.0.0.0/24"]), "IPv4"),
        ("fd00::/112,10.0.0.0/24", "fd00::1", json!(["fd00::/112", "10.0.0.0/24"]), "IPv6"),
    ] {
        let api = cluster(cidrs).await;
        let own = api.get(&format!("{}/kubernetes", services())).await.expect(200);
        assert_eq!((&own["spec"]["clusterIP"], &own["spec"]["clusterIPs"]), (&json!(first), &json!([first])));
        assert_eq!(
            (&own["spec"]["ipFamilies"], &own["spec"]["ipFamilyPolicy"]),
            (&json!([family]), &json!("SingleStack"))
        );
        let cidr = api.get("/apis/networking.k8s.io/v1/servicecidrs/kubernetes").await.expect(200);
        assert_eq!(cidr["spec"]["cidrs"], list);
        let ready = &cidr["status"]["conditions"][0];
        assert_eq!(
            (&ready["type"], &ready["status"], &ready["reason"], &ready["message"]),
            (&json!("Ready"), &json!("True"), &json!(""), &json!("Kubernetes default Service CIDR is ready"))
        );
    }
}

#[tokio::test(start_paused = true)]
async fn the_server_is_where_it_is_advertised_and_nowhere_else() {
    let slices = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices";
    let silent = Api::start().await;
    silent.get(&format!("{NAMESPACE}/endpoints/kubernetes")).await.refused(404, "NotFound");
    let advertise: SocketAddr = "192.0.2.1:16443".parse().expect("an address");
    let api = Api::start_with(Settings { advertise: Some(advertise), ..Settings::default() }).await;
    let endpoints = api.get(&format!("{NAMESPACE}/endpoints/kubernetes")).await.expect(200);
    let ports = json!([{"name": "https", "port": 16443, "protocol": "TCP"}]);
    assert_eq!(endpoints["subsets"], json!([{"addresses": [{"ip": "192.0.2.1"}], "ports": ports}]));
    assert_eq!(endpoints["metadata"]["labels"], json!({"endpointslice.kubernetes.io/skip-mirror": "true"}));
    let slice = api.get(&format!("{slices}/kubernetes")).await.expect(200);
    assert_eq!((&slice["addressType"], &slice["ports"]), (&json!("IPv4"), &ports));
    assert_eq!(slice["endpoints"], json!([{"addresses": ["192.0.2.1"], "conditions": {"ready": true}}]));
    let own = api.get(&format!("{}/kubernetes", services())).await.expect(200);
    assert_eq!(own["spec"]["ports"][0]["targetPort"], 16443);
}

#[tokio::test(start_paused = true)]
async fn one_network_gives_one_family() {
    let api = cluster("10.0.0.0/24").await;
    let prefers =
        api.post(&services(), service("a", json!({"ipFamilyPolicy": "PreferDualStack"}))).await.expect(201);
    assert_eq!(families(&prefers), (json!(["IPv4"]), vec!["IPv4"]));
    let free = json!({"clusterIP": "None", "selector": {}});
    let free = api.post(&services(), service("free", free)).await.expect(201);
    assert_eq!(
        (&free["spec"]["ipFamilies"], &free["spec"]["ipFamilyPolicy"]),
        (&json!(["IPv4", "IPv6"]), &json!("RequireDualStack"))
    );
    for (spec, told) in [
        (
            json!({"ipFamilyPolicy": "RequireDualStack"}),
            "spec.ipFamilyPolicy: Invalid value: \"RequireDualStack\": this cluster is not configured for dual-stack services",
        ),
        (
            json!({"ipFamilies": ["IPv6"]}),
            "spec.ipFamilies[0]: Invalid value: \"IPv6\": not configured on this cluster",
        ),
        (
            json!({"ipFamilies": ["IPv4", "IPv6"]}),
            "spec.ipFamilyPolicy: Invalid value: \"SingleStack\": must be 'RequireDualStack' or 'PreferDualStack' when multiple IP families are specified",
        ),
        (
            json!({"ipFamilies": ["IPv6", "IPv4"], "ipFamilyPolicy": "PreferDualStack"}),
            "spec.ipFamilies[0]: Invalid value: \"IPv6\": not configured on this cluster",
        ),
        (
            json!({"clusterIP": "1.2.3.4"}),
            "spec.clusterIPs: Invalid value: [\"1.2.3.4\"]: failed to allocate IP 1.2.3.4: the provided network does not match the current range",
        ),
        (
            json!({"clusterIP": "fd12::5"}),
            "spec.clusterIPs[0]: Invalid value: [\"fd12::5\"]: IPv6 is not configured on this cluster",
        ),
        (
            json!({"clusterIP": "10.0.0.1"}),
            "spec.clusterIPs: Invalid value: [\"10.0.0.1\"]: failed to allocate IP 10.0.0.1: provided IP is already allocated",
        ),
        (
            json!({"clusterIP": "10.0.0.0"}),
            "spec.clusterIPs: Invalid value: [\"10.0.0.0\"]: failed to allocate IP 10.0.0.0: the provided network does not match the current range",
        ),
        (
            json!({"clusterIP": "10.0.0.255"}),
            "spec.clusterIPs: Invalid value: [\"10.0.0.255\"]: failed to allocate IP 10.0.0.255: the provided network does not match the current range",
        ),
        (
            json!({"clusterIP": "10.0.0.77", "clusterIPs": ["10.0.0.77", "fd00::77"]}),
            "[spec.ipFamilyPolicy: Invalid value: \"SingleStack\": must be 'RequireDualStack' or 'PreferDualStack' when multiple cluster IPs are specified, spec.clusterIPs[1]: Invalid value: [\"10.0.0.77\",\"fd00::77\"]: IPv6 is not configured on this cluster]",
        ),
        (
            json!({"clusterIP": "10.0.0.76", "ipFamilies": ["IPv6"]}),
            "spec.clusterIPs[0]: Invalid value: \"10.0.0.76\": expected an IPv6 value as indicated by `ipFamilies[0]`",
        ),
        (
            json!({"clusterIP": "None", "ipFamilies": ["IPv6"]}),
            "spec.ipFamilies[0]: Invalid value: \"IPv6\": not configured on this cluster",
        ),
    ] {
        let message = api.post(&services(), service("x", spec)).await.refused(422, "Invalid");
        assert_eq!(message, format!("Service \"x\" is invalid: {told}"));
    }
}

#[tokio::test(start_paused = true)]
async fn two_networks_give_two_families_to_those_who_want_them() {
    let api = cluster("10.0.0.0/24,fd00::/112").await;
    for (name, spec, expected) in [
        ("plain", json!({}), vec!["IPv4"]),
        ("six", json!({"ipFamilies": ["IPv6"]}), vec!["IPv6"]),
        ("prefer", json!({"ipFamilyPolicy": "PreferDualStack"}), vec!["IPv4", "IPv6"]),
        (
            "require",
            json!({"ipFamilyPolicy": "RequireDualStack", "ipFamilies": ["IPv6"]}),
            vec!["IPv6", "IPv4"],
        ),
        ("given", json!({"clusterIP": "fd00::99"}), vec!["IPv6"]),
        (
            "both",
            json!({"clusterIP": "10.0.0.76", "clusterIPs": ["10.0.0.76", "fd00::77"], "ipFamilyPolicy": "PreferDualStack"}),
            vec!["IPv4", "IPv6"],
        ),
    ] {
        let made = api.post(&services(), service(name, spec)).await.expect(201);
        assert_eq!(families(&made), (json!(expected), expected.clone()), "{name}");
    }
    let headless = api
        .post(&services(), service("h", json!({"clusterIP": "None", "ipFamilyPolicy": "PreferDualStack"})))
        .await
        .expect(201);
    assert_eq!(
        (&headless["spec"]["ipFamilies"], &headless["spec"]["clusterIPs"]),
        (&json!(["IPv4", "IPv6"]), &json!(["None"]))
    );

    let place = format!("{}/plain", services());
    let first = api.get(&place).await.expect(200)["spec"]["clusterIP"].clone();
    let more = json!({"spec": {"ipFamilyPolicy": "PreferDualStack"}});
    let more = api.patch(&place, "merge", more).await.expect(200);
    assert_eq!(families(&more), (json!(["IPv4", "IPv6"]), vec!["IPv4", "IPv6"]));
    assert_eq!(more["spec"]["clusterIPs"][0], first);
    let less = json!({"spec": {"ipFamilyPolicy": "SingleStack"}});
    let less = api.patch(&place, "merge", less).await.expect(200);
    assert_eq!(
        (&less["spec"]["clusterIPs"], &less["spec"]["ipFamilies"]),
        (&json!([first]), &json!(["IPv4"]))
    );
    let given = format!("{}/both", services());
    assert_eq!(
        api.patch(&given, "merge", json!({"spec": {"clusterIPs": ["10.0.0.76", "fd00::97"]}}))
            .await
            .refused(422, "Invalid"),
        "Service \"both\" is invalid: spec.clusterIPs[1]: Invalid value: [\"10.0.0.76\",\"fd00::97\"]: may not change once set"
    );
    let named = api
        .patch(&given, "merge", json!({"spec": {"type": "ExternalName", "externalName": "x.y"}}))
        .await
        .expect(200);
    assert_eq!(named["spec"].get("clusterIP"), None);
    api.post(&services(), service("again", json!({"clusterIP": "10.0.0.76"}))).await.expect(201);
}

#[tokio::test(start_paused = true)]
async fn a_write_to_the_status_that_creates_gives_no_port_for_health() {
    let api = Api::start().await;
    let local = service("a", json!({"type": "LoadBalancer", "externalTrafficPolicy": "Local"}));
    assert_eq!(
        api.put(&format!("{}/a/status", services()), local).await.refused(422, "Invalid"),
        "Service \"a\" is invalid: spec.healthCheckNodePort: Required value"
    );
}

#[tokio::test(start_paused = true)]
async fn a_node_port_out_of_range_that_a_status_gave_is_nobodys() {
    let api = Api::start().await;
    let ports = json!({"type": "NodePort", "ports": [{"port": 80, "nodePort": 80}]});
    api.put(&format!("{}/a/status", services()), service("a", ports.clone())).await.expect(201);
    let trial = format!("{}?dryRun=All", services());
    api.post(&trial, service("a", ports.clone())).await.refused(409, "AlreadyExists");
    api.post(&trial, service("b", ports)).await.expect(201);
}

/// kube-apiserver v1.36.3 keeps the policy, and its storage's decorator hides it.
#[tokio::test(start_paused = true)]
async fn the_internal_traffic_policy_of_an_external_name_is_hidden_but_in_its_status_watches_and_marks() {
    let api = Api::start().await;
    let place = format!("{}/a", services());
    api.post(&services(), service("a", json!({"internalTrafficPolicy": "Local"}))).await.expect(201);
    let version = api.get(&services()).await.expect(200)["metadata"]["resourceVersion"].clone();
    let version = version.as_str().expect("a version");
    let mut watch = api.watch(&format!("{}?watch=1&resourceVersion={version}", services())).await;
    let policy = |service: &Value| service["spec"]["internalTrafficPolicy"].clone();
    let external = json!({"spec": {"type": "ExternalName", "externalName": "x.y"}});
    let dry = api.patch(&format!("{place}?dryRun=All"), "merge", external.clone()).await.expect(200);
    let named = api.patch(&place, "merge", external).await.expect(200);
    let read = api.get(&place).await.expect(200);
    let listed = api.get(&services()).await.expect(200);
    let item = listed["items"].as_array().expect("items").iter().find(|item| item["metadata"]["name"] == "a");
    for shown in [&dry, &named, &read, item.expect("the service")] {
        assert_eq!(policy(shown), Value::Null);
    }
    let status = api.get(&format!("{place}/status")).await.expect(200);
    let written = api.patch(&format!("{place}/status"), "merge", json!({})).await.expect(200);
    let told = watch.expect("MODIFIED", "a").await;
    for shown in [&status, &written, &told] {
        assert_eq!(policy(shown), "Local");
    }
    let deleted = api.delete(&format!("{place}?dryRun=All")).await.expect(200);
    assert_eq!(policy(&deleted), Value::Null);
    let held = json!({"metadata": {"finalizers": ["example.com/hold"]}});
    api.patch(&place, "merge", held).await.expect(200);
    for options in ["?dryRun=All", "?propagationPolicy=Foreground"] {
        assert_eq!(policy(&api.delete(&format!("{place}{options}")).await.expect(200)), "Local");
    }
    let back = json!({"spec": {"type": "ClusterIP"}});
    assert_eq!(policy(&api.patch(&place, "merge", back).await.expect(200)), "Local");
}

#[tokio::test(start_paused = true)]
async fn node_ports_are_of_the_range_and_a_port_of_two_protocols_has_one() {
    let node_ports = NodePorts::parse("31000-31039").expect("a range");
    let api = Api::start_with(Settings { node_ports, ..Settings::default() }).await;
    let ports = json!([{"name": "a", "port": 80}, {"name": "b", "port": 80, "protocol": "UDP", "nodePort": 31002}, {"name": "c", "port": 81}]);
    let made =
        api.post(&services(), service("a", json!({"type": "NodePort", "ports": ports}))).await.expect(201);
    let ports: Vec<u64> = made["spec"]["ports"]
        .as_array()
        .expect("ports")
        .iter()
        .filter_map(|port| port["nodePort"].as_u64())
        .collect();
    assert_eq!(ports[..2], [31002, 31002]);
    // The first sixteen are left to those who choose.
    assert!((31016..=31039).contains(&ports[2]), "{}", ports[2]);
    let asked =
        |port: u64| service("b", json!({"type": "NodePort", "ports": [{"port": 80, "nodePort": port}]}));
    assert_eq!(
        api.post(&services(), asked(80)).await.refused(422, "Invalid"),
        "Service \"b\" is invalid: spec.ports[0].nodePort: Invalid value: 80: provided port is not in the valid range. The range of valid ports is 31000-31039"
    );
    assert_eq!(
        api.post(&services(), asked(31002)).await.refused(422, "Invalid"),
        "Service \"b\" is invalid: spec.ports[0].nodePort: Invalid value: 31002: provided port is already allocated"
    );
}

/// The ports are given before a change is validated: 500 comes before two equal names.
#[tokio::test(start_paused = true)]
async fn two_entries_that_take_over_one_node_port_are_an_error_of_the_server() {
    let api = Api::start().await;
    let port = json!({"name": "a", "port": 80, "nodePort": 31000});
    api.post(&services(), service("a", json!({"type": "NodePort", "ports": [port]}))).await.expect(201);
    let port = json!({"name": "a", "port": 80, "protocol": "TCP"});
    let change = json!({"spec": {"ports": [port, port]}});
    let answer = api.patch(&format!("{}/a", services()), "merge", change).await.expect(500);
    assert_eq!((&answer["message"], answer.get("reason")), (&json!("duplicate nodePort: {TCP 31000}"), None));
}

#[tokio::test(start_paused = true)]
async fn a_local_load_balancer_has_a_port_for_its_health() {
    let api = Api::start().await;
    let local = |port: u64| json!({"type": "LoadBalancer", "externalTrafficPolicy": "Local", "healthCheckNodePort": port});
    let made = api.post(&services(), service("a", local(0))).await.expect(201);
    let port = made["spec"]["healthCheckNodePort"].as_u64().expect("a port");
    assert!((30000..=32767).contains(&port));
    assert_eq!(
        api.post(&services(), service("b", local(port))).await.refused(500, "InternalError"),
        format!(
            "Internal error occurred: failed to allocate requested HealthCheck NodePort {port}: provided port is already allocated"
        )
    );
    let changed = json!({"spec": {"externalTrafficPolicy": "Cluster"}});
    let changed = api.patch(&format!("{}/a", services()), "merge", changed).await.expect(200);
    assert_eq!(changed["spec"].get("healthCheckNodePort"), None);
    api.post(&services(), service("b", local(port))).await.expect(201);
}

#[tokio::test(start_paused = true)]
async fn addresses_run_out_and_come_back() {
    let api = cluster("10.0.0.0/29").await;
    for at in 0..5 {
        api.post(&services(), service(&format!("s{at}"), json!({}))).await.expect(201);
    }
    assert_eq!(
        api.post(&services(), service("more", json!({}))).await.refused(500, "InternalError"),
        "Internal error occurred: failed to allocate a serviceIP for Service \"more\": range is full"
    );
    api.delete(&format!("{}/s1", services())).await.expect(200);
    api.post(&services(), service("more", json!({}))).await.expect(201);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_moved_is_told_to_be_where_it_is_now() {
    let store = Arc::new(Memory::new());
    let start = async |advertise: &str| {
        let advertise = Some(advertise.parse().expect("an address"));
        Api::start_as(store.clone(), Settings { advertise, ..Settings::default() }, http::Settings::default())
            .await
    };
    let before = start("192.0.2.1:16443").await;
    let slice = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes";
    let first = before.get(slice).await.expect(200);
    let same = start("192.0.2.1:16443").await.get(slice).await.expect(200);
    assert_eq!(same["metadata"]["resourceVersion"], first["metadata"]["resourceVersion"]);
    let after = start("192.0.2.7:26443").await;
    assert_eq!(after.get(slice).await.expect(200)["endpoints"][0]["addresses"], json!(["192.0.2.7"]));
    let endpoints = after.get(&format!("{NAMESPACE}/endpoints/kubernetes")).await.expect(200);
    assert_eq!(endpoints["subsets"][0]["addresses"][0]["ip"], "192.0.2.7");
    let own = after.get(&format!("{}/kubernetes", services())).await.expect(200);
    assert_eq!(own["spec"]["ports"][0]["targetPort"], 26443);
}
