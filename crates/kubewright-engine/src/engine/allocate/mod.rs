//! What is unique in the cluster and chosen by the server: the addresses and node ports of services
//! (`k8s.io/kubernetes/pkg/registry/core/service/storage/alloc.go`).
//!
//! The guard that [`allocate`] gives is held until the commit, so no two services get the same. What is taken is
//! read from the services themselves, and from the IPAddresses that stand for their addresses (`networks`).

mod addresses;
mod families;
mod networks;
mod ports;

pub(crate) use networks::{addresses_of, is_held};

use std::cell::Cell;
use std::collections::BTreeSet;
use std::net::IpAddr;

use kubewright_kinds::rules::services;
use kubewright_kinds::{Kind, Kinds, Role, Summary, encode};
use kubewright_meta::{ApiError, FieldError, object};
use kubewright_store::Snapshot;
use kubewright_world::Dice;
use serde_json::{Map, Value};
use tokio::sync::MutexGuard;

use super::{Engine, Settings};

/// Whose turn it is to choose something that is unique in the cluster, until it is committed.
#[derive(Default)]
pub(crate) struct Allocator {
    turn: tokio::sync::Mutex<()>,
}

/// What there is to choose from, at one moment.
struct Ranges<'a> {
    settings: &'a Settings,
    dice: &'a Dice,
    kinds: &'a Kinds,
    snapshot: Snapshot<Summary>,
    /// Whether nothing is written: nothing is reserved then either, and what is chosen only stands for what would be.
    dry_run: bool,
    /// The largest port that this service got.
    largest_port: Cell<Option<u64>>,
}

/// Why there is nothing for a service.
enum Refusal {
    /// Something in it is wrong.
    Field(FieldError),
    /// What the server says of itself (500).
    Server(String),
    /// The same, in no more words than these.
    Unexplained(String),
}

impl From<FieldError> for Refusal {
    fn from(error: FieldError) -> Self {
        Self::Field(error)
    }
}

/// What the other services have.
#[derive(Default)]
struct Taken {
    addresses: BTreeSet<IpAddr>,
    ports: BTreeSet<u64>,
}

/// Chooses what `object` has left to the server and checks what it has chosen itself; nothing for other kinds.
///
/// # Errors
/// 422 for an address or port that is taken or out of range; 500 when none is left.
pub(crate) async fn allocate<'e>(
    engine: &'e Engine,
    kind: &Kind,
    object: &mut Value,
    old: Option<&Value>,
    dry_run: bool,
) -> Result<Option<MutexGuard<'e, ()>>, ApiError> {
    if kind.behaviour.role != Role::Service {
        return Ok(None);
    }
    if old.is_none() {
        services::list_cluster_ip(object);
    }
    let name = object::name(object).to_owned();
    let refuse = |errors: &[FieldError]| ApiError::invalid(kind, &name, errors);
    let before = old.map(|old| &old["spec"]);
    let keeps = before.is_some_and(|before| families::both_prefer(&object["spec"], before));
    if !keeps {
        families::choose_policy(object::member_mut(object, "spec"), before);
        let wrong = services::validate_cluster_ips(object);
        if !wrong.is_empty() {
            return Err(refuse(&wrong));
        }
        let cidrs = &engine.settings().service_cidrs;
        families::complete(object::member_mut(object, "spec"), before, cidrs)
            .map_err(|errors| refuse(&errors))?;
    }
    let guard = engine.allocator.turn.lock().await;
    let kinds = engine.kinds();
    let (settings, dice) = (engine.settings(), &engine.world().dice);
    let snapshot = engine.snapshot();
    let ranges = Ranges { settings, dice, kinds: &kinds, snapshot, dry_run, largest_port: Cell::new(None) };
    let taken = ranges.taken(kind, object);
    let spec = object::member_mut(object, "spec");
    let addressed = if keeps { Ok(()) } else { ranges.allocate_addresses(&name, spec, before, &taken) };
    match addressed.and_then(|()| ranges.allocate_ports(spec, before, taken.ports)) {
        Ok(()) => Ok(Some(guard)),
        Err(Refusal::Field(error)) => Err(refuse(&[error])),
        Err(Refusal::Server(why)) => Err(ApiError::internal(&why)),
        Err(Refusal::Unexplained(why)) => Err(ApiError::unexplained(why)),
    }
}

impl Ranges<'_> {
    /// What the other services have.
    fn taken(&self, kind: &Kind, object: &Value) -> Taken {
        let mut taken = Taken::default();
        let uid = object::uid(object);
        for entry in self.snapshot.range(&kind.collection, "", None) {
            let service = encode::value(kind, entry);
            if object::uid(&service) == uid {
                continue;
            }
            let spec = &service["spec"];
            let addresses = texts(&spec["clusterIPs"]).filter_map(|address| address.parse::<IpAddr>().ok());
            taken.addresses.extend(addresses);
            // What only a status can have given to it, outside of the range, is nobody's.
            let given = ports::of(spec).chain(spec["healthCheckNodePort"].as_u64());
            taken.ports.extend(given.filter(|port| self.settings.node_ports.contains(*port)));
        }
        taken
    }
}

fn texts(list: &Value) -> impl Iterator<Item = &str> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str)
}

fn text<'a>(spec: &'a Map<String, Value>, field: &str) -> &'a str {
    spec.get(field).and_then(Value::as_str).unwrap_or_default()
}

fn has_addresses(kind: &str) -> bool {
    kind != "ExternalName"
}

/// How many of the first places are left to those who choose themselves, as long as there are others: a `step`th of all,
/// between `least` and `most` (KEP-3070 and KEP-3668).
fn reserved(size: u128, least: u128, most: u128, step: u128) -> u128 {
    if size < least { 0 } else { (size / step).clamp(least, most) }
}
