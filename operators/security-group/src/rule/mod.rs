//! Rules as Neutron compares them: whatever a rule's spelling, the same rule is the same value.
//!
//! What Neutron takes for the same (`neutron/db/securitygroups_db.py`): names and numbers of protocols, 1-65535 and no ports,
//! `0.0.0.0/0` and no prefix, `192.0.2.7` and `192.0.2.7/32`, `10.1.2.3/16` and `10.1.0.0/16` (which it keeps as two rules).

mod diff;
mod network;

use std::fmt;

pub use diff::{Difference, difference};
pub use network::Network;
use serde_json::{Value, json};

use crate::{
    cloud::FoundRule,
    types::{Direction, EtherType, SecurityGroupRule},
};

/// The protocols that have names, with their numbers (`neutron_lib/constants.py`).
pub const PROTOCOLS: [(&str, u8); 21] = [
    ("tcp", 6),
    ("udp", 17),
    ("icmp", 1),
    ("ah", 51),
    ("dccp", 33),
    ("egp", 8),
    ("esp", 50),
    ("gre", 47),
    ("igmp", 2),
    ("ipv6-encap", 41),
    ("ipv6-frag", 44),
    ("ipv6-icmp", 58),
    ("ipv6-nonxt", 59),
    ("ipv6-opts", 60),
    ("ipv6-route", 43),
    ("ospf", 89),
    ("pgm", 113),
    ("rsvp", 46),
    ("sctp", 132),
    ("udplite", 136),
    ("vrrp", 112),
];
const TCP: u8 = 6;
const ICMP: u8 = 1;
const ICMP_OF_IPV6: u8 = 58;
/// Protocols with ports: TCP, UDP, DCCP, SCTP, UDP-Lite.
const WITH_PORTS: [u8; 5] = [6, 17, 33, 132, 136];

/// What a rule lets through, in the one spelling that is compared.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rule {
    /// Into the servers or out of them.
    pub direction: Direction,
    /// The family of addresses.
    pub ether_type: EtherType,
    /// The protocol's number; none for all.
    pub protocol: Option<u8>,
    /// The ports, or ICMP's type and code; none for all.
    pub range: Option<Range>,
    /// Who.
    pub remote: Remote,
}

/// From a port to a port; of ICMP the type, and the code or all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Range {
    /// The first port, or the type.
    pub min: u16,
    /// The last port, or the code.
    pub max: Option<u16>,
}

/// On the other end.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Remote {
    /// Everybody of the family.
    Everybody,
    /// The addresses of a network.
    Network(Network),
    /// The members of a group, by ID.
    Group(String),
    /// The addresses of an address group, by ID; of rules that others made.
    AddressGroup(String),
}

/// A rule that is wanted, with what is said of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WantedRule {
    /// What it lets through.
    pub rule: Rule,
    /// For people.
    pub description: String,
}

/// Why a rule of a spec cannot be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unfit {
    /// It refers to a SecurityGroup that has no ID (yet).
    NoGroup(String),
    /// It says nothing that the cloud could do; the schema refuses it.
    Nonsense(String),
}

