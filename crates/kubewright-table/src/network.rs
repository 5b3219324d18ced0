//! Services, endpoints, ingresses and policies.

use std::collections::BTreeSet;

use serde_json::Value;

use super::age::age;
use super::column::{NAME, text as column};
use super::printer::Printer;
use super::value::{at, cells, count, items, joined, labels, number, text, text_or, with_more};
use super::workloads::selector;

/// Prints services.
pub const SERVICES: Printer = Printer::new(
    &[
        NAME,
        column("Type"),
        column("Cluster-IP"),
        column("External-IP"),
        column("Port(s)"),
        column("Age"),
        column("Selector").wide(),
    ],
    |service, now| {
        cells![
            text(service, "/metadata/name"),
            text(service, "/spec/type"),
            text_or(service, "/spec/clusterIPs/0", "<none>"),
            external_address(service),
            ports(service),
            age(service, now),
            labels(service, "/spec/selector"),
        ]
    },
);

/// Prints endpoints.
pub const ENDPOINTS: Printer = Printer::new(&[NAME, column("Endpoints"), column("Age")], |endpoints, now| {
    cells![text(endpoints, "/metadata/name"), addresses(endpoints), age(endpoints, now)]
});

/// Prints endpoint slices.
pub const ENDPOINT_SLICES: Printer = Printer::new(
    &[NAME, column("AddressType"), column("Ports"), column("Endpoints"), column("Age")],
    |slice, now| {
        let ports: Vec<String> = items(slice, "/ports").iter().map(slice_port).collect();
        let addresses: Vec<String> = items(slice, "/endpoints")
            .iter()
            .flat_map(|endpoint| items(endpoint, "/addresses"))
            .filter_map(|address| address.as_str().map(str::to_owned))
            .collect();
        let shown = |list: &[String]| match list {
            [] => "<unset>".to_owned(),
            // A port may have neither a number nor a name.
            [one] if one.is_empty() => "<unset>".to_owned(),
            some => with_more(some, MOST, ","),
        };
        cells![
            text(slice, "/metadata/name"),
            text(slice, "/addressType"),
            shown(&ports),
            shown(&addresses),
            age(slice, now),
        ]
    },
);

/// Prints ingresses.
pub const INGRESSES: Printer = Printer::new(
    &[NAME, column("Class"), column("Hosts"), column("Address"), column("Ports"), column("Age")],
    |ingress, now| {
        cells![
            text(ingress, "/metadata/name"),
            at(ingress, "/spec/ingressClassName").and_then(Value::as_str).unwrap_or("<none>"),
            hosts(ingress),
            balancer_addresses(ingress),
            if count(ingress, "/spec/tls") == 0 { "80" } else { "80, 443" },
            age(ingress, now),
        ]
    },
);

/// Prints ingress classes.
pub const INGRESS_CLASSES: Printer =
    Printer::new(&[NAME, column("Controller"), column("Parameters"), column("Age")], |class, now| {
        let default =
            text(class, "/metadata/annotations/ingressclass.kubernetes.io~1is-default-class") == "true";
        let name = text(class, "/metadata/name");
        cells![
            if default { format!("{name} (default)") } else { name.to_owned() },
            text(class, "/spec/controller"),
            at(class, "/spec/parameters").map_or("<none>".to_owned(), parameters),
            age(class, now),
        ]
    });

/// Prints IP addresses.
pub const IP_ADDRESSES: Printer = Printer::new(&[NAME, column("ParentRef")], |address, now| {
    let parent = at(address, "/spec/parentRef").map_or("<none>".to_owned(), parent);
    cells![text(address, "/metadata/name"), parent, age(address, now)]
});

/// Prints network policies.
pub const NETWORK_POLICIES: Printer =
    Printer::new(&[NAME, column("Pod-Selector"), column("Age")], |policy, now| {
        let pods = if at(policy, "/spec/podSelector").is_some() {
            selector(policy, "/spec/podSelector")
        } else {
            "<none>".to_owned()
        };
        cells![text(policy, "/metadata/name"), pods, age(policy, now)]
    });

/// Prints service CIDRs.
pub const SERVICE_CIDRS: Printer = Printer::new(&[NAME, column("CIDRs"), column("Age")], |range, now| {
    cells![text(range, "/metadata/name"), joined(range, "/spec/cidrs", ","), age(range, now)]
});

