//! How fast pods are sent away from the nodes of a zone (`handleDisruption`, `ComputeZoneState` and the queues of
//! `doNoExecuteTaintingPass` in `pkg/controller/nodelifecycle/node_lifecycle_controller.go`): one node after the other,
//! slower or not at all where so many fail at once that it looks like the network.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;
use kubewright_node::facts::is_node_ready;
use parking_lot::Mutex;

/// A zone whose nodes fail by this part at least is partly disrupted (`--unhealthy-zone-threshold`), in hundredths.
const UNHEALTHY_PERCENT: usize = 55;
/// Up to so many nodes a zone is small (`--large-cluster-size-threshold`).
const LARGE: usize = 50;
/// From one node to the next (`--node-eviction-rate`, 0.1 a second).
const PRIMARY: Duration = Duration::from_secs(10);
/// From one node to the next of a large zone that is partly disrupted (`--secondary-node-eviction-rate`, 0.01 a second).
const SECONDARY: Duration = Duration::from_secs(100);
/// How soon the first node is emptied: what fails within one look of kube-controller-manager (`nodeMonitorPeriod`) is
/// seen at once.
const PASS: Duration = Duration::from_secs(5);
/// Nodes with this label do not say how their zone is.
const EXCLUDED: &str = "node.kubernetes.io/exclude-disruption";

/// How fast the nodes of a zone are emptied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rate {
    /// One after each such time.
    Every(Duration),
    /// None, for now.
    Never,
    /// None, and those that are being emptied are left alone: no node of the cluster is ready.
    Halted,
}

/// Region and zone of a node (`GetZoneKey`); both are empty when it tells neither.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Zone {
    region: String,
    zone: String,
}

