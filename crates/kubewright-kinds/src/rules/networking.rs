//! The group `networking.k8s.io`: ingresses, their classes, and network policies
//! (`pkg/apis/networking/validation`).

use std::net::IpAddr;

use kubewright_meta::FieldError;
use kubewright_spec::Version;
use serde_json::Value;

use super::at::At;
use super::errors::{Errors, IMMUTABLE};
use super::pods::check_port;
use super::printed::Fields;
use super::printed::Shape::{self, Plain};
use super::{Again, Generation, Rules, fill, ip, selector, text, version};

const CLASS_ANNOTATION: &str = "kubernetes.io/ingress.class";
const PATH_TYPES: [&str; 3] = ["Exact", "ImplementationSpecific", "Prefix"];

/// A reference to the owner of an address as Go prints it.
const PARENT: Fields = &[
    ("Group", "group", Plain("\"\"")),
    ("Resource", "resource", Plain("\"\"")),
    ("Namespace", "namespace", Plain("\"\"")),
    ("Name", "name", Plain("\"\"")),
];

/// The rules of ingresses.
pub(crate) const fn ingresses() -> Rules {
    Rules {
        default: |ingress| {
            if let Some(status) = fill::object(ingress, "status") {
                fill::object(status, "loadBalancer");
            }
            fill::object(ingress, "spec");
        },
        prepare_create: |ingress| fill::set(ingress, "status", serde_json::json!({"loadBalancer": {}})),
        generation: Generation::Content,
        again: Again::Metadata,
        validate: |ingress| {
            Errors::of(|errors| {
                let ingress = At::root(ingress);
                check_ingress(&ingress.get("spec"), errors);
                let old = ingress.dig(&["metadata", "annotations"]).entry(CLASS_ANNOTATION);
                let class = ingress.dig(&["spec", "ingressClassName"]);
                if old.is_set() && class.is_set() && old.text() != class.text() {
                    let place = At { path: format!("annotations.{CLASS_ANNOTATION}"), ..old };
                    errors.invalid(&place, "must match `ingressClassName` when both are specified");
                }
            })
        },
        validate_update: |new, _| Errors::of(|errors| check_ingress(&At::root(new).get("spec"), errors)),
        validate_status: |new, _| {
            Errors::of(|errors| {
                for point in At::root(new).dig(&["status", "loadBalancer", "ingress"]).items() {
                    check_point(&point, errors);
                }
            })
        },
        ..Rules::none()
    }
}

/// Where an ingress is reached.
fn check_point(point: &At<'_>, errors: &mut Errors) {
    let host = point.get("hostname");
    errors.maybe_text(&point.get("ip"), ip::address);
    errors.maybe_text(&host, text::subdomain);
    if !host.is_empty() && ip::is_address(host.text()) {
        errors.invalid(&host, "must be a DNS name, not an IP address");
    }
}

fn check_ingress(spec: &At<'_>, errors: &mut Errors) {
    let (backend, rules) = (spec.get("defaultBackend"), spec.get("rules"));
    if rules.is_empty() && !backend.is_set() {
        errors.invalid_as(spec, rules.value.clone(), "either `defaultBackend` or `rules` must be specified");
    }
    if backend.is_set() {
        check_backend(&backend, errors);
    }
    for rule in rules.items() {
        let host = rule.get("host");
        if host.text().parse::<IpAddr>().is_ok() {
            errors.invalid(&host, "must be a DNS name, not an IP address");
        }
        if !host.is_empty() {
            check_host(&host, errors);
        }
        let http = rule.get("http");
        if http.is_set() {
            errors.need(&http.get("paths"));
            for path in http.get("paths").items() {
                check_path(&path, errors);
            }
        }
    }
    for entry in spec.get("tls").items() {
        for host in entry.get("hosts").items() {
            check_host(&host, errors);
        }
        errors.maybe_text(&entry.get("secretName"), text::subdomain);
    }
    if spec.get("ingressClassName").is_set() {
        errors.text(&spec.get("ingressClassName"), text::subdomain);
    }
}

fn check_host(host: &At<'_>, errors: &mut Errors) {
    errors.text(host, if host.text().contains('*') { text::wildcard_subdomain } else { text::subdomain });
}