/// How many items of a list are shown.
const MOST: usize = 3;

fn external_address(service: &Value) -> String {
    let own = joined(service, "/spec/externalIPs", ",");
    match text(service, "/spec/type") {
        "ClusterIP" | "NodePort" if own.is_empty() => "<none>".to_owned(),
        "ClusterIP" | "NodePort" => own,
        "LoadBalancer" => match (balancer_addresses(service), own) {
            (balancer, own) if balancer.is_empty() && own.is_empty() => "<pending>".to_owned(),
            (balancer, own) if balancer.is_empty() || own.is_empty() => balancer + &own,
            (balancer, own) => format!("{balancer},{own}"),
        },
        "ExternalName" => text(service, "/spec/externalName").to_owned(),
        _ => "<unknown>".to_owned(),
    }
}

/// The addresses or host names of a load balancer.
fn balancer_addresses(object: &Value) -> String {
    let addresses: BTreeSet<&str> = items(object, "/status/loadBalancer/ingress")
        .iter()
        .map(|ingress| text_or(ingress, "/ip", text(ingress, "/hostname")))
        .filter(|address| !address.is_empty())
        .collect();
    addresses.into_iter().collect::<Vec<_>>().join(",")
}

fn ports(service: &Value) -> String {
    let shown =
        |port: &Value| match (number(port, "/port"), number(port, "/nodePort"), text(port, "/protocol")) {
            (port, 0, protocol) => format!("{port}/{protocol}"),
            (port, node_port, protocol) => format!("{port}:{node_port}/{protocol}"),
        };
    let ports: Vec<String> = items(service, "/spec/ports").iter().map(shown).collect();
    if ports.is_empty() { "<none>".to_owned() } else { ports.join(",") }
}

/// The ready addresses, with each of their ports.
fn addresses(endpoints: &Value) -> String {
    if count(endpoints, "/subsets") == 0 {
        return "<none>".to_owned();
    }
    let mut list = Vec::new();
    for subset in items(endpoints, "/subsets") {
        let addresses = || items(subset, "/addresses").iter().map(|address| text(address, "/ip"));
        if count(subset, "/ports") == 0 {
            list.extend(addresses().map(str::to_owned));
        }
        for port in items(subset, "/ports") {
            let port = number(port, "/port");
            list.extend(addresses().map(|address| match address.contains(':') {
                true => format!("[{address}]:{port}"),
                false => format!("{address}:{port}"),
            }));
        }
    }
    with_more(&list, MOST, ",")
}

fn slice_port(port: &Value) -> String {
    match (at(port, "/port"), at(port, "/name").and_then(Value::as_str)) {
        (Some(number), _) => number.to_string(),
        (None, Some(name)) => name.to_owned(),
        (None, None) => "*".to_owned(),
    }
}

/// The hosts of the rules: the first three, and how many rules there are beyond three.
fn hosts(ingress: &Value) -> String {
    let rules = items(ingress, "/spec/rules");
    let mut hosts = Vec::new();
    for rule in rules {
        match text(rule, "/host") {
            _ if hosts.len() == MOST => {
                return format!("{} + {} more...", hosts.join(","), rules.len() - MOST);
            }
            "" => {}
            host => hosts.push(host),
        }
    }
    if hosts.is_empty() { "*".to_owned() } else { hosts.join(",") }
}

fn parameters(reference: &Value) -> String {
    let kind = text(reference, "/kind");
    let kind = match at(reference, "/apiGroup").and_then(Value::as_str) {
        Some(group) => format!("{kind}.{group}"),
        None => kind.to_owned(),
    };
    format!("{kind}/{}", text(reference, "/name"))
}

fn parent(reference: &Value) -> String {
    let resource = match text(reference, "/group") {
        "" => text(reference, "/resource").to_owned(),
        group => format!("{}.{group}", text(reference, "/resource")),
    };
    let namespace = match text(reference, "/namespace") {
        "" => String::new(),
        namespace => format!("/{namespace}"),
    };
    format!("{}{namespace}/{}", resource.to_lowercase(), text(reference, "/name"))
}

#[cfg(test)]
#[expect(clippy::needless_pass_by_value, reason = "literals read better than references to them")]
mod tests {
    use jiff::Timestamp;
    use serde_json::json;

    use super::*;

