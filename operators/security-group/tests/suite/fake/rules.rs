//! Neutron's rules: what it takes, how it writes it, and what it holds for the same.

use std::net::IpAddr;

use http::StatusCode;
use serde_json::{Value, json};

use super::{
    Answer,
    neutron::refused,
    state::{State, bump},
};

const NUMBERS: [(&str, u8); 8] = [
    ("icmp", 1),
    ("tcp", 6),
    ("udp", 17),
    ("dccp", 33),
    ("gre", 47),
    ("ipv6-icmp", 58),
    ("sctp", 132),
    ("udplite", 136),
];

pub(crate) fn of(group: &Value) -> &Vec<Value> {
    group["security_group_rules"].as_array().expect("a group has rules")
}

pub(crate) fn create(state: &mut State, group: &str, wanted: &Value) -> Result<Answer, Answer> {
    let ipv6 = wanted["ethertype"] == "IPv6";
    let protocol = wanted["protocol"].as_str().map(str::to_ascii_lowercase).filter(|name| name != "any");
    let protocol = protocol.map(|name| if name == "icmp" && ipv6 { "ipv6-icmp".to_owned() } else { name });
    let number = protocol.as_deref().map(|name| {
        let known = NUMBERS.iter().find(|(known, _)| *known == name).map(|(_, number)| *number);
        known.or_else(|| name.parse().ok()).unwrap_or(255)
    });
    let (min, max) = ports(number, &wanted["port_range_min"], &wanted["port_range_max"])?;
    let prefix = wanted["remote_ip_prefix"].as_str();
    if prefix.is_some() && wanted["remote_group_id"].is_string() {
        let message = "Only remote_ip_prefix or remote_group_id may be provided.";
        return Err(refused(400, "SecurityGroupMultipleRemoteEntites", message));
    }
    let (prefix, normalized) = match prefix {
        None => (Value::Null, Value::Null),
        Some(text) => {
            let (address, length) = parse(text)
                .ok_or_else(|| refused(400, "HTTPBadRequest", "Invalid input for remote_ip_prefix"))?;
            if address.is_ipv6() != ipv6 {
                let message = format!("Conflicting value ethertype {} for CIDR {text}", wanted["ethertype"]);
                return Err(refused(400, "SecurityGroupRuleParameterConflict", &message));
            }
            (format!("{address}/{length}").into(), format!("{}/{length}", masked(address, length)).into())
        }
    };
    let rule = json!({
        "id": state.id(), "security_group_id": group, "direction": wanted["direction"], "ethertype": wanted["ethertype"],
        "protocol": protocol, "port_range_min": min, "port_range_max": max, "remote_ip_prefix": prefix,
        "normalized_cidr": normalized, "remote_group_id": wanted["remote_group_id"], "remote_address_group_id": null,
        "description": wanted["description"], "revision_number": 0,
    });
    let group = state.groups.get_mut(group).expect("its caller has seen it");
    if let Some(same) = of(group).iter().find(|other| key(other) == key(&rule)) {
        let message = format!("Security group rule already exists. Rule id is {}.", same["id"]);
        return Err(refused(409, "SecurityGroupRuleExists", &message));
    }
    group["security_group_rules"].as_array_mut().expect("a group has rules").push(rule.clone());
    bump(group);
    Ok((StatusCode::CREATED, json!({"security_group_rule": rule})))
}

pub(crate) fn delete(state: &mut State, project: &str, id: &str) -> Result<Answer, Answer> {
    for group in state.groups.values_mut().filter(|group| group["project_id"] == project) {
        let rules = group["security_group_rules"].as_array_mut().expect("a group has rules");
        let before = rules.len();
        rules.retain(|rule| rule["id"] != id);
        if rules.len() < before {
            bump(group);
            return Ok((StatusCode::NO_CONTENT, Value::Null));
        }
    }
    Err(refused(404, "SecurityGroupRuleNotFound", &format!("Security group rule {id} does not exist")))
}

fn ports(number: Option<u8>, min: &Value, max: &Value) -> Result<(Value, Value), Answer> {
    let (low, high) = (min.as_u64(), max.as_u64());
    match number {
        Some(6 | 17 | 33 | 132 | 136) => {
            if low == Some(0) || high == Some(0) {
                return Err(refused(400, "SecurityGroupInvalidPortValue", "Invalid value for port 0"));
            }
            if low.is_some() != high.is_some() || low > high {
                return Err(refused(
                    400,
                    "SecurityGroupInvalidPortRange",
                    "For TCP/UDP protocols, port_range_min must be <= port_range_max",
                ));
            }
            let all = low == Some(1) && high == Some(65535);
            Ok(if all { (Value::Null, Value::Null) } else { (min.clone(), max.clone()) })
        }
        Some(1 | 58) => Ok((min.clone(), max.clone())),
        _ if low.is_some() || high.is_some() => {
            let message = format!("Ports cannot be specified for protocol {}.", number.unwrap_or_default());
            Err(refused(400, "SecurityGroupInvalidProtocolForPort", &message))
        }
        _ => Ok((Value::Null, Value::Null)),
    }
}

/// What makes two rules the same: not the description, not how a protocol is spelt, not that everybody has a network.
fn key(rule: &Value) -> Value {
    let protocol = rule["protocol"].as_str().map(|name| {
        let known = NUMBERS.iter().find(|(known, _)| *known == name);
        known.map_or_else(|| name.to_owned(), |(_, number)| number.to_string())
    });
    let everybody = ["0.0.0.0/0", "::/0"];
    let prefix = rule["remote_ip_prefix"].as_str().filter(|prefix| !everybody.contains(prefix));
    json!([
        rule["direction"],
        rule["ethertype"],
        protocol,
        rule["port_range_min"],
        rule["port_range_max"],
        prefix,
        rule["remote_group_id"]
    ])
}

fn parse(text: &str) -> Option<(IpAddr, u8)> {
    let (address, length) =
        text.split_once('/').map_or((text, None), |(address, length)| (address, Some(length)));
    let address: IpAddr = address.parse().ok()?;
    let longest = if address.is_ipv6() { 128 } else { 32 };
    let length = length.map_or(Some(longest), |length| length.parse().ok())?;
    (length <= longest).then_some((address, length))
}

fn masked(address: IpAddr, length: u8) -> IpAddr {
    let keep =
        |bits: u128, width: u8| if length == 0 { 0 } else { bits >> (width - length) << (width - length) };
    match address {
        IpAddr::V4(address) => {
            let bits = keep(u128::from(address.to_bits()), 32);
            IpAddr::from(u32::try_from(bits).expect("32 bits").to_be_bytes())
        }
        IpAddr::V6(address) => IpAddr::from(keep(address.to_bits(), 128).to_be_bytes()),
    }
}
