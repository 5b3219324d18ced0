//! What is unique in the cluster and chosen by the server: the addresses and node ports of services.
//!
//! The guard that [`Registry::allocate`] gives is held until the commit, so no two services get the same.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;

use serde_json::{Value, json};
use tokio::sync::MutexGuard;

use super::{Registry, encode, object};
use crate::error::ApiError;
use crate::field::FieldError;
use crate::kinds::rules::services;
use crate::kinds::{Kind, Role};

/// The network of service addresses: 10.96.0.0/16.
const NETWORK: Ipv4Addr = Ipv4Addr::new(10, 96, 0, 0);
/// How many addresses it has.
const ADDRESSES: u32 = 1 << 16;
/// The first address is the API server's own service.
pub const API_SERVER: Ipv4Addr = Ipv4Addr::new(10, 96, 0, 1);
/// The node ports, both ends included.
const NODE_PORTS: std::ops::RangeInclusive<u16> = 30_000..=32_767;

impl Registry {
    /// Chooses what `object` has left to the server and checks what it has chosen itself.
    ///
    /// # Errors
    /// 422 for an address or port that is taken or out of range, or when none is left.
    pub(super) async fn allocate(
        &self,
        kind: &Kind,
        object: &mut Value,
        old: Option<&Value>,
    ) -> Result<Option<MutexGuard<'_, ()>>, ApiError> {
        if kind.behaviour.role != Role::Service {
            return Ok(None);
        }
        let wrong = services::validate_cluster_ips(object, old);
        if !wrong.is_empty() {
            return Err(ApiError::invalid(kind, object::name(object), &wrong));
        }
        let guard = self.allocating.lock().await;
        let taken = self.taken(kind, object);
        let mut errors = Vec::new();
        self.allocate_address(object, old, &taken.addresses, &mut errors);
        self.allocate_ports(object, old, &taken.ports, &mut errors);
        if errors.is_empty() {
            Ok(Some(guard))
        } else {
            Err(ApiError::invalid(kind, object::name(object), &errors))
        }
    }

    /// What the other services have.
    fn taken(&self, kind: &Kind, object: &Value) -> Taken {
        let mut taken = Taken::default();
        let uid = object::uid(object);
        for entry in self.snapshot().range(&kind.collection, "", None) {
            let service = encode::value(kind, entry);
            if object::uid(&service) == uid {
                continue;
            }
            let spec = &service["spec"];
            taken
                .addresses
                .extend(spec["clusterIP"].as_str().and_then(|address| address.parse::<Ipv4Addr>().ok()));
            taken.ports.extend(ports(spec).filter_map(|port| port["nodePort"].as_u64()));
        }
        taken
    }

    fn allocate_address(
        &self,
        object: &mut Value,
        old: Option<&Value>,
        taken: &BTreeSet<Ipv4Addr>,
        errors: &mut Vec<FieldError>,
    ) {
        let spec = object::member_mut(object, "spec");
        if spec.get("type").and_then(Value::as_str) == Some("ExternalName") {
            return;
        }
        let kept = old.map_or("", |old| old["spec"]["clusterIP"].as_str().unwrap_or_default());
        let asked = spec.get("clusterIP").and_then(Value::as_str).unwrap_or_default().to_owned();
        let address = match asked.as_str() {
            "" if !kept.is_empty() => kept.to_owned(),
            "" => match self.free_address(taken) {
                Some(address) => address.to_string(),
                None => {
                    return errors.push(FieldError::invalid(
                        "spec.clusterIPs",
                        Value::Null,
                        "failed to allocate IP: range is full",
                    ));
                }
            },
            "None" => asked,
            same if same == kept => asked,
            _ => {
                if let Err(why) = usable(&asked, taken) {
                    let why = format!("failed to allocate IP {asked}: {why}");
                    return errors.push(FieldError::invalid("spec.clusterIPs", json!([asked]), why));
                }
                asked
            }
        };
        spec.insert("clusterIPs".into(), json!([address]));
        spec.insert("clusterIP".into(), address.into());
    }

    fn free_address(&self, taken: &BTreeSet<Ipv4Addr>) -> Option<Ipv4Addr> {
        let usable = ADDRESSES - 2;
        let start = u32::try_from(self.world.dice.below(usable as usize)).unwrap_or(0);
        (0..usable)
            .map(|step| Ipv4Addr::from(u32::from(NETWORK) + 1 + (start + step) % usable))
            .find(|address| *address != API_SERVER && !taken.contains(address))
    }

    fn allocate_ports(
        &self,
        object: &mut Value,
        old: Option<&Value>,
        taken: &BTreeSet<u64>,
        errors: &mut Vec<FieldError>,
    ) {
        let spec = object::member_mut(object, "spec");
        if !matches!(spec.get("type").and_then(Value::as_str), Some("NodePort" | "LoadBalancer"))
            || spec.get("allocateLoadBalancerNodePorts") == Some(&Value::Bool(false))
        {
            return;
        }
        let kept: Vec<Value> = old.map(|old| ports(&old["spec"]).cloned().collect()).unwrap_or_default();
        let mut taken = taken.clone();
        let Some(Value::Array(list)) = spec.get_mut("ports") else { return };
        for (at, port) in list.iter_mut().enumerate() {
            let asked = port["nodePort"].as_u64().filter(|number| *number != 0).or_else(|| {
                let same = |old: &&Value| old["port"] == port["port"] && old["protocol"] == port["protocol"];
                kept.iter().find(same).and_then(|old| old["nodePort"].as_u64())
            });
            let chosen = match asked {
                Some(number) => {
                    let field = format!("spec.ports[{at}].nodePort");
                    if !u16::try_from(number).is_ok_and(|number| NODE_PORTS.contains(&number)) {
                        let why = "provided port is not in the valid range. The range of valid ports is 30000-32767";
                        errors.push(FieldError::invalid(field, number, why));
                        continue;
                    }
                    if taken.contains(&number) {
                        errors.push(FieldError::invalid(field, number, "provided port is already allocated"));
                        continue;
                    }
                    number
                }
                None => match self.free_port(&taken) {
                    Some(number) => number,
                    None => continue,
                },
            };
            taken.insert(chosen);
            object::as_map(port).insert("nodePort".into(), chosen.into());
        }
    }

    fn free_port(&self, taken: &BTreeSet<u64>) -> Option<u64> {
        let count = NODE_PORTS.len();
        let start = self.world.dice.below(count);
        (0..count)
            .map(|step| u64::from(*NODE_PORTS.start()) + ((start + step) % count) as u64)
            .find(|port| !taken.contains(port))
    }
}

#[derive(Default)]
struct Taken {
    addresses: BTreeSet<Ipv4Addr>,
    ports: BTreeSet<u64>,
}

fn ports(spec: &Value) -> impl Iterator<Item = &Value> {
    spec["ports"].as_array().into_iter().flatten()
}

fn usable(text: &str, taken: &BTreeSet<Ipv4Addr>) -> Result<(), String> {
    let address: Ipv4Addr = text.parse().map_err(|_| "it is no IPv4 address".to_owned())?;
    let number = u32::from(address).wrapping_sub(u32::from(NETWORK));
    if number == 0 || number >= ADDRESSES - 1 {
        return Err(format!(
            "the provided IP ({address}) is not in the valid range. The range of valid IPs is {NETWORK}/16"
        ));
    }
    if taken.contains(&address) { Err("provided IP is already allocated".to_owned()) } else { Ok(()) }
}
