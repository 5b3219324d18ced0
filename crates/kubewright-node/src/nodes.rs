//! Simulated nodes: some are there from the start, and every Node that somebody creates becomes one.
//!
//! A node without a `Ready` condition, or of which nobody knows how it is, gets the status of a healthy one; what
//! somebody else says about it stays. Each has a Lease, as a kubelet has. A kubelet renews it every ten seconds, which
//! would be three million writes in a simulated year; here it is once a day, and the lease says so
//! (`leaseDurationSeconds` is four times that, the kubelet's proportion).

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use futures::{Stream, StreamExt, stream};
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, OwnerReference, Time};
use kube::Api;
use kube::api::ObjectMeta;
use kubewright_meta::duration;
use kubewright_meta::well_known::{KUBELET_STOPPED, MAX_GRACE_PERIOD, NODE_ANNOTATION, PROBE_DELAYS_IGNORED};
use kubewright_runtime::{Context, Controller, Error, Event, Key, Outcome, Predicate, Reconciler};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::{mpsc::UnboundedReceiver, watch};

use crate::addresses::Pool;
use crate::facts::node_readiness;
use crate::managed::Managed;
use crate::pods;
use crate::stages::{Addresses, Cue, Stages};

/// How often a node renews its lease.
const HEARTBEAT: Duration = Duration::from_secs(24 * 60 * 60);
/// A lease that was not renewed for this long is over.
const LEASE_SECONDS: i32 = 4 * 24 * 60 * 60;
/// How many nodes are worked on at a time.
const WORKERS: usize = 4;
/// Where the leases of nodes are.
const LEASES: &str = "kube-node-lease";

/// How long the last lease of a stopped node lasts: as long as any kubelet's.
const LAST_LEASE_SECONDS: i32 = 40;

/// The controller; `count` nodes, `node-0` and so on, are there from the start unless they exist already. One that is
/// deleted later stays away, but for a reset of the cluster, after which they are made again.
pub(crate) fn controller(
    count: usize,
    managed: Managed,
    stages: Stages,
    woken_by_stages: UnboundedReceiver<Key>,
    resets: Option<watch::Receiver<u64>>,
) -> Controller {
    let names: Vec<_> = (0..count).map(|index| format!("node-{index}")).collect();
    let keys: Vec<_> = names.iter().map(Key::cluster_scoped).collect();
    let unregistered = Arc::new(Mutex::new(names.into_iter().map(|name| (name, 0)).collect()));
    let again = again(keys.clone(), Arc::clone(&unregistered), resets);
    let all_matter = stages.clone();
    let keeper = NodeReconciler {
        managed,
        stages,
        unregistered,
        heartbeats: Mutex::default(),
        addresses: Mutex::new(Pool::of_nodes()),
    };
    Controller::new("simulated-nodes", keeper)
        .source(stream::iter(keys).chain(again))
        .source(pods::keys(woken_by_stages))
        .for_kind::<Node>()
        .predicate(Predicate::of(move |event: &Event<'_, Node>| match event {
            Event::Update { old, new } => {
                needs_status(new)
                    || allocatable_of_extended(new).is_some()
                    || old.metadata.annotations != new.metadata.annotations
                    || all_matter.has_for("Node")
            }
            Event::Create(_) | Event::Delete(_) | Event::Generic(_) => true,
        }))
        .concurrency(WORKERS)
}

/// The node's address inside the cluster.
pub(crate) fn address(node: &Node) -> Option<Ipv4Addr> {
    let addresses = node.status.as_ref()?.addresses.as_ref()?;
    addresses.iter().find(|address| address.type_ == "InternalIP")?.address.parse().ok()
}

/// Whether the node's kubelet was stopped, by an annotation.
pub(crate) fn is_stopped(node: &Node) -> bool {
    says(node, KUBELET_STOPPED)
}

/// What the kubelet of a node waits for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waits {
    /// Pods get ready when the first delays of their readiness probes are over, and not as soon as they run.
    pub(crate) for_probes: bool,
    /// Pods that are deleted are given no more than this to end.
    pub(crate) for_ends: Duration,
}