impl Rule {
    /// What `spec` means; `id_of` knows the groups of SecurityGroups by their names.
    ///
    /// # Errors
    /// [`Unfit`].
    pub fn of(spec: &SecurityGroupRule, id_of: impl Fn(&str) -> Option<String>) -> Result<Self, Unfit> {
        let network = match &spec.remote_ip_prefix {
            None => None,
            Some(text) => Some(
                text.parse::<Network>().map_err(|()| Unfit::Nonsense(format!("{text:?} is no network")))?,
            ),
        };
        let ether_type = spec.ether_type.or(network.map(|network| network.ether_type())).unwrap_or_default();
        let protocol = match &spec.protocol {
            None => Some(TCP),
            Some(name) => {
                protocol(name, ether_type).ok_or_else(|| Unfit::Nonsense(format!("no protocol {name:?}")))?
            }
        };
        let remote = match (network, &spec.remote_group_ref) {
            (Some(network), _) => Remote::of(network),
            (None, Some(group)) => {
                Remote::Group(id_of(&group.name).ok_or_else(|| Unfit::NoGroup(group.name.clone()))?)
            }
            (None, None) => return Err(Unfit::Nonsense("neither a prefix nor a group".to_owned())),
        };
        let range = match spec.icmp_type {
            Some(kind) => Some(Range { min: kind.into(), max: spec.icmp_code.map(u16::from) }),
            None => {
                let number = |port: &Option<crate::types::PortNumber>| port.as_ref()?.number();
                let (min, max) = (number(&spec.port_range_min), number(&spec.port_range_max));
                // The later manifests had to name ports: 0 and 0 were all.
                normal_range(protocol, min.filter(|_| (min, max) != (Some(0), Some(0))), max)
            }
        };
        Ok(Self { direction: spec.direction.unwrap_or_default(), ether_type, protocol, range, remote })
    }

    /// What a rule in the cloud means; none if it is of a kind that this operator makes none of.
    #[must_use]
    pub fn found(found: &FoundRule) -> Option<Self> {
        let direction = match found.direction.as_str() {
            "ingress" => Direction::Ingress,
            "egress" => Direction::Egress,
            _ => return None,
        };
        let ether_type = match found.ethertype.as_str() {
            "IPv4" => EtherType::IPv4,
            "IPv6" => EtherType::IPv6,
            _ => return None,
        };
        let protocol = match &found.protocol {
            None => None,
            Some(name) => protocol(name, ether_type)?,
        };
        let remote = match (&found.remote_ip_prefix, &found.remote_group_id, &found.remote_address_group_id) {
            (_, _, Some(id)) => Remote::AddressGroup(id.clone()),
            (_, Some(id), _) => Remote::Group(id.clone()),
            (Some(prefix), ..) => Remote::of(prefix.parse().ok()?),
            (None, None, None) => Remote::Everybody,
        };
        let range = normal_range(protocol, found.port_range_min, found.port_range_max);
        Some(Self { direction, ether_type, protocol, range, remote })
    }

    /// Whether OpenStack gives this rule to each new group: all may leave.
    #[must_use]
    pub fn is_default_egress(&self) -> bool {
        self.direction == Direction::Egress
            && self.protocol.is_none()
            && self.range.is_none()
            && self.remote == Remote::Everybody
    }

    /// The body of the request that makes it in the group `group`.
    #[must_use]
    pub fn body(&self, group: &str, description: &str) -> Value {
        let (prefix, remote_group) = match &self.remote {
            Remote::Everybody => (Some(self.everybody().to_owned()), None),
            Remote::Network(network) => (Some(network.to_string()), None),
            Remote::Group(id) => (None, Some(id)),
            Remote::AddressGroup(_) => (None, None),
        };
        json!({"security_group_rule": {
            "security_group_id": group,
            "direction": self.direction,
            "ethertype": self.ether_type,
            "protocol": self.protocol.map(protocol_name),
            "port_range_min": self.range.map(|range| range.min),
            "port_range_max": self.range.and_then(|range| range.max),
            "remote_ip_prefix": prefix,
            "remote_group_id": remote_group,
            "description": description,
        }})
    }

    /// Who it lets through, for people: empty for what has no network.
    #[must_use]
    pub fn cidr(&self) -> String {
        match &self.remote {
            Remote::Network(network) => network.to_string(),
            Remote::Everybody if self.is_default_egress() => String::new(),
            Remote::Everybody => self.everybody().to_owned(),
            Remote::Group(id) | Remote::AddressGroup(id) => format!("group {id}"),
        }
    }

    /// Its ports, for people: `8888-8888`, and `0-0` for all.
    #[must_use]
    pub fn ports(&self) -> String {
        let range = self.range.unwrap_or(Range { min: 0, max: Some(0) });
        match range.max {
            Some(max) => format!("{}-{max}", range.min),
            None => range.min.to_string(),
        }
    }

