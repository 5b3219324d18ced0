//! Endpoints, the older list of a service's addresses.

use serde_json::Value;

use super::super::at::{At, same};
use super::super::errors::Errors;
use super::super::{Again, Rules, fill, ip, text};
use super::{PROTOCOLS, addresses};

pub(crate) const fn rules() -> Rules {
    Rules {
        default,
        again: Again::Metadata,
        validate: |endpoints| Errors::of(|errors| check(&At::root(endpoints).get("subsets"), errors)),
        validate_update: |new, old| {
            // What was stored stays acceptable.
            if same(&new["subsets"], &old["subsets"]) {
                return Vec::new();
            }
            Errors::of(|errors| check(&At::root(new).get("subsets"), errors))
        },
        ..Rules::none()
    }
}

fn default(endpoints: &mut Value) {
    fill::each(endpoints, "subsets", |subset| {
        fill::each(subset, "ports", |port| fill::blank(port, "protocol", "TCP"));
    });
}

fn check(subsets: &At<'_>, errors: &mut Errors) {
    for subset in subsets.items() {
        let lists = ["addresses", "notReadyAddresses"].map(|field| subset.get(field));
        if lists.iter().all(super::super::at::At::is_empty) {
            errors.required(&subset, "must specify `addresses` or `notReadyAddresses`");
        }
        for address in lists.iter().flat_map(At::items) {
            let ip = address.get("ip");
            errors.text(&ip, ip::address);
            errors.maybe_text(&address.get("hostname"), text::label);
            let node = address.get("nodeName");
            if node.is_set() {
                errors.text(&node, text::subdomain);
            }
            // What is no address is told twice (`ValidateEndpointIP`).
            if !ip::is_address(ip.text()) {
                errors.invalid_text(&ip, "must be a valid IP address");
            }
            addresses::check_pod_ip(&ip, errors);
        }
        let ports = subset.get("ports");
        for port in ports.items() {
            if ports.len() > 1 {
                errors.need(&port.get("name"));
            }
            errors.maybe_text(&port.get("name"), text::label);
            errors.port(&port.get("port"));
            errors.need_one_of(&port.get("protocol"), &PROTOCOLS);
            if port.get("appProtocol").is_set() {
                errors.text(&port.get("appProtocol"), text::label_key);
            }
        }
    }
}
