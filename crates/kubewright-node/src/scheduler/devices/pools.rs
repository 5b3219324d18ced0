//! Pools of devices, as a node sees them (`pools_*.go` of `k8s.io/dynamic-resource-allocation/structured`).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::api::core::v1::NodeSelector;
use kubewright_meta::quantity::Quantity;
use kubewright_objects::devices::ResourceSlice;
use serde_json::Value;

use super::allocated::Allocated;
use crate::selection::{NodeInfo, is_one_of};

/// What identifies a device: its driver, pool and name.
pub(super) type DeviceId<'a> = [&'a str; 3];

/// Counters of a pool: what is left of each, by set and name.
type Counters<'a> = BTreeMap<(&'a str, &'a str), Quantity>;

/// A pool of which a node can use devices.
#[derive(Debug)]
pub(super) struct Pool<'a> {
    pub(super) driver: &'a str,
    pub(super) name: &'a str,
    pub(super) state: PoolState,
    /// What is left of its counters, beside what is allocated.
    pub(super) counters: Counters<'a>,
}

/// Whether all slices of a pool are there, and make sense.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PoolState {
    Usable,
    Incomplete,
    Invalid,
}

/// A device that a node can use.
#[derive(Clone, Copy, Debug)]
pub(super) struct Device<'a> {
    /// Its pool, by its place among those of the node.
    pub(super) pool: usize,
    pub(super) id: DeviceId<'a>,
    pub(super) device: &'a Value,
    /// The spec of its slice.
    pub(super) slice: &'a Value,
}

/// The pools, by driver and name, and the devices of those that are usable.
#[derive(Debug, Default)]
pub(super) struct Pools<'a> {
    pub(super) pools: Vec<Pool<'a>>,
    pub(super) devices: Vec<Device<'a>>,
}

fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn list<'a>(value: &'a Value, field: &str) -> &'a [Value] {
    value.get(field).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn number(spec: &Value, pointer: &str) -> i64 {
    spec.pointer(pointer).and_then(Value::as_i64).unwrap_or_default()
}

/// Whether what a slice or a device says of nodes means this one; nothing where it says nothing.
fn names_node(part: &Value, node: NodeInfo<'_>) -> Option<bool> {
    let name = text(part, "/nodeName");
    if !name.is_empty() {
        return Some(name == node.name);
    }
    if part["allNodes"] == true {
        return Some(true);
    }
    let selector = part.get("nodeSelector").filter(|selector| !selector.is_null())?;
    let selector: NodeSelector = kubewright_objects::from_value(selector).ok()?;
    Some(is_one_of(&selector.node_selector_terms, node))
}

/// Whether a node can use a device of a slice that leaves it to each of them.
fn device_is_on(device: &Value, node: NodeInfo<'_>) -> bool {
    names_node(device, node).unwrap_or_default()
}

/// Whether a slice matters for a node.
fn matters(spec: &Value, node: NodeInfo<'_>) -> bool {
    !list(spec, "sharedCounters").is_empty()
        || names_node(spec, node).unwrap_or_else(|| {
            spec["perDeviceNodeSelection"] == true
                && list(spec, "devices").iter().any(|device| device_is_on(device, node))
        })
}

