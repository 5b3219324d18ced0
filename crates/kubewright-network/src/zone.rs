//! What a name of the cluster means (Kubernetes' DNS-Based Service Discovery, version 1.1.0).

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};

use crate::services::{Backend, Services};

/// The version of the specification, which `dns-version` is asked for.
const VERSION: &str = "1.1.0";

/// A record of a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) name: String,
    pub(crate) data: Data,
}

/// What a record says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Data {
    Address(IpAddr),
    Alias(String),
    Service { weight: u16, port: u16, target: String },
    Pointer(String),
    Text(String),
}

/// The kinds of records that are asked for and are here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    V4,
    V6,
    Alias,
    Service,
    Pointer,
    Text,
    Any,
    /// A kind that no name here has.
    Other,
}

/// What there is to say of a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// Records of what was asked for, and others that will be asked for next.
    Records { answers: Vec<Record>, additional: Vec<Record> },
    /// The name is there, and has nothing of that kind.
    NothingOfKind,
    /// There is no such name.
    NoSuchName,
    /// It is no name of the cluster.
    Elsewhere,
}

/// The names of a cluster.
#[derive(Debug)]
pub(crate) struct Zone {
    /// Its last labels, such as `cluster.local`.
    domain: String,
    namespaces: BTreeSet<String>,
    /// By namespace and name.
    services: BTreeMap<(String, String), Named>,
    /// The names of addresses.
    pointers: BTreeMap<IpAddr, Vec<String>>,
}

/// What the name of a Service means.
#[derive(Debug)]
enum Named {
    /// Addresses of its own, and its ports.
    Own(Vec<IpAddr>, Vec<Port>),
    /// Those of its endpoints.
    Headless(Vec<Host>),
    /// Another name.
    External(String),
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Port {
    name: String,
    protocol: String,
    number: u16,
}

/// An endpoint with a name below that of its Service.
#[derive(Debug)]
struct Host {
    name: String,
    address: IpAddr,
    ports: Vec<Port>,
}

impl Zone {
    /// The names below `domain`, such as `cluster.local`.
    pub(crate) fn of(services: &Services, domain: &str) -> Self {
        let mut zone = Self {
            domain: domain.to_owned(),
            namespaces: services.namespaces().into_iter().map(ToOwned::to_owned).collect(),
            services: BTreeMap::new(),
            pointers: BTreeMap::new(),
        };
        let backends = services.backends();
        for ((namespace, name), spec) in services.iter() {
            let full = format!("{name}.{namespace}.svc.{domain}");
            let own: Vec<IpAddr> = match spec.cluster_ips.as_deref() {
                Some(addresses) if !addresses.is_empty() => addresses,
                _ => spec.cluster_ip.as_slice(),
            }
            .iter()
            .filter_map(|address| address.parse().ok())
            .collect();
            let named = if spec.type_.as_deref() == Some("ExternalName") {
                let target = spec.external_name.as_deref().unwrap_or_default();
                Named::External(target.trim_end_matches('.').to_ascii_lowercase())
            } else if own.is_empty() {
                let backends = backends.get(&(&**namespace, &**name)).map(Vec::as_slice).unwrap_or_default();
                let hosts: Vec<Host> = backends.iter().filter(|one| one.is_ready()).map(Host::of).collect();
                for host in &hosts {
                    zone.pointers.entry(host.address).or_default().push(format!("{}.{full}", host.name));
                }
                Named::Headless(hosts)
            } else {
                for address in &own {
                    zone.pointers.entry(*address).or_default().push(full.clone());
                }
                let ports = spec.ports.iter().flatten().filter_map(|port| {
                    Some(Port {
                        name: port.name.clone().unwrap_or_default(),
                        protocol: port.protocol.as_deref().unwrap_or("TCP").to_ascii_lowercase(),
                        number: u16::try_from(port.port).ok()?,
                    })
                });
                Named::Own(own, ports.collect())
            };
            zone.services.insert((namespace.clone(), name.clone()), named);
        }
        zone
    }

    /// The last labels of all names.
    pub(crate) fn domain(&self) -> &str {
        &self.domain
    }