fn check_path(item: &At<'_>, errors: &mut Errors) {
    let (path, kind) = (item.get("path"), item.get("pathType"));
    if !kind.is_set() {
        errors.required(&kind, "pathType must be specified");
        return;
    }
    let absolute = path.text().starts_with('/');
    match kind.text() {
        "Exact" | "Prefix" => {
            if !absolute {
                errors.invalid_text(&path, "must be an absolute path");
            }
            for bad in ["//", "/./", "/../", "%2f", "%2F"] {
                if path.text().contains(bad) {
                    errors.invalid(&path, format!("must not contain '{bad}'"));
                }
            }
            for bad in ["/..", "/."] {
                if path.text().ends_with(bad) {
                    errors.invalid(&path, format!("cannot end with '{bad}'"));
                }
            }
        }
        "ImplementationSpecific" => {
            if !path.is_empty() && !absolute {
                errors.invalid(&path, "must be an absolute path");
            }
        }
        _ => errors.not_supported(&kind, &PATH_TYPES),
    }
    check_backend(&item.get("backend"), errors);
}

fn check_backend(backend: &At<'_>, errors: &mut Errors) {
    let (resource, service) = (backend.get("resource"), backend.get("service"));
    match (resource.is_set(), service.is_set()) {
        (true, true) => errors.invalid_as(backend, "", "cannot set both resource and service backends"),
        (false, false) => errors.invalid_as(backend, "", "resource or service backend is required"),
        (true, false) => check_reference(&resource, errors),
        (false, true) => check_service(backend, &service, errors),
    }
}

fn check_service(backend: &At<'_>, service: &At<'_>, errors: &mut Errors) {
    let is_relaxed = version::has_feature("RelaxedServiceNameValidation");
    errors.need_text(&service.get("name"), if is_relaxed { text::label } else { text::label_1035 });
    let (name, number) = (service.dig(&["port", "name"]), service.dig(&["port", "number"]));
    match (name.is_empty(), number.number().unwrap_or_default() == 0) {
        (false, false) => errors.invalid_as(backend, "", "cannot set both port name & port number"),
        (false, true) => errors.text(&name, text::port_name),
        (true, false) => errors.port(&number),
        (true, true) => errors.required(backend, "port name or number is required"),
    }
}

/// A typed reference to another object.
fn check_reference(reference: &At<'_>, errors: &mut Errors) {
    if reference.get("apiGroup").is_set() {
        errors.text(&reference.get("apiGroup"), text::subdomain);
    }
    errors.need_text(&reference.get("kind"), text::path_segment);
    errors.need_text(&reference.get("name"), text::path_segment);
}

/// The rules of ingress classes.
pub(crate) const fn ingress_classes() -> Rules {
    Rules {
        default: |class| {
            if let Some(parameters) = fill::reach(class, &["spec", "parameters"]) {
                fill::absent(parameters, "scope", "Cluster");
            }
        },
        generation: Generation::Content,
        again: Again::ObjectAfter,
        validate: |class| Errors::of(|errors| check_class(&At::root(class).get("spec"), errors)),
        validate_update: |new, old| {
            Errors::of(|errors| {
                let field = ["spec", "controller"];
                errors.immutable_text(&At::root(new).dig(&field), &At::root(old).dig(&field));
            })
        },
        ..Rules::none()
    }
}

fn check_class(spec: &At<'_>, errors: &mut Errors) {
    let controller = spec.get("controller");
    if controller.text().len() > 250 {
        errors.push(FieldError::too_long(&controller.path, 250));
    }
    if errors.need(&controller) {
        match controller.text().split_once('/') {
            Some((domain, path)) if !domain.is_empty() && !path.is_empty() => {
                for message in text::subdomain(domain) {
                    errors.invalid_as(&controller, domain, message);
                }
            }
            _ => errors.invalid(&controller, "must be a domain-prefixed path (such as \"acme.io/foo\")"),
        }
    }
    let parameters = spec.get("parameters");
    if !parameters.is_set() {
        return;
    }
    check_reference(&parameters, errors);
    let (scope, namespace) = (parameters.get("scope"), parameters.get("namespace"));
    match scope.text() {
        "Namespace" if !namespace.is_set() => {
            errors.required(&namespace, "`parameters.scope` is set to 'Namespace'");
        }
        "Namespace" => errors.text(&namespace, text::label),
        "Cluster" if namespace.is_set() => {
            errors.forbidden(&namespace, "`parameters.scope` is set to 'Cluster'");
        }
        "Cluster" => {}
        _ if !scope.is_set() => errors.required(&scope, ""),
        _ => errors.not_supported(&scope, &["Cluster", "Namespace"]),
    }
}

