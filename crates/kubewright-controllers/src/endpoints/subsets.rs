//! The canonical form of the subsets of Endpoints (`pkg/api/v1/endpoints/util.go`, `RepackSubsets`): each address
//! stands with all its ports, and addresses with the same ports stand together.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{EndpointAddress, EndpointPort, EndpointSubset};

/// More addresses than this are not written.
const CAPACITY: usize = 1000;

/// One address at one port; without a port when its Service has none.
#[derive(Clone, Debug)]
pub(crate) struct SubsetMember {
    pub(crate) address: EndpointAddress,
    pub(crate) port: Option<EndpointPort>,
    pub(crate) ready: bool,
}

/// An address may be that of several pods (they share the network of their node).
type Identity = (String, Option<String>);

/// A port in an order: by name, then number. `None` is no port.
type Port = Option<(Option<String>, i32, Option<String>, Option<String>)>;

/// The members as subsets, sorted by their ports and addresses. Who is not ready at a port once is not ready there.
pub(crate) fn pack(members: impl IntoIterator<Item = SubsetMember>) -> Vec<EndpointSubset> {
    let mut addresses: BTreeMap<Identity, EndpointAddress> = BTreeMap::new();
    let mut at_port: BTreeMap<Port, BTreeMap<Identity, bool>> = BTreeMap::new();
    for SubsetMember { address, port, ready } in members {
        let identity = (address.ip.clone(), address.target_ref.as_ref().and_then(|pod| pod.uid.clone()));
        addresses.entry(identity.clone()).or_insert(address);
        let port = port.map(|port| (port.name, port.port, port.protocol, port.app_protocol));
        let at_port = at_port.entry(port).or_default().entry(identity).or_insert(true);
        *at_port &= ready;
    }
    let mut ports: BTreeMap<BTreeMap<Identity, bool>, Vec<EndpointPort>> = BTreeMap::new();
    for (port, members) in at_port {
        let port = port.map(|(name, port, protocol, app_protocol)| EndpointPort {
            app_protocol,
            name,
            port,
            protocol,
        });
        ports.entry(members).or_default().extend(port);
    }
    let pick = |members: &BTreeMap<Identity, bool>, wanted: bool| {
        let picked = members.iter().filter(|(_, ready)| **ready == wanted);
        let picked: Vec<_> = picked.filter_map(|(identity, _)| addresses.get(identity).cloned()).collect();
        (!picked.is_empty()).then_some(picked)
    };
    ports
        .into_iter()
        .map(|(members, ports)| EndpointSubset {
            addresses: pick(&members, true),
            not_ready_addresses: pick(&members, false),
            ports: (!ports.is_empty()).then_some(ports),
        })
        .collect()
}

/// The members of these subsets.
pub(crate) fn unpack(subsets: &[EndpointSubset]) -> Vec<SubsetMember> {
    let mut members = Vec::new();
    for subset in subsets {
        let mut ports: Vec<_> = subset.ports.iter().flatten().cloned().map(Some).collect();
        if ports.is_empty() {
            ports.push(None);
        }
        for port in &ports {
            let with = |address: &EndpointAddress, ready| SubsetMember {
                address: address.clone(),
                port: port.clone(),
                ready,
            };
            members.extend(subset.addresses.iter().flatten().map(|address| with(address, true)));
            members.extend(subset.not_ready_addresses.iter().flatten().map(|address| with(address, false)));
        }
    }
    members
}

/// Leaves out what is too much, those that are not ready first, in proportion from each subset. Whether it was too much.
pub(crate) fn truncate(subsets: &mut [EndpointSubset]) -> bool {
    let count = |list: &Option<Vec<EndpointAddress>>| list.as_ref().map_or(0, Vec::len);
    let ready: usize = subsets.iter().map(|subset| count(&subset.addresses)).sum();
    let unready: usize = subsets.iter().map(|subset| count(&subset.not_ready_addresses)).sum();
    if ready + unready <= CAPACITY {
        return false;
    }
    let (room, total) = if ready > CAPACITY { (CAPACITY, ready) } else { (CAPACITY - ready, unready) };
    let mut left = room;
    for subset in subsets {
        let list = if ready > CAPACITY {
            subset.not_ready_addresses = None;
            &mut subset.addresses
        } else {
            &mut subset.not_ready_addresses
        };
        let share = (count(list) * room).div_ceil(total).min(left);
        if let Some(addresses) = list {
            addresses.truncate(share);
            left -= addresses.len();
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn member(ip: &str, port: Option<i32>, ready: bool) -> SubsetMember {
        SubsetMember {
            address: EndpointAddress { ip: ip.into(), ..EndpointAddress::default() },
            port: port.map(|port| EndpointPort { port, ..EndpointPort::default() }),
            ready,
        }
    }

    fn packed(members: &[SubsetMember]) -> Value {
        json!(pack(members.iter().cloned()))
    }

    #[test]
    fn addresses_with_the_same_ports_stand_together() {
        let members = [
            member("10.0.0.2", Some(80), true),
            member("10.0.0.1", Some(80), true),
            member("10.0.0.1", Some(90), true),
            member("10.0.0.2", Some(90), true),
        ];
        assert_eq!(
            packed(&members),
            json!([{"addresses": [{"ip": "10.0.0.1"}, {"ip": "10.0.0.2"}], "ports": [{"port": 80}, {"port": 90}]}])
        );
    }

    #[test]
    fn addresses_with_other_ports_stand_apart() {
        let members = [member("10.0.0.1", Some(80), true), member("10.0.0.2", Some(90), false)];
        assert_eq!(
            packed(&members),
            json!([{"addresses": [{"ip": "10.0.0.1"}], "ports": [{"port": 80}]},
                {"notReadyAddresses": [{"ip": "10.0.0.2"}], "ports": [{"port": 90}]}])
        );
    }

    #[test]
    fn not_ready_once_is_not_ready() {
        let members = [member("10.0.0.1", None, true), member("10.0.0.1", None, false)];
        assert_eq!(packed(&members), json!([{"notReadyAddresses": [{"ip": "10.0.0.1"}]}]));
    }

    #[test]
    fn packing_what_was_packed_changes_nothing() {
        let members: Vec<_> = (0..40)
            .map(|at| member(&format!("10.0.0.{}", at % 7), (at % 3 > 0).then_some(at % 5 + 1), at % 2 == 0))
            .collect();
        let once = pack(members);
        assert_eq!(pack(unpack(&once)), once);
    }

    #[test]
    fn too_many_addresses_lose_those_that_are_not_ready_first() {
        let many = |ready: usize, unready: usize| {
            let at = |at: usize| format!("10.{}.{}.1", at / 250, at % 250);
            pack((0..ready + unready).map(|n| member(&at(n), Some(80), n < ready)))
        };
        let mut fits = many(600, 400);
        assert!(!truncate(&mut fits));
        let mut subsets = many(700, 400);
        assert!(truncate(&mut subsets));
        let count = |list: &Option<Vec<EndpointAddress>>| list.as_ref().map_or(0, Vec::len);
        assert_eq!((count(&subsets[0].addresses), count(&subsets[0].not_ready_addresses)), (700, 300));
        let mut subsets = many(1500, 10);
        assert!(truncate(&mut subsets));
        assert_eq!((count(&subsets[0].addresses), count(&subsets[0].not_ready_addresses)), (1000, 0));
    }
}