    /// What a name means: its labels with points between them, in any case, without the last point.
    pub(crate) fn find(&self, name: &str, wanted: Wanted) -> Answer {
        let lower = name.to_ascii_lowercase();
        if let Some(address) = reversed(&lower) {
            let Some(names) = self.pointers.get(&address) else { return Answer::Elsewhere };
            let records = names.iter().map(|target| Data::Pointer(target.clone())).collect();
            return answered(name, records, wanted, Vec::new());
        }
        let Some(below) = lower.strip_suffix(&self.domain) else { return Answer::Elsewhere };
        let labels: Vec<&str> = match below.strip_suffix('.') {
            Some(below) => below.split('.').collect(),
            None if below.is_empty() => Vec::new(),
            // `notcluster.local`.
            None => return Answer::Elsewhere,
        };
        match labels[..] {
            [] | ["svc" | "pod"] => Answer::NothingOfKind,
            ["dns-version"] => answered(name, vec![Data::Text(VERSION.to_owned())], wanted, Vec::new()),
            [namespace, "svc" | "pod"] if self.namespaces.contains(namespace) => Answer::NothingOfKind,
            [address, _, "pod"] => match dashed(address) {
                Some(address) => answered(name, vec![Data::Address(address.into())], wanted, Vec::new()),
                None => Answer::NoSuchName,
            },
            [ref within @ .., service, namespace, "svc"] => {
                let Some(named) = self.services.get(&(namespace.to_owned(), service.to_owned())) else {
                    return Answer::NoSuchName;
                };
                named.find(name, &format!("{service}.{namespace}.svc.{}", self.domain), within, wanted)
            }
            _ => Answer::NoSuchName,
        }
    }
}

impl Named {
    /// The records of a name: that of the Service, which is `service`, or one below it.
    fn find(&self, name: &str, service: &str, within: &[&str], wanted: Wanted) -> Answer {
        match (self, within) {
            (Self::External(target), []) => {
                let answers = vec![Record { name: name.to_owned(), data: Data::Alias(target.clone()) }];
                match wanted {
                    // An alias stands for all other kinds.
                    Wanted::Other => Answer::NothingOfKind,
                    _ => Answer::Records { answers, additional: Vec::new() },
                }
            }
            (Self::Own(addresses, ports), []) => {
                let mut records: Vec<Data> = addresses.iter().copied().map(Data::Address).collect();
                let services = ports.iter().map(|port| (port, service.to_owned()));
                if wanted == Wanted::Service {
                    records = located(services);
                }
                answered(name, records, wanted, of_host(service, addresses))
            }
            (Self::Own(addresses, ports), [port, protocol]) => {
                let ports = ports.iter().filter(|one| one.is(port, protocol));
                let records = located(ports.map(|port| (port, service.to_owned())));
                found(name, records, wanted, of_host(service, addresses))
            }
            (Self::Headless(hosts), []) => {
                let mut records: Vec<Data> = hosts.iter().map(|host| Data::Address(host.address)).collect();
                if wanted == Wanted::Service {
                    records = located(hosts.iter().flat_map(|host| host.ports(service)));
                }
                found(name, records, wanted, hosts.iter().flat_map(|host| host.records(service)).collect())
            }
            (Self::Headless(hosts), [host]) => {
                let hosts: Vec<&Host> = hosts.iter().filter(|one| one.name == *host).collect();
                let mut records: Vec<Data> = hosts.iter().map(|host| Data::Address(host.address)).collect();
                if wanted == Wanted::Service {
                    records = located(hosts.iter().flat_map(|host| host.ports(service)));
                }
                found(name, records, wanted, Vec::new())
            }
            (Self::Headless(hosts), [port, protocol]) => {
                let ports = || hosts.iter().flat_map(|host| host.ports(service));
                let records = located(ports().filter(|(one, _)| one.is(port, protocol)));
                found(name, records, wanted, hosts.iter().flat_map(|host| host.records(service)).collect())
            }
            _ => Answer::NoSuchName,
        }
    }
}

impl Host {
    fn of(backend: &Backend<'_>) -> Self {
        let name = match backend.endpoint.hostname.as_deref() {
            Some(name) if !name.is_empty() => name.to_owned(),
            _ => backend.address.to_string().replace(['.', ':'], "-"),
        };
        let ports = backend.ports().map(|(name, protocol, number)| Port {
            name: name.to_owned(),
            protocol: protocol.to_ascii_lowercase(),
            number,
        });
        Self { name, address: backend.address, ports: ports.collect() }
    }

    /// Its ports, each with its own name.
    fn ports(&self, service: &str) -> impl Iterator<Item = (&Port, String)> {
        let full = format!("{}.{service}", self.name);
        self.ports.iter().map(move |port| (port, full.clone()))
    }