/// The rules of network policies.
pub(crate) const fn policies() -> Rules {
    Rules {
        default: default_policy,
        generation: Generation::AsGiven,
        keeps_empty_maps: true,
        // Up to v1.35 an update told what is wrong with an object twice.
        again: Again::Object,
        validate: |policy| Errors::of(|errors| check_policy(&At::root(policy).get("spec"), errors)),
        validate_update: |new, _| Errors::of(|errors| check_policy(&At::root(new).get("spec"), errors)),
        ..Rules::none()
    }
}

fn default_policy(policy: &mut Value) {
    let Some(spec) = fill::object(policy, "spec") else { return };
    fill::object(spec, "podSelector");
    for direction in ["ingress", "egress"] {
        fill::each(spec, direction, |rule| {
            fill::each(rule, "ports", |port| fill::absent(port, "protocol", "TCP"));
        });
    }
    if At::root(spec).get("policyTypes").is_empty() {
        let egress = !At::root(spec).get("egress").is_empty();
        let types: &[&str] = if egress { &["Ingress", "Egress"] } else { &["Ingress"] };
        fill::set(spec, "policyTypes", types.to_vec());
    }
}

fn check_policy(spec: &At<'_>, errors: &mut Errors) {
    selector::check(&spec.get("podSelector"), errors);
    for (direction, peers) in [("ingress", "from"), ("egress", "to")] {
        for rule in spec.get(direction).items() {
            for port in rule.get("ports").items() {
                check_policy_port(&port, errors);
            }
            for peer in rule.get(peers).items() {
                check_peer(&peer, errors);
            }
        }
    }
    let types = spec.get("policyTypes");
    if types.len() > 2 {
        errors.invalid(&types, "may not specify more than two policyTypes");
        return;
    }
    for kind in types.items() {
        errors.one_of(&kind, &["Ingress", "Egress"]);
    }
}

fn check_policy_port(item: &At<'_>, errors: &mut Errors) {
    let (port, end, protocol) = (item.get("port"), item.get("endPort"), item.get("protocol"));
    if !matches!(protocol.text(), "TCP" | "UDP" | "SCTP") && protocol.is_set() {
        errors.not_supported(&protocol, &["TCP", "UDP", "SCTP"]);
    }
    if !port.is_set() {
        if end.is_set() {
            errors.invalid(&end, "may not be specified when `port` is not specified");
        }
        return;
    }
    match (port.number(), end.number()) {
        (Some(first), Some(last)) => {
            errors.port(&port);
            if last < first {
                // Up to v1.36 the port is shown, not the end.
                let shown = if version::since(Version::V1_37) { last } else { first };
                errors.invalid_as(&end, shown, "must be greater than or equal to `port`");
            }
            errors.port(&end);
        }
        (Some(_), None) => errors.port(&port),
        (None, last) => {
            if last.is_some() {
                errors.invalid(&end, "may not be specified when `port` is non-numeric");
            }
            check_port(&port, errors);
        }
    }
}

fn check_peer(peer: &At<'_>, errors: &mut Errors) {
    let (pods, namespaces, block) =
        (peer.get("podSelector"), peer.get("namespaceSelector"), peer.get("ipBlock"));
    selector::check(&pods, errors);
    selector::check(&namespaces, errors);
    if block.is_set() {
        check_block(&block, errors);
    }
    let selected = pods.is_set() || namespaces.is_set();
    match (selected, block.is_set()) {
        (false, false) => errors.required(peer, "must specify a peer"),
        (true, true) => errors.forbidden(peer, "may not specify both ipBlock and another peer"),
        _ => {}
    }
}