impl Waits {
    pub(crate) fn of(node: &Node) -> Self {
        let longest = annotation(node, MAX_GRACE_PERIOD).and_then(duration::parse_positive);
        Self { for_probes: !says(node, PROBE_DELAYS_IGNORED), for_ends: longest.unwrap_or(Duration::MAX) }
    }
}

fn says(node: &Node, (name, value): (&str, &str)) -> bool {
    annotation(node, name) == Some(value)
}

fn annotation<'a>(node: &'a Node, name: &str) -> Option<&'a str> {
    node.metadata.annotations.as_ref()?.get(name).map(String::as_str)
}

struct NodeReconciler {
    managed: Managed,
    stages: Stages,
    unregistered: Arc<Mutex<Unregistered>>,
    /// When each node last renewed its lease.
    heartbeats: Mutex<BTreeMap<Key, Timestamp>>,
    addresses: Mutex<Pool>,
}

/// The nodes that are still to be created, each with the revision up to which what there is of it is of before.
type Unregistered = BTreeMap<String, u64>;

/// After each reset the nodes that are to be created again.
fn again(
    keys: Vec<Key>,
    unregistered: Arc<Mutex<Unregistered>>,
    resets: Option<watch::Receiver<u64>>,
) -> impl Stream<Item = Key> {
    let each = stream::unfold(resets, |resets| async {
        let mut resets = resets?;
        resets.changed().await.ok()?;
        let since = *resets.borrow_and_update();
        Some((since, Some(resets)))
    });
    each.flat_map(move |since| {
        unregistered.lock().extend(keys.iter().map(|key| (key.name.clone(), since)));
        stream::iter(keys.clone())
    })
}

impl Reconciler for NodeReconciler {
    async fn reconcile(&self, ctx: &Context, key: &Key) -> Result<Outcome, Error> {
        let now = ctx.world().clock.now();
        let node = match ctx.get::<Node>(key) {
            Some(node) => {
                self.is_registered(&node);
                node
            }
            None => {
                self.heartbeats.lock().remove(key);
                self.stages.forget("Node", key);
                let registered = self.register(ctx, key).await?;
                return Ok(if registered { Outcome::RequeueAfter(Duration::ZERO) } else { Outcome::Done });
            }
        };
        if !self.managed.includes(&node) {
            return Ok(Outcome::Done);
        }
        if is_stopped(&node) {
            if self.heartbeats.lock().remove(key).is_some() {
                renew_lease(ctx, &node, now, LAST_LEASE_SECONDS).await?;
            }
            return Ok(Outcome::Done);
        }
        let cue = self.stages.cue("Node", key, &*node, ctx.world());
        let staged = match &cue {
            Cue::Default => None,
            Cue::Wait(due) => Some(pods::wait_until(*due, now)),
            Cue::Play(play) => {
                let own =
                    address(&node).unwrap_or_else(|| self.addresses.lock().take(|| addresses_in_use(ctx)));
                let addresses = Addresses { node: Some(own), pod: None };
                let played = play.perform(ctx, &*node, &Api::all(ctx.client().clone()), &addresses).await;
                if played.is_err() {
                    self.stages.forget("Node", key);
                }
                played?;
                Some(Outcome::Done)
            }
        };
        if staged.is_none() && needs_status(&node) {
            let known = address(&node);
            let address = known.unwrap_or_else(|| self.addresses.lock().take(|| addresses_in_use(ctx)));
            match ctx.patch_status::<Node>(key, json!({"status": healthy(&node, address, &Time(now))})).await
            {
                Err(error) if error.is_not_found() => return Ok(Outcome::Done),
                written => written?,
            };
        }
        if staged.is_none()
            && let Some(allocatable) = allocatable_of_extended(&node)
        {
            match ctx.patch_status::<Node>(key, json!({"status": {"allocatable": allocatable}})).await {
                Err(error) if error.is_not_found() => return Ok(Outcome::Done),
                written => written?,
            };
        }
        let last = self.heartbeats.lock().get(key).copied();
        let mut wait = last.and_then(|last| until_heartbeat(last, now));
        if wait.is_none() {
            renew_lease(ctx, &node, now, LEASE_SECONDS).await?;
            self.heartbeats.lock().insert(key.clone(), now);
            wait = Some(HEARTBEAT);
        }
        Ok(wait.map_or(Outcome::Done, Outcome::RequeueAfter).sooner(staged.unwrap_or(Outcome::Done)))
    }
}

