//! Services.

use std::collections::BTreeSet;

use kubewright_meta::FieldError;
use serde_json::{Value, json};

use super::super::at::At;
use super::super::errors::Errors;
use super::super::pods::check_port;
use super::super::{Hidden, NameRule, Rules, fill, ip, selector, text};
use super::{PROTOCOLS, addresses, change, load_balancer};

const TYPES: [&str; 4] = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];

const SOURCE_RANGES: &str = "service.beta.kubernetes.io/load-balancer-source-ranges";
const ONLY_BALANCED: &str = "may only be used when `type` is 'LoadBalancer'";

pub(crate) const fn rules() -> Rules {
    Rules {
        default,
        prepare_create: |service| {
            fill::set(service, "status", json!({"loadBalancer": {}}));
        },
        prepare_update: change::prepare,
        hidden: Some(Hidden { mark: "ExternalName", hide: hide_internal_traffic }),
        name: NameRule::OldLabel,
        validate: |service| {
            Errors::of(|errors| {
                check_topology(&At::root(service).dig(&["metadata", "annotations"]), errors);
                check(&At::root(service).get("spec"), errors);
                check_annotated_ranges(&At::root(service), None, errors);
            })
        },
        validate_update: |new, old| {
            Errors::of(|errors| {
                let (new, old) = (At::root(new), At::root(old));
                change::check(&new.get("spec"), &old.get("spec"), errors);
                check_topology(&new.dig(&["metadata", "annotations"]), errors);
                check(&new.get("spec"), errors);
                check_annotated_ranges(&new, Some(&old), errors);
            })
        },
        validate_status: load_balancer::validate_status,
        ..Rules::none()
    }
}

/// A name elsewhere has no use for the policy that it may have (`defaultOnReadService` of `pkg/registry/core/service/storage`).
fn hide_internal_traffic(service: &mut Value) -> bool {
    if At::root(service).dig(&["spec", "type"]).text() != "ExternalName" {
        return false;
    }
    let spec = service["spec"].as_object_mut();
    spec.is_some_and(|spec| spec.remove("internalTrafficPolicy").is_some())
}

fn default(service: &mut Value) {
    if let Some(status) = fill::object(service, "status") {
        fill::object(status, "loadBalancer");
    }
    let Some(spec) = fill::object(service, "spec") else { return };
    fill::blank(spec, "sessionAffinity", "None");
    match spec["sessionAffinity"].as_str() {
        Some("None") => fill::remove(spec, "sessionAffinityConfig"),
        Some("ClientIP") => {
            let client = fill::object(spec, "sessionAffinityConfig")
                .and_then(|config| fill::object(config, "clientIP"));
            if let Some(client) = client {
                fill::absent(client, "timeoutSeconds", 10800);
            }
        }
        _ => {}
    }
    fill::blank(spec, "type", "ClusterIP");
    fill::each(spec, "ports", |port| {
        fill::blank(port, "protocol", "TCP");
        let number = port.get("port").and_then(Value::as_i64).unwrap_or_default();
        let target = port.get("targetPort").unwrap_or(&Value::Null);
        if target.is_null() || target == &json!(0) || target == &json!("") {
            fill::set(port, "targetPort", number);
        }
    });
    if is_external(&At::root(spec)) {
        fill::blank(spec, "externalTrafficPolicy", "Cluster");
    }
    let kind = spec["type"].as_str().unwrap_or_default().to_owned();
    if kind == "LoadBalancer" {
        fill::absent(spec, "allocateLoadBalancerNodePorts", true);
    }
    if matches!(kind.as_str(), "ClusterIP" | "NodePort" | "LoadBalancer") {
        fill::absent(spec, "internalTrafficPolicy", "Cluster");
    }
    if kind == "LoadBalancer" {
        load_balancer::default_status(service);
    }
}

/// Whether traffic from outside of the cluster reaches the service (`apiservice.ExternallyAccessible`).
pub(super) fn is_external(spec: &At<'_>) -> bool {
    match spec.get("type").text() {
        "LoadBalancer" | "NodePort" => true,
        "ClusterIP" => !spec.get("externalIPs").is_empty(),
        _ => false,
    }
}

fn is_headless(spec: &At<'_>) -> bool {
    let ips = spec.get("clusterIPs");
    ips.len() == 1 && ips.items().all(|ip| ip.text() == "None")
}