fn check_block(block: &At<'_>, errors: &mut Errors) {
    let range = block.get("cidr");
    errors.need_text(&range, ip::range);
    let Some(outer) = ip::parse_range(range.text()) else { return };
    for except in block.get("except").items() {
        errors.text(&except, ip::range);
        if let Some(inner) = ip::parse_range(except.text())
            && !is_within(inner, outer)
        {
            errors.invalid(&except, "must be a strict subset of `cidr`");
        }
    }
}

fn is_within(inner: (IpAddr, u8), outer: (IpAddr, u8)) -> bool {
    let shifted = |ip: IpAddr, length: u8| -> Option<u128> {
        let (bits, size) = match ip {
            IpAddr::V4(ip) => (u128::from(ip.to_bits()), 32_u32),
            IpAddr::V6(ip) => (ip.to_bits(), 128),
        };
        Some(bits.checked_shr(size - u32::from(length)).unwrap_or_default())
    };
    inner.0.is_ipv4() == outer.0.is_ipv4()
        && inner.1 > outer.1
        && shifted(inner.0, outer.1) == shifted(outer.0, outer.1)
}

/// The rules of IP addresses, which name themselves.
pub(crate) const fn ip_addresses() -> Rules {
    Rules {
        again: Again::Metadata,
        name: super::NameRule::Address,
        validate: |address| {
            Errors::of(|errors| {
                let address = At::root(address);
                check_parent(&address.dig(&["spec", "parentRef"]), errors);
            })
        },
        validate_update: |new, old| {
            Errors::of(|errors| {
                let parent = ["spec", "parentRef"];
                let (new, old) = (At::root(new).dig(&parent), At::root(old).dig(&parent));
                check_parent(&new, errors);
                if !new.same(&old) {
                    let error = FieldError::invalid(&new.path, Value::Null, "field is immutable");
                    let is_set = new.is_set();
                    errors.push(if is_set {
                        error.printed(Shape::Struct(PARENT).of(new.value))
                    } else {
                        error
                    });
                }
            })
        },
        ..Rules::none()
    }
}

fn check_parent(parent: &At<'_>, errors: &mut Errors) {
    if !parent.is_set() {
        errors.required(parent, "");
        return;
    }
    errors.maybe_text(&parent.get("group"), text::subdomain);
    errors.need_text(&parent.get("resource"), text::path_segment);
    errors.need_text(&parent.get("name"), text::path_segment);
    errors.maybe_text(&parent.get("namespace"), text::path_segment);
}

/// The rules of service CIDRs.
pub(crate) const fn service_cidrs() -> Rules {
    Rules {
        default: |range| {
            fill::object(range, "status");
        },
        prepare_create: |range| fill::set(range, "status", serde_json::json!({})),
        validate: |range| Errors::of(|errors| check_ranges(&At::root(range).dig(&["spec", "cidrs"]), errors)),
        validate_update: |new, old| {
            Errors::of(|errors| {
                let (new, old) =
                    (At::root(new).dig(&["spec", "cidrs"]), At::root(old).dig(&["spec", "cidrs"]));
                // One range may become two.
                let has_grown = new.len() == 2 && old.len() == 1;
                if new.len() != old.len() && !has_grown {
                    errors.invalid(&new, IMMUTABLE);
                    return;
                }
                for (new, old) in new.items().zip(old.items()) {
                    errors.immutable(&new, &old);
                }
                if has_grown {
                    check_ranges(&new, errors);
                }
            })
        },
        ..Rules::none()
    }
}

fn check_ranges(ranges: &At<'_>, errors: &mut Errors) {
    if ranges.is_empty() {
        errors.required(ranges, "at least one CIDR required");
    } else if ranges.len() > 2 {
        let error = FieldError::invalid(&ranges.path, Value::Null, "may only hold up to 2 values");
        errors.push(error.printed(format!("{{\"CIDRs\":{}}}", ranges.value)));
        return;
    }
    for range in ranges.items() {
        errors.text(&range, ip::strict_range);
    }
    let families =
        ranges.items().map(|range| ip::parse_range(range.text()).map(|(address, _)| address.is_ipv4()));
    if let [Some(one), Some(other)] = families.collect::<Vec<_>>()[..]
        && one == other
    {
        let detail =
            "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64";
        errors.invalid(ranges, detail);
    }
}