    fn everybody(&self) -> &'static str {
        match self.ether_type {
            EtherType::IPv4 => "0.0.0.0/0",
            EtherType::IPv6 => "::/0",
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cidr={}, port={}", self.cidr(), self.ports())
    }
}

impl Remote {
    fn of(network: Network) -> Self {
        if network.is_everybody() { Self::Everybody } else { Self::Network(network) }
    }
}

/// The number of a protocol by name or number, in any case; `Some(None)` for all protocols, `None` for no protocol.
#[expect(clippy::option_option, reason = "all protocols, and no protocol, are different answers")]
fn protocol(name: &str, ether_type: EtherType) -> Option<Option<u8>> {
    let name = name.to_ascii_lowercase();
    if name == "any" {
        return Some(None);
    }
    let named = match name.as_str() {
        "icmpv6" => Some(ICMP_OF_IPV6),
        "ipip" => Some(4),
        "hopopt" => Some(0),
        name => PROTOCOLS.iter().find(|(known, _)| *known == name).map(|(_, number)| *number),
    };
    let number = named.or_else(|| name.parse().ok())?;
    let is_icmp = number == ICMP && ether_type == EtherType::IPv6;
    Some(Some(if is_icmp { ICMP_OF_IPV6 } else { number }))
}

/// The name by which a protocol is asked for, or its number.
fn protocol_name(number: u8) -> String {
    let named = PROTOCOLS.iter().find(|(_, known)| *known == number);
    named.map_or_else(|| number.to_string(), |(name, _)| (*name).to_owned())
}