    fn service(spec: Value, status: Value) -> Vec<Value> {
        let service = json!({"metadata": {"name": "a"}, "spec": spec, "status": status});
        (SERVICES.cells)(&service, Timestamp::UNIX_EPOCH)
    }

    #[test]
    fn a_service_shows_its_addresses_and_ports() {
        let ports =
            json!([{"port": 80, "protocol": "TCP"}, {"port": 53, "protocol": "UDP", "nodePort": 30053}]);
        let spec =
            json!({"type": "NodePort", "clusterIPs": ["10.0.0.1"], "ports": ports, "selector": {"a": "b"}});
        assert_eq!(
            service(spec, Value::Null),
            cells!["a", "NodePort", "10.0.0.1", "<none>", "80/TCP,53:30053/UDP", "<unknown>", "a=b"]
        );
        let external = json!({"type": "ExternalName", "externalName": "example.com"});
        assert_eq!(service(external, Value::Null)[2..5], cells!["<none>", "example.com", "<none>"]);
    }

    #[test]
    fn a_load_balancer_is_pending_until_it_has_an_address() {
        let external = |spec: Value, status: Value| service(spec, status)[3].clone();
        let spec = json!({"type": "LoadBalancer"});
        let status = json!({"loadBalancer": {"ingress": [{"hostname": "h"}, {"ip": "192.0.2.1"}]}});
        assert_eq!(external(spec.clone(), Value::Null), "<pending>");
        assert_eq!(external(spec, status.clone()), "192.0.2.1,h");
        let with_own = json!({"type": "LoadBalancer", "externalIPs": ["192.0.2.9"]});
        assert_eq!(external(with_own.clone(), Value::Null), "192.0.2.9");
        assert_eq!(external(with_own, status), "192.0.2.1,h,192.0.2.9");
    }

    #[test]
    fn long_lists_are_cut() {
        let ips = ["10.0.0.1", "10.0.0.2", "::1"].map(|ip| json!({"ip": ip}));
        let endpoints = json!({"subsets": [{"addresses": ips, "ports": [{"port": 80}, {"port": 81}]}]});
        assert_eq!(addresses(&endpoints), "10.0.0.1:80,10.0.0.2:80,[::1]:80 + 3 more...");
        assert_eq!(addresses(&json!({"subsets": [{"addresses": ips}]})), "10.0.0.1,10.0.0.2,::1");
        assert_eq!(addresses(&json!({})), "<none>");
        let rules = |hosts: &[&str]| {
            let rules: Vec<Value> = hosts.iter().map(|host| json!({"host": host})).collect();
            super::hosts(&json!({"spec": {"rules": rules}}))
        };
        assert_eq!(rules(&["a", "b", "c"]), "a,b,c");
        assert_eq!(rules(&["a", "b", "c", "d", "e"]), "a,b,c + 2 more...");
        assert_eq!(rules(&[""]), "*");
    }

    #[test]
    fn a_slice_shows_ports_and_endpoints() {
        let slice = json!({
            "metadata": {"name": "s"},
            "addressType": "IPv4",
            "ports": [{"port": 80}, {"name": "any"}, {}],
            "endpoints": [{"addresses": ["192.0.2.10"]}],
        });
        assert_eq!(
            (ENDPOINT_SLICES.cells)(&slice, Timestamp::UNIX_EPOCH),
            cells!["s", "IPv4", "80,any,*", "192.0.2.10", "<unknown>"]
        );
        assert_eq!(
            (ENDPOINT_SLICES.cells)(&json!({}), Timestamp::UNIX_EPOCH)[2..4],
            cells!["<unset>", "<unset>"]
        );
    }

    #[test]
    fn references_are_told_in_full() {
        let class = json!({
            "metadata": {"name": "c", "annotations": {"ingressclass.kubernetes.io/is-default-class": "true"}},
            "spec": {"controller": "x", "parameters": {"apiGroup": "g", "kind": "K", "name": "n"}},
        });
        assert_eq!(
            (INGRESS_CLASSES.cells)(&class, Timestamp::UNIX_EPOCH)[..3],
            cells!["c (default)", "x", "K.g/n"]
        );
        let address = json!({"spec": {"parentRef": {"resource": "services", "namespace": "d", "name": "k"}}});
        assert_eq!((IP_ADDRESSES.cells)(&address, Timestamp::UNIX_EPOCH)[1], "services/d/k");
    }
}
