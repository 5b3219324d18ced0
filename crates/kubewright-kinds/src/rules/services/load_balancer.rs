//! Where the load balancer of a service is, in its status (`ValidateLoadBalancerStatus`).

use std::collections::BTreeSet;

use kubewright_meta::FieldError;
use serde_json::Value;

use super::super::at::At;
use super::super::errors::Errors;
use super::super::{fill, ip, text};

/// Packets to an address go to the node as they are, unless something else is said.
pub(super) fn default_status(service: &mut Value) {
    if let Some(balancer) = fill::reach(service, &["status", "loadBalancer"]) {
        fill::each(balancer, "ingress", |ingress| {
            if !At::root(ingress).get("ip").is_empty() {
                fill::absent(ingress, "ipMode", "VIP");
            }
        });
    }
}

/// Checks the status that is written.
pub(super) fn validate_status(new: &Value, old: &Value) -> Vec<FieldError> {
    Errors::of(|errors| {
        let (service, before) = (At::root(new), At::root(old));
        let ingress = service.dig(&["status", "loadBalancer", "ingress"]);
        if service.dig(&["spec", "type"]).text() != "LoadBalancer" {
            if !ingress.is_empty() {
                errors.forbidden(&ingress, "may only be used when `spec.type` is 'LoadBalancer'");
            }
            return;
        }
        let known = before.dig(&["status", "loadBalancer", "ingress"]);
        let known: BTreeSet<&str> = known.items().map(|entry| entry.get("ip").text()).collect();
        for entry in ingress.items() {
            check_address(&entry, &known, errors);
            check_hostname(&entry.get("hostname"), errors);
        }
    })
}

/// `known`: the addresses that it had before.
fn check_address(entry: &At<'_>, known: &BTreeSet<&str>, errors: &mut Errors) {
    let (address, mode) = (entry.get("ip"), entry.get("ipMode"));
    if !known.contains(address.text()) {
        errors.maybe_text(&address, ip::address);
    }
    if !mode.is_set() {
        if !address.is_empty() {
            errors.required(&mode, "must be specified when `ip` is set");
        }
    } else if address.is_empty() {
        errors.forbidden(&mode, "may not be specified when `ip` is not set");
    } else {
        errors.one_of(&mode, &["Proxy", "VIP"]);
    }
}

fn check_hostname(hostname: &At<'_>, errors: &mut Errors) {
    errors.maybe_text(hostname, text::subdomain);
    if text::ip(hostname.text()).is_empty() {
        errors.invalid_text(hostname, "must be a DNS name, not an IP address");
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{default_status, validate_status};

    fn service(kind: &str, ingress: &Value) -> Value {
        json!({"spec": {"type": kind}, "status": {"loadBalancer": {"ingress": ingress}}})
    }

    fn said(service: &Value, old: &Value) -> Vec<String> {
        validate_status(service, old)
            .iter()
            .map(|error| format!("{}: {}", error.field, error.body()))
            .collect()
    }

    #[test]
    fn only_a_load_balancer_has_an_address() {
        let other = service("ClusterIP", &json!([{"ip": "192.0.2.1", "ipMode": "VIP"}]));
        assert_eq!(
            said(&other, &Value::Null),
            ["status.loadBalancer.ingress: Forbidden: may only be used when `spec.type` is 'LoadBalancer'"]
        );
        assert_eq!(said(&service("ClusterIP", &json!([])), &Value::Null), [] as [&str; 0]);
    }

    #[test]
    fn an_address_without_a_mode_is_virtual() {
        let mut balancer =
            service("LoadBalancer", &json!([{"ip": "192.0.2.1"}, {"hostname": "a.example.com"}]));
        default_status(&mut balancer);
        let ingress = json!([{"ip": "192.0.2.1", "ipMode": "VIP"}, {"hostname": "a.example.com"}]);
        assert_eq!(balancer["status"]["loadBalancer"]["ingress"], ingress);
        assert_eq!(said(&balancer, &Value::Null), [] as [&str; 0]);
    }

    #[test]
    fn addresses_and_names_are_checked_unless_they_were_there() {
        let bad = service(
            "LoadBalancer",
            &json!([
                {"ip": "x", "ipMode": "Odd"}, {"hostname": "192.0.2.1", "ipMode": "VIP"},
            ]),
        );
        let at = "status.loadBalancer.ingress";
        let address = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
        let mode = format!(r#"{at}[0].ipMode: Unsupported value: "Odd": supported values: "Proxy", "VIP""#);
        let others = [
            format!("{at}[1].ipMode: Forbidden: may not be specified when `ip` is not set"),
            format!(r#"{at}[1].hostname: Invalid value: "192.0.2.1": must be a DNS name, not an IP address"#),
        ];
        let mut all = vec![format!(r#"{at}[0].ip: Invalid value: "x": {address}"#), mode.clone()];
        all.extend(others.clone());
        assert_eq!(said(&bad, &Value::Null), all);
        assert_eq!(said(&bad, &bad), [vec![mode], others.to_vec()].concat());
    }
}