fn normal_range(protocol: Option<u8>, min: Option<u16>, max: Option<u16>) -> Option<Range> {
    let min = min?;
    match protocol {
        Some(number) if WITH_PORTS.contains(&number) => {
            let (min, max) = (min.max(1), max.unwrap_or(min));
            (min > 1 || max < u16::MAX).then_some(Range { min, max: Some(max) })
        }
        Some(ICMP | ICMP_OF_IPV6) => Some(Range { min, max }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn spec(value: Value) -> SecurityGroupRule {
        kubewright::object::from_value(value).expect("a rule of a spec")
    }

    fn wanted(value: Value) -> Rule {
        Rule::of(&spec(value), |name| Some(format!("id-of-{name}"))).expect("it makes sense")
    }

    fn in_cloud(value: Value) -> Rule {
        let found: FoundRule = kubewright::object::from_value(value).expect("a rule of Neutron");
        Rule::found(&found).expect("it is known")
    }

    /// SG-11: the first generation's rule, whose ports are strings and which says nothing of direction, family and protocol.
    #[test]
    fn sg_11_the_rule_of_the_first_generation_is_ingress_ipv4_tcp() {
        let rule =
            wanted(json!({"portRangeMin": "8888", "portRangeMax": "8888", "remoteIpPrefix": "127.0.0.1/32"}));
        assert_eq!(
            rule,
            in_cloud(json!({
                "id": "1", "direction": "ingress", "ethertype": "IPv4", "protocol": "tcp",
                "port_range_min": 8888, "port_range_max": 8888, "remote_ip_prefix": "127.0.0.1/32",
            }))
        );
        assert_eq!(rule.to_string(), "cidr=127.0.0.1/32, port=8888-8888");
    }

    #[test]
    fn what_neutron_takes_for_the_same_is_the_same() {
        let same = |spec: Value, found: Value| assert_eq!(wanted(spec.clone()), in_cloud(found), "{spec}");
        let found = |protocol: &str, min: Value, max: Value, prefix: Value| {
            json!({"id": "1", "direction": "ingress", "ethertype": "IPv4", "protocol": protocol,
                   "port_range_min": min, "port_range_max": max, "remote_ip_prefix": prefix})
        };
        let all = json!(null);
        same(
            json!({"protocol": "UDP", "portRangeMin": 1, "portRangeMax": 65535, "remoteIpPrefix": "0.0.0.0/0"}),
            found("17", all.clone(), all.clone(), all.clone()),
        );
        same(
            json!({"remoteIpPrefix": "192.0.2.7"}),
            found("TCP", all.clone(), all.clone(), "192.0.2.7/32".into()),
        );
        same(
            json!({"remoteIpPrefix": "10.1.0.0/16"}),
            found("6", all.clone(), all.clone(), "10.1.2.3/16".into()),
        );
        same(
            json!({"protocol": "icmp", "icmpType": 8, "icmpCode": 0, "remoteIpPrefix": "0.0.0.0/0"}),
            found("icmp", 8.into(), 0.into(), all),
        );
    }

    #[test]
    fn icmp_of_ipv6_is_one_protocol_under_all_of_its_names() {
        let of = |name: &str| wanted(json!({"protocol": name, "remoteIpPrefix": "2001:db8::1/64"}));
        assert_eq!(of("icmp"), of("ipv6-icmp"));
        let found = |name: &str| {
            in_cloud(json!({"id": "1", "direction": "ingress", "ethertype": "IPv6", "protocol": name,
                            "remote_ip_prefix": "2001:db8::/64"}))
        };
        for name in ["icmp", "icmpv6", "ipv6-icmp", "58"] {
            assert_eq!(of("icmp"), found(name), "{name}");
        }
    }

    /// SG-11: the later schema asks for ports of every protocol, and its 0 and 0 are none.
    #[test]
    fn sg_11_ports_zero_to_zero_of_the_later_manifests_are_all_ports() {
        for protocol in ["tcp", "icmp", "gre", "any"] {
            let rule = wanted(
                json!({"protocol": protocol, "portRangeMin": 0, "portRangeMax": 0, "remoteIpPrefix": "::/0"}),
            );
            assert_eq!((rule.range, rule.ether_type), (None, EtherType::IPv6), "{protocol}");
        }
    }

    #[test]
    fn a_rule_of_another_group_waits_for_its_id() {
        let rule = spec(json!({"remoteGroupRef": {"name": "web"}}));
        assert_eq!(Rule::of(&rule, |_| None), Err(Unfit::NoGroup("web".to_owned())));
        let rule = Rule::of(&rule, |_| Some("7".to_owned())).expect("it is there");
        assert_eq!(rule.remote, Remote::Group("7".to_owned()));
    }

    proptest! {
        /// What is asked for is found again: nothing is added and deleted for ever.
        #[test]
        fn what_is_sent_is_recognised_when_it_comes_back(
            number in 0..=255u8, v6: bool, out: bool, min in 1..=65535u16, len in 0..=65534u16, ports: bool, bits: u128, mask in 0..=32u8,
        ) {
            let protocol = PROTOCOLS.iter().map(|(_, number)| *number).find(|known| *known == number);
            let ether_type = if v6 { EtherType::IPv6 } else { EtherType::IPv4 };
            let protocol = match protocol { Some(ICMP) if v6 => Some(ICMP_OF_IPV6), other => other };
            let range = normal_range(protocol, ports.then_some(min), Some(min.saturating_add(len)));
            let address = if v6 { std::net::IpAddr::from(bits.to_be_bytes()) } else {
                std::net::IpAddr::from(u32::try_from(bits >> 96).expect("32 bits").to_be_bytes())
            };
            let network: Network = format!("{address}/{mask}").parse().expect("a network");
            let direction = if out { Direction::Egress } else { Direction::Ingress };
            let rule = Rule { direction, ether_type, protocol, range, remote: Remote::of(network) };
            let mut body = rule.body("group", "")["security_group_rule"].take();
            body["id"] = "1".into();
            prop_assert_eq!(in_cloud(body), rule);
        }
    }
}