    fn records(&self, service: &str) -> Vec<Record> {
        of_host(&format!("{}.{service}", self.name), &[self.address])
    }
}

impl Port {
    /// `_http`, `_tcp`.
    fn is(&self, name: &str, protocol: &str) -> bool {
        name.strip_prefix('_') == Some(&self.name) && protocol.strip_prefix('_') == Some(&self.protocol)
    }
}

fn of_host(name: &str, addresses: &[IpAddr]) -> Vec<Record> {
    let record = |address: &IpAddr| Record { name: name.to_owned(), data: Data::Address(*address) };
    addresses.iter().map(record).collect()
}

/// Ports with their hosts: each is asked as often as the others.
fn located<'a>(ports: impl Iterator<Item = (&'a Port, String)>) -> Vec<Data> {
    let mut all: Vec<(u16, String)> = ports.map(|(port, target)| (port.number, target)).collect();
    all.sort();
    all.dedup();
    let weight = u16::try_from(100 / all.len().max(1)).unwrap_or_default().max(1);
    all.into_iter().map(|(port, target)| Data::Service { weight, port, target }).collect()
}

/// As [`answered`], of a name that is there only while it has records.
fn found(name: &str, records: Vec<Data>, wanted: Wanted, additional: Vec<Record>) -> Answer {
    if records.is_empty() { Answer::NoSuchName } else { answered(name, records, wanted, additional) }
}

/// The records of a kind that a name has. Addresses of hosts are told beside their ports alone.
fn answered(name: &str, records: Vec<Data>, wanted: Wanted, additional: Vec<Record>) -> Answer {
    let is_wanted = |data: &Data| {
        matches!(
            (wanted, data),
            (Wanted::Any, _)
                | (Wanted::V4, Data::Address(IpAddr::V4(_)))
                | (Wanted::V6, Data::Address(IpAddr::V6(_)))
                | (Wanted::Service, Data::Service { .. })
                | (Wanted::Pointer, Data::Pointer(_))
                | (Wanted::Text, Data::Text(_))
        )
    };
    let mut answers: Vec<Record> = Vec::new();
    for data in records.into_iter().filter(is_wanted) {
        let record = Record { name: name.to_owned(), data };
        // An endpoint may stand in two slices while it moves from one to the other.
        if !answers.contains(&record) {
            answers.push(record);
        }
    }
    if answers.is_empty() {
        return Answer::NothingOfKind;
    }
    let targets: BTreeSet<&str> = answers
        .iter()
        .filter_map(|record| match &record.data {
            Data::Service { target, .. } => Some(&**target),
            _ => None,
        })
        .collect();
    let mut seen: Vec<Record> = Vec::new();
    for record in additional {
        if targets.contains(&*record.name) && !seen.contains(&record) {
            seen.push(record);
        }
    }
    Answer::Records { answers, additional: seen }
}

/// `4.3.2.1.in-addr.arpa`, as the address that it stands for.
fn reversed(name: &str) -> Option<IpAddr> {
    let address: Ipv4Addr = name.strip_suffix(".in-addr.arpa")?.parse().ok()?;
    let [a, b, c, d] = address.octets();
    Some(Ipv4Addr::new(d, c, b, a).into())
}