impl NodeReconciler {
    /// A node need not be created any more, unless it is one of before a reset.
    fn is_registered(&self, node: &Node) {
        let (metadata, mut unregistered) = (&node.metadata, self.unregistered.lock());
        let revision: Option<u64> =
            metadata.resource_version.as_deref().and_then(|revision| revision.parse().ok());
        if let Some(name) = &metadata.name
            && unregistered.get(name).is_some_and(|since| revision.is_none_or(|revision| revision > *since))
        {
            unregistered.remove(name);
        }
    }

    /// Whether the node is there now and was not before.
    async fn register(&self, ctx: &Context, key: &Key) -> Result<bool, Error> {
        if !self.unregistered.lock().contains_key(&key.name) {
            return Ok(false);
        }
        let registered = match ctx.create(&new_node(&key.name, self.managed)).await {
            Err(error) if error.is_already_exists() => false,
            created => created.map(|_| true)?,
        };
        self.unregistered.lock().remove(&key.name);
        Ok(registered)
    }
}

/// How long until the next heartbeat; `None` when it is due.
fn until_heartbeat(last: Timestamp, now: Timestamp) -> Option<Duration> {
    let passed = Duration::try_from(now.duration_since(last)).unwrap_or_default();
    HEARTBEAT.checked_sub(passed).filter(|left| !left.is_zero())
}

fn addresses_in_use(ctx: &Context) -> BTreeSet<Ipv4Addr> {
    ctx.list::<Node>(None).iter().filter_map(|node| address(node)).collect()
}

/// The node as a kubelet registers it; it says that it is fake where others are not.
fn new_node(name: &str, managed: Managed) -> Node {
    let labels = [
        ("beta.kubernetes.io/arch", "amd64"),
        ("beta.kubernetes.io/os", "linux"),
        ("kubernetes.io/arch", "amd64"),
        ("kubernetes.io/hostname", name),
        ("kubernetes.io/os", "linux"),
    ];
    let labels = labels.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    let fake = || BTreeMap::from([(NODE_ANNOTATION.to_owned(), "fake".to_owned())]);
    let annotations = (managed == Managed::Fake).then(fake);
    let metadata = ObjectMeta {
        name: Some(name.to_owned()),
        labels: Some(labels),
        annotations,
        ..ObjectMeta::default()
    };
    Node { metadata, ..Node::default() }
}

/// Whether nobody has said how the node is.
fn needs_status(node: &Node) -> bool {
    node.metadata.deletion_timestamp.is_none() && node_readiness(node).is_none_or(|ready| ready == "Unknown")
}

/// Changes of `status.allocatable` by which extended resources are there that `status.capacity` has, and no others: as the
/// kubelet does of resources that it does not know (`pkg/kubelet/nodestatus/setters.go`).
fn allocatable_of_extended(node: &Node) -> Option<Value> {
    let status = node.status.as_ref()?;
    let is_extended =
        |name: &str| name.split_once('/').is_some_and(|(domain, _)| !domain.ends_with("kubernetes.io"));
    let (capacity, allocatable) = (status.capacity.as_ref(), status.allocatable.as_ref()?);
    let capacity = |name: &str| capacity.and_then(|capacity| capacity.get(name));
    let all = status.capacity.iter().flatten();
    let more =
        all.filter(|(name, _)| !allocatable.contains_key(*name)).map(|(name, value)| (name, json!(value)));
    let less = allocatable.keys().filter(|name| capacity(name).is_none()).map(|name| (name, json!(null)));
    let changes: BTreeMap<_, _> = more.chain(less).filter(|(name, _)| is_extended(name)).collect();
    (!changes.is_empty()).then(|| json!(changes))
}

