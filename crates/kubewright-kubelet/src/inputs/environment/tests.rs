use std::path::Path;
use std::sync::Arc;

use k8s_openapi::api::core::v1::Service;
use serde_json::{Value, json};

use super::*;
use crate::inputs::fixture::{first, node, object, place, pod, pod_of};

fn made(pod: &Pod, fetched: &Fetched) -> Result<Variables, String> {
    let node = node(Path::new("/kubelet"));
    environment(pod, first(pod), fetched, place(&node), |_| Ok(None))
}

/// The environment of a container with this `env`, without what Services give.
fn of_env(env: &Value, fetched: &Fetched) -> Result<Variables, String> {
    let pod = pod_of(json!({"env": env}));
    let mut variables = made(&pod, fetched)?;
    variables.retain(|name, _| !name.starts_with("KUBE"));
    Ok(variables)
}

fn variables(pairs: &[(&str, &str)]) -> Variables {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

#[test]
fn the_api_server_is_where_it_really_listens_under_the_names_of_its_service() {
    let pod = pod(json!({"containers": [{"name": "app"}], "enableServiceLinks": false}));
    let expected = variables(&[
        ("KUBERNETES_SERVICE_HOST", "127.0.0.1"),
        ("KUBERNETES_SERVICE_PORT", "6443"),
        ("KUBERNETES_SERVICE_PORT_HTTPS", "6443"),
        ("KUBERNETES_PORT", "tcp://127.0.0.1:6443"),
        ("KUBERNETES_PORT_443_TCP", "tcp://127.0.0.1:6443"),
        ("KUBERNETES_PORT_443_TCP_PROTO", "tcp"),
        ("KUBERNETES_PORT_443_TCP_PORT", "6443"),
        ("KUBERNETES_PORT_443_TCP_ADDR", "127.0.0.1"),
        ("KUBEWRIGHT_POD_ADDRESS", "10.1.0.7"),
    ]);
    assert_eq!(made(&pod, &Fetched::default()).unwrap(), expected);
}

#[test]
fn a_pod_on_the_network_of_its_node_is_told_no_address_of_its_own() {
    let pod = pod(json!({"containers": [{"name": "app"}], "hostNetwork": true}));
    assert_eq!(made(&pod, &Fetched::default()).unwrap().get(POD_ADDRESS), None);
}

#[test]
fn services_of_the_namespace_with_an_address_are_linked_to() {
    let service = |name: &str, namespace: &str, ip: &str| -> Arc<Service> {
        Arc::new(object(
            json!({"metadata": {"name": name, "namespace": namespace}, "spec": {"clusterIP": ip, "ports": [
            {"port": 80, "protocol": "TCP"}, {"name": "dns-udp", "port": 53, "protocol": "UDP"}]}}),
        ))
    };
    let services = vec![
        service("my-web", "ns", "fd00::5"),
        service("headless", "ns", "None"),
        service("far", "other", "10.0.0.9"),
    ];
    let linked = services::variables(&services, "ns", true, "127.0.0.1:1".parse().unwrap());
    let linked: Variables = linked.into_iter().filter(|(name, _)| !name.starts_with("KUBERNETES_")).collect();
    let expected = variables(&[
        ("MY_WEB_SERVICE_HOST", "fd00::5"),
        ("MY_WEB_SERVICE_PORT", "80"),
        ("MY_WEB_SERVICE_PORT_DNS_UDP", "53"),
        ("MY_WEB_PORT", "tcp://[fd00::5]:80"),
        ("MY_WEB_PORT_80_TCP", "tcp://[fd00::5]:80"),
        ("MY_WEB_PORT_80_TCP_PROTO", "tcp"),
        ("MY_WEB_PORT_80_TCP_PORT", "80"),
        ("MY_WEB_PORT_80_TCP_ADDR", "fd00::5"),
        ("MY_WEB_PORT_53_UDP", "udp://[fd00::5]:53"),
        ("MY_WEB_PORT_53_UDP_PROTO", "udp"),
        ("MY_WEB_PORT_53_UDP_PORT", "53"),
        ("MY_WEB_PORT_53_UDP_ADDR", "fd00::5"),
    ]);
    assert_eq!(linked, expected);
    let unlinked = services::variables(&services, "ns", false, "127.0.0.1:1".parse().unwrap());
    assert!(unlinked.keys().all(|name| name.starts_with("KUBERNETES_")));
}

#[test]
fn the_service_kubernetes_does_not_hide_where_the_api_server_listens() {
    let service: Service = object(json!({"metadata": {"name": "kubernetes", "namespace": "default"},
        "spec": {"clusterIP": "10.96.0.1", "ports": [{"name": "https", "port": 443}]}}));
    let linked = services::variables(&[Arc::new(service)], "default", true, "[::1]:6443".parse().unwrap());
    assert_eq!(linked["KUBERNETES_SERVICE_HOST"], "::1");
    assert_eq!(linked["KUBERNETES_PORT"], "tcp://[::1]:6443");
}

#[test]
fn env_overlays_env_from_which_overlays_services_and_later_sources_overlay_earlier() {
    let fetched = Fetched::default()
        .config_map("c", json!({"A": "map", "B": "map", "bad name": "kept"}))
        .secret("s", &[("B", "secret")]);
    let pod = pod_of(json!({
        "envFrom": [{"configMapRef": {"name": "c"}}, {"secretRef": {"name": "s"}}, {"prefix": "P_", "secretRef": {"name": "s"}}],
        "env": [{"name": "A", "value": "$(A) own $(P_B)"}, {"name": "KUBERNETES_PORT", "value": "mine"}]}));
    let made = made(&pod, &fetched).unwrap();
    let of = |name: &str| made.get(name).map(String::as_str);
    assert_eq!(of("A"), Some("map own secret"));
    assert_eq!(of("B"), Some("secret"));
    assert_eq!(of("bad name"), Some("kept"), "any name goes since 1.34");
    assert_eq!(of("KUBERNETES_PORT"), Some("mine"));
}

#[test]
fn references_see_what_was_declared_before_them_and_services() {
    let env = json!([
        {"name": "FIRST", "value": "$(SECOND)"}, {"name": "SECOND", "value": "2"},
        {"name": "THIRD", "value": "$(SECOND) $$(SECOND) $(KUBERNETES_SERVICE_PORT)"}, {"name": "EMPTY"}]);
    let expected =
        variables(&[("FIRST", "$(SECOND)"), ("SECOND", "2"), ("THIRD", "2 $(SECOND) 6443"), ("EMPTY", "")]);
    assert_eq!(of_env(&env, &Fetched::default()).unwrap(), expected);
}

#[test]
fn what_is_missing_is_told_in_the_kubelets_words() {
    let fetched = Fetched::default().config_map("c", json!({"k": "v"})).secret("s", &[("k", "v")]);
    let from = |source: Value| of_env(&json!([{"name": "X", "valueFrom": source}]), &fetched).unwrap_err();
    assert_eq!(from(json!({"configMapKeyRef": {"name": "x", "key": "k"}})), r#"configmap "x" not found"#);
    assert_eq!(from(json!({"secretKeyRef": {"name": "x", "key": "k"}})), r#"secret "x" not found"#);
    assert_eq!(
        from(json!({"configMapKeyRef": {"name": "c", "key": "no"}})),
        "couldn't find key no in ConfigMap ns/c"
    );
    assert_eq!(
        from(json!({"secretKeyRef": {"name": "s", "key": "no"}})),
        "couldn't find key no in Secret ns/s"
    );
    let pod = pod_of(json!({"envFrom": [{"configMapRef": {"name": "gone"}}]}));
    assert_eq!(made(&pod, &fetched).unwrap_err(), r#"configmap "gone" not found"#);
}

#[test]
fn what_is_optional_may_be_missing() {
    let fetched = Fetched::default().config_map("c", json!({"k": "v"})).secret("s", &[("k", "v")]);
    let env = json!([
        {"name": "A", "valueFrom": {"configMapKeyRef": {"name": "x", "key": "k", "optional": true}}},
        {"name": "B", "valueFrom": {"secretKeyRef": {"name": "s", "key": "no", "optional": true}}},
        {"name": "C", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k", "optional": true}}}]);
    assert_eq!(of_env(&env, &fetched).unwrap(), variables(&[("C", "v")]));
    let pod = pod_of(json!({"envFrom": [{"secretRef": {"name": "gone", "optional": true}}]}));
    assert!(made(&pod, &fetched).is_ok());
}

#[test]
fn an_api_server_that_refuses_is_not_an_object_that_is_missing() {
    let mut fetched = Fetched::default();
    fetched.secrets.insert("s".to_owned(), Err("secrets \"s\" is forbidden".to_owned()));
    let env =
        json!([{"name": "X", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k", "optional": true}}}]);
    assert_eq!(of_env(&env, &fetched).unwrap_err(), "secrets \"s\" is forbidden");
}

#[test]
fn the_image_is_overlaid_by_the_pod_and_overlays_the_runtime() {
    let image = Config {
        env: vec![("PATH".to_owned(), "/image".to_owned()), ("X".to_owned(), "image".to_owned())],
        ..Config::default()
    };
    let pod = pod_of(json!({"tty": true}));
    let all = complete(variables(&[("X", "pod")]), first(&pod), &image, "web", "/root");
    let expected = variables(&[
        ("HOME", "/root"),
        ("HOSTNAME", "web"),
        ("PATH", "/image"),
        ("TERM", "xterm"),
        ("X", "pod"),
    ]);
    assert_eq!(all, expected);
    let bare = complete(Variables::new(), first(&pod), &Config::default(), "web", "/");
    assert_eq!(bare["PATH"], PATH);
}
