//! Endpoint slices.

use std::collections::BTreeSet;

use kubewright_meta::object;
use serde_json::Value;

use super::super::at::{At, same};
use super::super::errors::Errors;
use super::super::{Again, Generation, Rules, fill, ip, selector, text};
use super::{PROTOCOLS, addresses};

/// How many there may be of each.
const ENDPOINTS: usize = 1000;
const ADDRESSES: usize = 100;
const PORTS: usize = 20_000;
const HINTS: usize = 8;
const TOPOLOGY: usize = 16;

pub(crate) const fn rules() -> Rules {
    Rules {
        default,
        prepare_create: |slice| drop_topology(slice, None),
        prepare_update: |new, old| drop_topology(new, Some(old)),
        generation: Generation::ContentAndLabels,
        again: Again::Metadata,
        change_again: false,
        validate: |slice| Errors::of(|errors| check(&At::root(slice), true, errors)),
        validate_update: |new, old| {
            Errors::of(|errors| {
                // What was stored stays acceptable.
                check(&At::root(new), !same(&new["endpoints"], &old["endpoints"]), errors);
                errors.immutable(&At::root(new).get("addressType"), &At::root(old).get("addressType"));
            })
        },
        ..Rules::none()
    }
}

fn default(slice: &mut Value) {
    fill::each(slice, "ports", |port| {
        fill::absent(port, "name", "");
        fill::absent(port, "protocol", "TCP");
    });
    fill::each(slice, "endpoints", |endpoint| {
        fill::object(endpoint, "conditions");
    });
}

/// Endpoints that are written have no topology: the zone and the node have fields of their own. A node that was told by the
/// topology stays (`dropTopologyOnV1`).
fn drop_topology(slice: &mut Value, old: Option<&Value>) {
    const NODE: &str = "kubernetes.io/hostname";
    if old.is_some_and(|old| same(&old["endpoints"], &slice["endpoints"])) {
        return;
    }
    if let Some(old) = old {
        // It counts as a change, whatever is dropped of it.
        object::set_meta(slice, "generation", Some((object::generation(old) + 1).into()));
    }
    let told = |endpoint: &At<'_>| endpoint.get("deprecatedTopology").entry(NODE).text().to_owned();
    let known: BTreeSet<String> = old
        .into_iter()
        .flat_map(|old| At::root(old).get("endpoints").items().map(|endpoint| told(&endpoint)))
        .filter(|node| !node.is_empty())
        .collect();
    fill::each(slice, "endpoints", |endpoint| {
        let node = told(&At::root(endpoint));
        if known.contains(&node) && text::subdomain(&node).is_empty() {
            fill::absent(endpoint, "nodeName", node);
        }
        fill::remove(endpoint, "deprecatedTopology");
    });
}

fn check(slice: &At<'_>, endpoints_changed: bool, errors: &mut Errors) {
    let kind = slice.get("addressType");
    errors.need_one_of(&kind, &["FQDN", "IPv4", "IPv6"]);
    check_ports(&slice.get("ports"), errors);
    let endpoints = slice.get("endpoints");
    if !endpoints_changed {
        return;
    }
    if endpoints.len() > ENDPOINTS {
        errors.too_many(&endpoints, endpoints.len(), ENDPOINTS);
        return;
    }
    for endpoint in endpoints.items() {
        check_endpoint(&endpoint, kind.text(), errors);
    }
}

fn check_ports(ports: &At<'_>, errors: &mut Errors) {
    if ports.len() > PORTS {
        errors.too_many(ports, ports.len(), PORTS);
        return;
    }
    let mut names = BTreeSet::new();
    for port in ports.items() {
        let name = port.get("name");
        errors.maybe_text(&name, text::label);
        if !names.insert(name.text()) {
            errors.duplicate(&name);
        }
        errors.one_of(&port.get("protocol"), &PROTOCOLS);
        if port.get("appProtocol").is_set() {
            errors.text(&port.get("appProtocol"), text::label_key);
        }
    }
}

fn check_endpoint(endpoint: &At<'_>, kind: &str, errors: &mut Errors) {
    let list = endpoint.get("addresses");
    if list.is_empty() {
        errors.required(&list, "must contain at least 1 address");
    } else if list.len() > ADDRESSES {
        errors.too_many(&list, list.len(), ADDRESSES);
    }
    for address in list.items() {
        check_address(&list, &address, kind, errors);
    }
    let node = endpoint.get("nodeName");
    if node.is_set() {
        errors.text(&node, text::subdomain);
    }
    let topology = endpoint.get("deprecatedTopology");
    if topology.len() > TOPOLOGY {
        errors.too_many(&topology, topology.len(), TOPOLOGY);
    }
    selector::check_labels(&topology, errors);
    if endpoint.get("hostname").is_set() {
        errors.text(&endpoint.get("hostname"), text::label);
    }
    check_hints(&endpoint.dig(&["hints", "forZones"]), text::label_value, errors);
    check_hints(&endpoint.dig(&["hints", "forNodes"]), text::subdomain, errors);
}

fn check_address(list: &At<'_>, address: &At<'_>, kind: &str, errors: &mut Errors) {
    match kind {
        "IPv4" | "IPv6" => {
            let before = errors.count();
            errors.text(address, if kind == "IPv6" { text::canonical_ip } else { ip::address });
            if errors.count() == before {
                if address.text().contains(':') != (kind == "IPv6") {
                    errors.invalid_as(list, address.text(), format!("must be an {kind} address"));
                }
                addresses::check_pod_ip(address, errors);
            }
        }
        "FQDN" if errors.need(address) => {
            let name = address.text().strip_suffix('.').unwrap_or(address.text());
            let wrong = text::subdomain(name);
            if !wrong.is_empty() {
                errors.invalid_as(address, name, wrong.join(","));
            } else if !name.contains('.') {
                let detail = "should be a domain with at least two segments separated by dots";
                errors.invalid_as(address, name, detail);
            }
        }
        _ => {}
    }
}

fn check_hints(list: &At<'_>, rule: super::super::errors::TextRule, errors: &mut Errors) {
    if list.len() > HINTS {
        errors.too_many(list, list.len(), HINTS);
        return;
    }
    let mut names = BTreeSet::new();
    for name in list.items().map(|hint| hint.get("name")) {
        if !names.insert(name.text()) {
            errors.duplicate(&name);
        }
        errors.text(&name, rule);
    }
}