impl Zone {
    pub(super) fn of(node: &Node) -> Self {
        let label = |names: [&str; 2]| {
            let labels = node.metadata.labels.as_ref();
            let mut found =
                names.iter().filter_map(|name| labels?.get(*name)).filter(|text| !text.is_empty());
            found.next().cloned().unwrap_or_default()
        };
        Self {
            region: label(["topology.kubernetes.io/region", "failure-domain.beta.kubernetes.io/region"]),
            zone: label(["topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone"]),
        }
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Health {
    ready: usize,
    unready: usize,
}

impl Health {
    fn is_all_down(self) -> bool {
        self.ready == 0 && self.unready > 0
    }

    fn rate(self) -> Rate {
        let all = self.ready + self.unready;
        let is_partial =
            !self.is_all_down() && self.unready > 2 && self.unready * 100 >= all * UNHEALTHY_PERCENT;
        match is_partial {
            false => Rate::Every(PRIMARY),
            true if all > LARGE => Rate::Every(SECONDARY),
            true => Rate::Never,
        }
    }
}

/// How fast the nodes of this zone are emptied, among these nodes of the cluster.
pub(super) fn rate(zone: &Zone, nodes: &[Arc<Node>]) -> Rate {
    let mut zones: BTreeMap<Zone, Health> = BTreeMap::new();
    let counts =
        |node: &&Arc<Node>| node.metadata.labels.as_ref().is_none_or(|labels| !labels.contains_key(EXCLUDED));
    for node in nodes.iter().filter(counts) {
        let health = zones.entry(Zone::of(node)).or_default();
        if is_node_ready(node) { health.ready += 1 } else { health.unready += 1 }
    }
    if !zones.is_empty() && zones.values().all(|health| health.is_all_down()) {
        return Rate::Halted;
    }
    zones.get(zone).copied().unwrap_or_default().rate()
}

/// Whose turn it is to be emptied, zone by zone.
#[derive(Debug, Default)]
pub(super) struct EvictionQueues(Mutex<BTreeMap<Zone, EvictionQueue>>);

#[derive(Debug)]
struct EvictionQueue {
    every: Duration,
    /// When the next is free that nobody has.
    free: Timestamp,
    taken: BTreeMap<String, Timestamp>,
}

impl EvictionQueues {
    /// How long until it is this node's turn; zero when it is. It keeps the turn that it was given, as long as its zone goes
    /// on as fast.
    pub(super) fn wait(&self, zone: Zone, node: &str, every: Duration, now: Timestamp) -> Duration {
        let mut lines = self.0.lock();
        let line = lines.entry(zone).or_insert(EvictionQueue { every, free: now, taken: BTreeMap::new() });
        if line.every != every {
            *line = EvictionQueue { every, free: line.free.min(now + every), taken: BTreeMap::new() };
        }
        let turn = match line.taken.remove(node) {
            Some(turn) => turn,
            None => {
                let turn = line.free.max(now + PASS);
                line.free = turn + every;
                turn
            }
        };
        let wait = Duration::try_from(turn.duration_since(now)).unwrap_or_default();
        if !wait.is_zero() {
            line.taken.insert(node.to_owned(), turn);
        }
        wait
    }

    /// The node does not wait any more.
    pub(super) fn leave(&self, node: &str) {
        for line in self.0.lock().values_mut() {
            line.taken.remove(node);
        }
    }
}

#[cfg(test)]
mod tests {
    use kubewright_world::SIMULATION_START as NOW;
    use serde_json::json;

    use super::*;

    fn nodes(zone: &str, ready: usize, unready: usize) -> Vec<Arc<Node>> {
        let node = |status: &str| {
            let node = json!({"metadata": {"labels": {"topology.kubernetes.io/zone": zone}},
                "status": {"conditions": [{"type": "Ready", "status": status}]}});
            Arc::new(kubewright_objects::from_value(node).expect("a node"))
        };
        let ready = std::iter::repeat_with(|| node("True")).take(ready);
        ready.chain(std::iter::repeat_with(|| node("Unknown")).take(unready)).collect()
    }

    fn zone(name: &str) -> Zone {
        Zone { region: String::new(), zone: name.to_owned() }
    }

    fn rate_of(ready: usize, unready: usize) -> Rate {
        // Another zone is well.
        let all = [nodes("a", ready, unready), nodes("b", 1, 0)].concat();
        rate(&zone("a"), &all)
    }

    #[test]
    fn a_zone_that_fails_in_part_is_emptied_slowly_or_not_at_all() {
        assert_eq!(rate_of(1, 1), Rate::Every(PRIMARY));
        assert_eq!(rate_of(1, 2), Rate::Every(PRIMARY), "two are few");
        assert_eq!(rate_of(2, 3), Rate::Never);
        assert_eq!(rate_of(46, 54), Rate::Every(PRIMARY));
        assert_eq!(rate_of(45, 55), Rate::Every(SECONDARY));
        assert_eq!(rate_of(22, 28), Rate::Never);
        assert_eq!(rate_of(22, 29), Rate::Every(SECONDARY));
    }

    #[test]
    fn a_zone_that_fails_as_a_whole_is_emptied_unless_it_is_all_there_is() {
        assert_eq!(rate_of(0, 5), Rate::Every(PRIMARY));
        assert_eq!(rate(&zone("a"), &nodes("a", 0, 5)), Rate::Halted);
        let both = [nodes("a", 0, 5), nodes("b", 0, 1)].concat();
        assert_eq!(rate(&zone("a"), &both), Rate::Halted);
    }

    #[test]
    fn nodes_have_their_turns_one_after_the_other() {
        let turns = EvictionQueues::default();
        let wait = |node: &str, after: u64| {
            turns.wait(zone("a"), node, PRIMARY, NOW + Duration::from_secs(after)).as_secs()
        };
        assert_eq!([wait("one", 0), wait("two", 0), wait("three", 0)], [5, 15, 25]);
        assert_eq!([wait("one", 5), wait("two", 5), wait("three", 5)], [0, 10, 20]);
        assert_eq!([wait("two", 15), wait("four", 15)], [0, 20]);
        turns.leave("three");
        assert_eq!(wait("four", 35), 0);
        assert_eq!(wait("five", 100), 5);
        assert_eq!(turns.wait(zone("b"), "six", PRIMARY, NOW), PASS);
    }

    #[test]
    fn a_zone_that_slows_down_gives_new_turns() {
        let turns = EvictionQueues::default();
        let wait = |node: &str, every: Duration| turns.wait(zone("a"), node, every, NOW).as_secs();
        assert_eq!([wait("one", PRIMARY), wait("two", PRIMARY)], [5, 15]);
        assert_eq!([wait("two", SECONDARY), wait("three", SECONDARY)], [25, 125]);
    }
}