impl<'a> Pools<'a> {
    /// Those of a node.
    pub(super) fn of(slices: &'a [Arc<ResourceSlice>], node: NodeInfo<'_>, allocated: &Allocated) -> Self {
        let mut all: BTreeMap<(&str, &str), Vec<&'a Value>> = BTreeMap::new();
        for spec in slices.iter().map(|slice| &slice.spec) {
            all.entry((text(spec, "/driver"), text(spec, "/pool/name"))).or_default().push(spec);
        }
        let mut pools = Self::default();
        for ((driver, name), specs) in all {
            let newest =
                |specs: &[&'a Value]| specs.iter().map(|spec| number(spec, "/pool/generation")).max();
            let relevant: Vec<&'a Value> = specs.iter().copied().filter(|spec| matters(spec, node)).collect();
            // Where the newer generation has nothing for the node, the older one is on its way out.
            if relevant.is_empty() || newest(&relevant) != newest(&specs) {
                continue;
            }
            let generation = newest(&specs).unwrap_or_default();
            let current = |spec: &&'a Value| number(spec, "/pool/generation") == generation;
            let specs: Vec<&'a Value> = specs.into_iter().filter(current).collect();
            pools.add(driver, name, &specs, node, allocated);
        }
        pools
    }

    fn add(
        &mut self,
        driver: &'a str,
        name: &'a str,
        specs: &[&'a Value],
        node: NodeInfo<'_>,
        allocated: &Allocated,
    ) {
        let wanted = specs.first().map_or(0, |spec| number(spec, "/pool/resourceSliceCount"));
        let is_complete = i64::try_from(specs.len()) == Ok(wanted);
        let counters = counters(driver, name, specs, allocated);
        let state = match (&counters, is_complete) {
            (_, false) => PoolState::Incomplete,
            (None, true) => PoolState::Invalid,
            (Some(_), true) if has_duplicates(specs, node) => PoolState::Invalid,
            (Some(_), true) => PoolState::Usable,
        };
        let pool = self.pools.len();
        self.pools.push(Pool { driver, name, state, counters: counters.unwrap_or_default() });
        if state != PoolState::Usable {
            return;
        }
        for slice in specs.iter().copied().filter(|spec| matters(spec, node)) {
            let per_device = slice["perDeviceNodeSelection"] == true;
            let devices = list(slice, "devices").iter();
            let usable = devices.filter(|device| !per_device || device_is_on(device, node));
            self.devices.extend(usable.map(|device| Device {
                pool,
                id: [driver, name, text(device, "/name")],
                device,
                slice,
            }));
        }
    }
}

fn has_duplicates(specs: &[&Value], node: NodeInfo<'_>) -> bool {
    let mut names = BTreeSet::new();
    let mut all = specs.iter().filter(|spec| matters(spec, node)).flat_map(|spec| list(spec, "devices"));
    all.any(|device| !names.insert(text(device, "/name")))
}

/// What is left of the counters of a pool; nothing where a set is there twice, or a device takes of a counter that is not there.
fn counters<'a>(
    driver: &'a str,
    pool: &'a str,
    specs: &[&'a Value],
    allocated: &Allocated,
) -> Option<Counters<'a>> {
    let mut left = Counters::new();
    let mut sets = BTreeSet::new();
    for set in specs.iter().flat_map(|spec| list(spec, "sharedCounters")) {
        let name = text(set, "/name");
        if !sets.insert(name) {
            return None;
        }
        left.extend(amounts(set).map(|(counter, amount)| ((name, counter), amount)));
    }
    for device in specs.iter().flat_map(|spec| list(spec, "devices")) {
        let is_allocated = allocated.has(&[driver, pool, text(device, "/name")]);
        for (counter, amount) in taken(device) {
            let known = left.get_mut(&counter)?;
            if is_allocated {
                *known = *known - amount;
            }
        }
    }
    Some(left)
}

/// The counters that a device takes of.
pub(super) fn taken(device: &Value) -> impl Iterator<Item = ((&str, &str), Quantity)> {
    list(device, "consumesCounters").iter().flat_map(|taken| {
        let set = text(taken, "/counterSet");
        amounts(taken).map(move |(counter, amount)| ((set, counter), amount))
    })
}

fn amounts(set: &Value) -> impl Iterator<Item = (&str, Quantity)> {
    let counters = set.get("counters").and_then(Value::as_object);
    let amount = |(name, counter): (_, &Value)| Some((name, Quantity::of(&counter["value"])?));
    counters.into_iter().flatten().map(|(name, counter)| (name.as_str(), counter)).filter_map(amount)
}