/// The annotation of today says what the one of before says, where both are there.
fn check_topology(annotations: &At<'_>, errors: &mut Errors) {
    const HINTS: &str = "service.kubernetes.io/topology-aware-hints";
    let (mode, hints) = (annotations.entry("service.kubernetes.io/topology-mode"), annotations.entry(HINTS));
    if mode.is_set() && hints.is_set() && mode.text() != hints.text() {
        errors.invalid_text(&mode, format!("must match annotations[{HINTS}] when both are specified"));
    }
}

fn check(spec: &At<'_>, errors: &mut Errors) {
    let kind = spec.get("type");
    let ports = spec.get("ports");
    if ports.is_empty() && !is_headless(spec) && kind.text() != "ExternalName" {
        errors.required(&ports, "");
    }
    match kind.text() {
        kind @ ("LoadBalancer" | "NodePort") if is_headless(spec) => {
            for ip in spec.get("clusterIPs").items() {
                errors.invalid(&ip, format!("may not be set to 'None' for {kind} services"));
            }
        }
        "ExternalName" => check_external_name(spec, errors),
        _ => {}
    }
    check_ports(&ports, errors);
    selector::check_labels(&spec.get("selector"), errors);
    check_affinity(spec, errors);
    addresses::check_cluster_ips(spec, errors);
    for external in spec.get("externalIPs").items() {
        errors.text(&external, ip::address);
        addresses::check_endpoint_ip(&external, errors);
    }
    errors.need_one_of(&kind, &TYPES);
    check_port_use(spec, errors);
    check_load_balancer(spec, errors);
    check_policies(spec, errors);
}

fn check_external_name(spec: &At<'_>, errors: &mut Errors) {
    for field in ["clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
        let at = spec.get(field);
        // A policy that is an empty text is one.
        if !at.is_empty() || (field == "ipFamilyPolicy" && at.is_set()) {
            errors.forbidden(&at, "may not be set for ExternalName services");
        }
    }
    let name = spec.get("externalName");
    match name.text().strip_suffix('.').unwrap_or(name.text()) {
        "" => errors.required(&name, ""),
        host => {
            for message in text::subdomain(host) {
                errors.invalid_as(&name, host, message);
            }
        }
    }
}

fn check_ports(ports: &At<'_>, errors: &mut Errors) {
    let mut names = BTreeSet::new();
    for port in ports.items() {
        let name = port.get("name");
        if !name.is_empty() {
            errors.text(&name, text::label);
            if !names.insert(name.text()) {
                errors.duplicate(&name);
            }
        } else if ports.len() > 1 {
            errors.required(&name, "");
        }
        errors.port(&port.get("port"));
        errors.need_one_of(&port.get("protocol"), &PROTOCOLS);
        check_port(&port.get("targetPort"), errors);
        if port.get("appProtocol").is_set() {
            errors.text(&port.get("appProtocol"), text::label_key);
        }
    }
}

/// That no port is there twice, and node ports only where they are used.
fn check_port_use(spec: &At<'_>, errors: &mut Errors) {
    let ports = spec.get("ports");
    let number = |port: &At<'_>, field: &str| port.get(field).number().unwrap_or_default();
    let protocol = |port: &At<'_>| port.get("protocol").text().to_owned();
    if spec.get("type").text() == "ClusterIP" {
        for port in ports.items().filter(|port| number(port, "nodePort") != 0) {
            errors.forbidden(&port.get("nodePort"), "may not be used when `type` is 'ClusterIP'");
        }
    }
    let mut seen = BTreeSet::new();
    for port in ports.items().filter(|port| number(port, "nodePort") != 0) {
        if !seen.insert((protocol(&port), number(&port, "nodePort"))) {
            errors.duplicate(&port.get("nodePort"));
        }
    }
    let mut seen = BTreeSet::new();
    for port in ports.items() {
        let (protocol, number) = (protocol(&port), number(&port, "port"));
        let printed = format!(
            "{{\"Name\":\"\",\"Protocol\":{protocol:?},\"AppProtocol\":null,\"Port\":{number},\"TargetPort\":0,\"NodePort\":0}}"
        );
        if !seen.insert((protocol, number)) {
            errors.push(FieldError::duplicate(&port.path, Value::Null).printed(printed));
        }
    }
}