/// `1-2-3-4`, as the address that it stands for.
fn dashed(label: &str) -> Option<Ipv4Addr> {
    label.replace('-', ".").parse().ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::fixture::{endpoint, service, services, slice};

    fn zone() -> Zone {
        let mut named = endpoint("127.64.0.1", true);
        named["hostname"] = json!("db-0");
        let all = services([
            service(
                "web",
                json!({"clusterIP": "127.128.0.9", "clusterIPs": ["127.128.0.9"],
                "ports": [{"name": "http", "port": 80}, {"name": "dns", "port": 53, "protocol": "UDP"}]}),
            ),
            service(
                "db",
                json!({"clusterIP": "None", "clusterIPs": ["None"], "ports": [{"name": "sql", "port": 5432}]}),
            ),
            slice(
                "db",
                json!([named, endpoint("127.64.0.2", true), endpoint("127.64.0.3", false)]),
                json!([{"name": "sql", "port": 5432, "protocol": "TCP"}]),
            ),
            service("none", json!({"clusterIP": "None"})),
            service("out", json!({"type": "ExternalName", "externalName": "Example.org."})),
        ]);
        Zone::of(&all, "cluster.local")
    }

    /// The answers as texts.
    fn find(name: &str, wanted: Wanted) -> Vec<String> {
        match zone().find(name, wanted) {
            Answer::Records { answers, .. } => {
                assert!(answers.iter().all(|record| record.name == name), "{answers:?}");
                answers
                    .into_iter()
                    .map(|record| match record.data {
                        Data::Address(address) => address.to_string(),
                        Data::Alias(name) | Data::Pointer(name) | Data::Text(name) => name,
                        Data::Service { weight, port, target } => format!("{weight} {port} {target}"),
                    })
                    .collect()
            }
            other => vec![format!("{other:?}")],
        }
    }

    #[test]
    fn a_service_has_its_address_and_its_ports() {
        assert_eq!(find("web.shop.svc.cluster.local", Wanted::V4), ["127.128.0.9"]);
        assert_eq!(find("WEB.shop.svc.Cluster.local", Wanted::V4), ["127.128.0.9"]);
        assert_eq!(find("web.shop.svc.cluster.local", Wanted::V6), ["NothingOfKind"]);
        assert_eq!(
            find("_http._tcp.web.shop.svc.cluster.local", Wanted::Service),
            ["100 80 web.shop.svc.cluster.local"]
        );
        assert_eq!(
            find("_dns._udp.web.shop.svc.cluster.local", Wanted::Service),
            ["100 53 web.shop.svc.cluster.local"]
        );
        assert_eq!(find("_dns._tcp.web.shop.svc.cluster.local", Wanted::Service), ["NoSuchName"]);
        assert_eq!(find("9.0.128.127.in-addr.arpa", Wanted::Pointer), ["web.shop.svc.cluster.local"]);
    }

    #[test]
    fn a_headless_service_has_the_addresses_of_its_ready_endpoints() {
        assert_eq!(find("db.shop.svc.cluster.local", Wanted::V4), ["127.64.0.1", "127.64.0.2"]);
        assert_eq!(find("db-0.db.shop.svc.cluster.local", Wanted::V4), ["127.64.0.1"]);
        assert_eq!(find("127-64-0-2.db.shop.svc.cluster.local", Wanted::V4), ["127.64.0.2"]);
        assert_eq!(find("127-64-0-3.db.shop.svc.cluster.local", Wanted::V4), ["NoSuchName"]);
        assert_eq!(
            find("_sql._tcp.db.shop.svc.cluster.local", Wanted::Service),
            ["50 5432 127-64-0-2.db.shop.svc.cluster.local", "50 5432 db-0.db.shop.svc.cluster.local"]
        );
        assert_eq!(find("1.0.64.127.in-addr.arpa", Wanted::Pointer), ["db-0.db.shop.svc.cluster.local"]);
        assert_eq!(
            find("none.shop.svc.cluster.local", Wanted::V4),
            ["NoSuchName"],
            "as the specification has it"
        );
    }

    #[test]
    fn the_hosts_of_ports_are_told_beside_them() {
        let Answer::Records { additional, .. } =
            zone().find("_sql._tcp.db.shop.svc.cluster.local", Wanted::Service)
        else {
            panic!("no records");
        };
        let addresses: Vec<&str> = additional.iter().map(|record| &*record.name).collect();
        assert_eq!(addresses, ["db-0.db.shop.svc.cluster.local", "127-64-0-2.db.shop.svc.cluster.local"]);
    }

    #[test]
    fn an_external_name_is_an_alias() {
        assert_eq!(find("out.shop.svc.cluster.local", Wanted::V4), ["example.org"]);
        assert_eq!(find("out.shop.svc.cluster.local", Wanted::Alias), ["example.org"]);
        assert_eq!(find("a.out.shop.svc.cluster.local", Wanted::V4), ["NoSuchName"]);
    }

    #[test]
    fn other_names_of_the_cluster_are_known_or_not() {
        for (name, wanted, expected) in [
            ("cluster.local", Wanted::V4, "NothingOfKind"),
            ("svc.cluster.local", Wanted::V4, "NothingOfKind"),
            ("shop.svc.cluster.local", Wanted::V4, "NothingOfKind"),
            ("nobody.svc.cluster.local", Wanted::V4, "NoSuchName"),
            ("a.b.c.cluster.local", Wanted::V4, "NoSuchName"),
            ("gone.shop.svc.cluster.local", Wanted::V4, "NoSuchName"),
            ("notcluster.local", Wanted::V4, "Elsewhere"),
            ("example.org", Wanted::V4, "Elsewhere"),
            ("8.8.8.8.in-addr.arpa", Wanted::Pointer, "Elsewhere"),
            ("dns-version.cluster.local", Wanted::Text, VERSION),
            ("127-64-0-1.shop.pod.cluster.local", Wanted::V4, "127.64.0.1"),
            ("web.shop.pod.cluster.local", Wanted::V4, "NoSuchName"),
            ("web.shop.svc.cluster.local", Wanted::Other, "NothingOfKind"),
        ] {
            assert_eq!(find(name, wanted), [expected], "{name}");
        }
    }
}