/// The status of a healthy node; capacity, conditions and whatever else it has already stays.
fn healthy(node: &Node, address: Ipv4Addr, now: &Time) -> Value {
    let before = node.status.as_ref();
    let name = node.metadata.name.as_deref().unwrap_or_default();
    let room = json!({"cpu": "1k", "ephemeral-storage": "1Ti", "memory": "1Ti", "pods": "1M"});
    let capacity = before.and_then(|status| status.capacity.as_ref());
    let allocatable = before.and_then(|status| status.allocatable.as_ref()).or(capacity);
    let addresses = before.and_then(|status| status.addresses.as_ref());
    let mut status = json!({
        "conditions": healthy_conditions(node, now),
        "capacity": capacity.map_or(room.clone(), |capacity| json!(capacity)),
        "allocatable": allocatable.map_or(room, |allocatable| json!(allocatable)),
        "addresses": addresses.map_or_else(
            || json!([{"type": "InternalIP", "address": address.to_string()}, {"type": "Hostname", "address": name}]),
            |addresses| json!(addresses),
        ),
    });
    let is_told = before
        .and_then(|status| status.node_info.as_ref())
        .is_some_and(|info| !info.kubelet_version.is_empty());
    if !is_told {
        status["nodeInfo"] = node_info(node);
    }
    status
}

fn node_info(node: &Node) -> Value {
    let label = |name: &str, default: &str| {
        let labels = node.metadata.labels.as_ref();
        labels.and_then(|labels| labels.get(name)).cloned().unwrap_or_else(|| default.to_owned())
    };
    let version = concat!("kubewright-v", env!("CARGO_PKG_VERSION"));
    json!({
        "architecture": label("kubernetes.io/arch", "amd64"),
        "operatingSystem": label("kubernetes.io/os", "linux"),
        "kubeletVersion": version, "kubeProxyVersion": version,
        "bootID": "", "machineID": "", "systemUUID": "",
        "containerRuntimeVersion": "", "kernelVersion": "", "osImage": "",
    })
}