fn check_affinity(spec: &At<'_>, errors: &mut Errors) {
    let (affinity, config) = (spec.get("sessionAffinity"), spec.get("sessionAffinityConfig"));
    errors.need_one_of(&affinity, &["ClientIP", "None"]);
    match affinity.text() {
        "None" if config.is_set() => {
            errors.forbidden(&config, "must not be set when session affinity is None");
        }
        "ClientIP" => {
            let timeout = config.dig(&["clientIP", "timeoutSeconds"]);
            let missing =
                [config.clone(), config.get("clientIP"), timeout.clone()].into_iter().find(|at| !at.is_set());
            if let Some(missing) = missing {
                errors.required(&missing, "when session affinity type is ClientIP");
            } else if timeout.number().is_none_or(|seconds| seconds <= 0 || seconds > 86400) {
                errors.invalid(&timeout, "must be greater than 0 and less than 86400");
            }
        }
        _ => {}
    }
}

/// The annotation that tells source ranges where the field does not. Values that were there may be wrong.
fn check_annotated_ranges(service: &At<'_>, old: Option<&At<'_>>, errors: &mut Errors) {
    let at = annotated_ranges(service);
    let spec = service.get("spec");
    if !at.is_set() || !spec.get("loadBalancerSourceRanges").is_empty() {
        return;
    }
    if spec.get("type").text() != "LoadBalancer" {
        errors.forbidden(&at, ONLY_BALANCED);
    }
    let is_new = old.is_none_or(|old| annotated_ranges(old).value != at.value);
    if is_new && !at.text().trim().is_empty() {
        for range in at.text().split(',').map(str::trim) {
            for message in ip::range(range) {
                errors.invalid_as(&at, range, message);
            }
        }
    }
}

fn annotated_ranges<'a>(service: &At<'a>) -> At<'a> {
    service.dig(&["metadata", "annotations"]).entry(SOURCE_RANGES)
}

fn check_load_balancer(spec: &At<'_>, errors: &mut Errors) {
    let balanced = spec.get("type").text() == "LoadBalancer";
    let ranges = At {
        path: format!("{}.LoadBalancerSourceRanges", spec.path),
        ..spec.get("loadBalancerSourceRanges")
    };
    if !ranges.is_empty() && !balanced {
        errors.forbidden(&ranges, ONLY_BALANCED);
    }
    for range in ranges.items() {
        for message in ip::range(range.text().trim()) {
            errors.invalid_as(&range, range.text().trim(), message);
        }
    }
    let allocates = spec.get("allocateLoadBalancerNodePorts");
    if allocates.is_set() && !balanced {
        errors.forbidden(&allocates, ONLY_BALANCED);
    }
    check_class(spec, errors);
}

/// Which implementation balances (`validateLoadBalancerClassField`).
pub(super) fn check_class(spec: &At<'_>, errors: &mut Errors) {
    let class = spec.get("loadBalancerClass");
    if !class.is_set() {
        return;
    }
    if spec.get("type").text() == "LoadBalancer" {
        errors.text(&class, text::label_key);
    } else {
        errors.forbidden(&class, ONLY_BALANCED);
    }
}

/// Traffic policies. The health check port of a local load balancer is allocated by the server and not asked for here.
fn check_policies(spec: &At<'_>, errors: &mut Errors) {
    let external = spec.get("externalTrafficPolicy");
    if is_external(spec) {
        errors.need_one_of(&external, &["Cluster", "Local"]);
    } else if !external.is_empty() {
        errors.invalid(&external, "may only be set for externally-accessible services");
    }
    let health = spec.get("healthCheckNodePort");
    let is_told = health.number().unwrap_or_default() != 0;
    match (spec.get("type").text() == "LoadBalancer" && external.text() == "Local", is_told) {
        (true, true) => errors.port(&health),
        (true, false) => errors.required(&health, ""),
        (false, true) => errors.invalid(
            &health,
            "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'",
        ),
        (false, false) => {}
    }
    let internal = spec.get("internalTrafficPolicy");
    if !internal.is_set() && matches!(spec.get("type").text(), "ClusterIP" | "NodePort" | "LoadBalancer") {
        errors.required(&internal, "");
    }
    errors.maybe_one_of(&internal, &["Cluster", "Local"]);
    let distributions = ["PreferClose", "PreferSameZone", "PreferSameNode"];
    errors.maybe_one_of(&spec.get("trafficDistribution"), &distributions);
}