/// The kubelet's conditions; those that somebody else has set stay, `Ready` too unless it is unknown.
fn healthy_conditions(node: &Node, now: &Time) -> Vec<Value> {
    let said = [
        ("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
        ("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
        ("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
        ("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
    ];
    let before = node.status.as_ref().and_then(|status| status.conditions.as_deref()).unwrap_or_default();
    let is_ours = |kind: &str| said.iter().any(|(ours, ..)| *ours == kind);
    let known: Vec<_> =
        before.iter().filter(|has| !(has.status == "Unknown" && is_ours(&has.type_))).collect();
    let mut all: Vec<Value> = known.iter().map(|condition| json!(condition)).collect();
    for (kind, status, reason, message) in said {
        if !known.iter().any(|condition| condition.type_ == kind) {
            all.push(json!({"type": kind, "status": status, "reason": reason, "message": message,
                "lastHeartbeatTime": now, "lastTransitionTime": now}));
        }
    }
    all
}

/// Renews the node's lease, or makes it. A lease goes with its node.
async fn renew_lease(ctx: &Context, node: &Node, now: Timestamp, seconds: i32) -> Result<(), Error> {
    let name = node.metadata.name.clone().unwrap_or_default();
    let patch = json!({"spec": {
        "holderIdentity": name, "renewTime": MicroTime(now), "leaseDurationSeconds": seconds}});
    match ctx.patch::<Lease>(&Key::namespaced(LEASES, &name), patch).await {
        Err(error) if error.is_not_found() => ctx.create(&new_lease(node, now)).await.map(|_| ()),
        renewed => renewed.map(|_| ()),
    }
}

fn new_lease(node: &Node, now: Timestamp) -> Lease {
    let name = node.metadata.name.clone().unwrap_or_default();
    let owner = OwnerReference {
        api_version: "v1".into(),
        kind: "Node".into(),
        name: name.clone(),
        uid: node.metadata.uid.clone().unwrap_or_default(),
        ..OwnerReference::default()
    };
    Lease {
        metadata: ObjectMeta {
            name: Some(name.clone()),
            namespace: Some(LEASES.into()),
            owner_references: Some(vec![owner]),
            ..ObjectMeta::default()
        },
        spec: Some(LeaseSpec {
            holder_identity: Some(name),
            lease_duration_seconds: Some(LEASE_SECONDS),
            renew_time: Some(MicroTime(now)),
            ..LeaseSpec::default()
        }),
    }
}

#[cfg(test)]
mod tests {
    use kubewright_world::SIMULATION_START as NOW;

    use super::*;

    fn node(status: impl Into<Value>) -> Node {
        let status = status.into();
        kubewright_objects::from_value(json!({"metadata": {"name": "mine", "uid": "u"}, "status": status}))
            .expect("a node")
    }

    fn healed(node: &Node) -> Value {
        healthy(node, Ipv4Addr::new(10, 0, 0, 7), &Time(NOW))
    }

    #[test]
    fn a_bare_node_becomes_ready_with_room_and_an_address() {
        let bare = node(json!({}));
        assert!(needs_status(&bare));
        let status = healed(&bare);
        assert_eq!(status["conditions"][0]["type"], "Ready");
        assert_eq!(status["conditions"][0]["status"], "True");
        assert_eq!(status["allocatable"]["pods"], "1M");
        let ready = node(status);
        assert_eq!(address(&ready), Some(Ipv4Addr::new(10, 0, 0, 7)));
        assert!(!needs_status(&ready));
    }

    #[test]
    fn what_the_user_said_about_a_node_stays() {
        let mine = node(json!({"capacity": {"cpu": "4"}, "allocatable": {"cpu": "3"},
            "conditions": [{"type": "MemoryPressure", "status": "True", "reason": "Golden"}]}));
        let status = healed(&mine);
        assert_eq!((&status["capacity"]["cpu"], &status["allocatable"]["cpu"]), (&json!("4"), &json!("3")));
        let pressure: Vec<_> = status["conditions"]
            .as_array()
            .expect("conditions")
            .iter()
            .filter(|condition| condition["type"] == "MemoryPressure")
            .map(|condition| condition["status"].clone())
            .collect();
        assert_eq!(pressure, ["True"]);
    }

    #[test]
    fn extended_resources_of_the_capacity_are_allocatable_and_no_others() {
        let of = |capacity: Value, allocatable: Value| {
            allocatable_of_extended(&node(json!({"capacity": capacity, "allocatable": allocatable})))
        };
        let beards = json!({"cpu": "4", "example.com/beards": "3"});
        assert_eq!(of(beards.clone(), json!({"cpu": "3"})), Some(json!({"example.com/beards": "3"})));
        assert_eq!(of(json!({"cpu": "4"}), beards.clone()), Some(json!({"example.com/beards": null})));
        assert_eq!(of(beards.clone(), beards), None);
        assert_eq!(of(json!({"memory": "1Gi"}), json!({"cpu": "1"})), None);
    }

    #[test]
    fn a_node_that_somebody_calls_not_ready_stays_so_and_an_unknown_one_is_healed() {
        assert!(!needs_status(&node(json!({"conditions": [{"type": "Ready", "status": "False"}]}))));
        let unknown = node(json!({"conditions": [{"type": "Ready", "status": "Unknown"}]}));
        assert!(needs_status(&unknown));
        assert!(!needs_status(&node(healed(&unknown))));
    }

    #[test]
    fn a_new_node_has_the_labels_that_selectors_use() {
        let labels = new_node("node-0", Managed::Fake).metadata.labels.expect("labels");
        assert_eq!(labels["kubernetes.io/hostname"], "node-0");
        assert_eq!(labels["kubernetes.io/os"], "linux");
    }

    #[test]
    fn a_heartbeat_is_due_once_a_day() {
        assert_eq!(until_heartbeat(NOW, NOW + HEARTBEAT), None);
        assert_eq!(until_heartbeat(NOW, NOW + HEARTBEAT / 4), Some(HEARTBEAT * 3 / 4));
    }

    #[test]
    fn a_lease_belongs_to_its_node() {
        let lease = new_lease(&node(json!({})), NOW);
        assert_eq!(Key::of(&lease), Key::namespaced("kube-node-lease", "mine"));
        assert_eq!(lease.metadata.owner_references.expect("an owner")[0].uid, "u");
    }
}
