//! What a member makes of a snapshot of the ring: plain data, no clock, no task, no request.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    time::Duration,
};

use k8s_openapi::api::coordination::v1::Lease;
use tokio::time::Instant;

use crate::leader::record::Record;

/// On the ring's Lease: the names of the members, separated by commas.
pub(super) const MEMBERS: &str = "kubewright.dev/members";
/// On a member's Lease: the epoch that it acts by.
pub(super) const EPOCH: &str = "kubewright.dev/epoch";

/// A state of the membership: the ring's Lease, by uid, and how often it has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Epoch {
    ring: String,
    pub(super) number: i32,
}

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.ring, self.number)
    }
}

/// The Leases of a ring, as they were at one moment.
#[derive(Clone, Debug, Default)]
pub(super) struct Snapshot {
    pub(super) ring: Option<Ring>,
    pub(super) members: BTreeMap<String, MemberLease>,
}

#[derive(Clone, Debug)]
pub(super) struct Ring {
    pub(super) epoch: Epoch,
    pub(super) members: Vec<String>,
    pub(super) lease: Lease,
}

#[derive(Clone, Debug)]
pub(super) struct MemberLease {
    record: Record,
    /// The epoch that it has acknowledged, as it is written.
    acknowledged: Option<String>,
    pub(super) lease: Lease,
}

impl Snapshot {
    pub(super) fn new(ring: &str, leases: impl IntoIterator<Item = Lease>) -> Self {
        let mut snapshot = Self::default();
        for lease in leases {
            let name = lease.metadata.name.clone().unwrap_or_default();
            let annotations = lease.metadata.annotations.clone().unwrap_or_default();
            let record = Record::of(lease.spec.as_ref());
            if name == ring {
                let members = annotations.get(MEMBERS).map(String::as_str).unwrap_or_default();
                let members = members.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect();
                let uid = lease.metadata.uid.clone().unwrap_or_default();
                let epoch = Epoch { ring: uid, number: record.transitions };
                snapshot.ring = Some(Ring { epoch, members, lease });
            } else {
                let acknowledged = annotations.get(EPOCH).cloned();
                snapshot.members.insert(name, MemberLease { record, acknowledged, lease });
            }
        }
        snapshot
    }

    fn acknowledged(&self, member: &str) -> Option<&str> {
        self.members.get(member)?.acknowledged.as_deref()
    }
}

/// What is to be done after a snapshot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Decision {
    /// Members to be removed: they have left, or given no sign of life for the duration of their lease.
    pub(super) evict: Vec<String>,
    /// Who should be members, if that is not what the ring says.
    pub(super) propose: Option<Vec<String>>,
    /// Whether this member still has to acknowledge the ring's epoch.
    pub(super) acknowledge: bool,
    /// Whether the ring's epoch is in force for this member.
    pub(super) in_force: bool,
}

/// One member's view.
#[derive(Debug)]
pub(super) struct View {
    me: String,
    lease_duration: Duration,
    /// What others' leases said when they last changed, and when that was seen.
    observed: BTreeMap<String, (Record, Instant)>,
    /// Members whose lease is gone without our having evicted them, and since when: they may not know yet.
    missing: BTreeMap<String, Instant>,
    /// Members that cannot come back: a name is never used twice.
    dead: BTreeSet<String>,
}

impl View {
    pub(super) fn new(me: &str, lease_duration: Duration) -> Self {
        Self {
            me: me.to_owned(),
            lease_duration,
            observed: BTreeMap::new(),
            missing: BTreeMap::new(),
            dead: BTreeSet::new(),
        }
    }

    /// A member was evicted: its lease was deleted as it was in the snapshot by which that was decided.
    pub(super) fn evicted(&mut self, member: &str) {
        self.dead.insert(member.to_owned());
    }

    /// What to do; `None` when we are not a member any more.
    pub(super) fn decide(&mut self, snapshot: &Snapshot, now: Instant) -> Option<Decision> {
        snapshot.members.get(&self.me)?;
        let evict = self.silent(snapshot, now);
        let in_ring: BTreeSet<String> =
            snapshot.ring.iter().flat_map(|ring| ring.members.iter().cloned()).collect();
        self.look_for_missing(&in_ring, snapshot, now);
        self.dead.retain(|name| in_ring.contains(name));
        let wanted: BTreeSet<String> = snapshot.members.keys().chain(self.missing.keys()).cloned().collect();
        let is_right = snapshot.ring.is_some() && in_ring == wanted;
        let propose = (!is_right).then(|| wanted.into_iter().collect());
        let mut decision = Decision { evict, propose, ..Decision::default() };
        if let Some(ring) = &snapshot.ring
            && in_ring.contains(&self.me)
        {
            let epoch = ring.epoch.to_string();
            let has = |member: &str| snapshot.acknowledged(member) == Some(&epoch);
            decision.acknowledge = !has(&self.me);
            // Whoever is not in the ring may have been, unless it never acknowledged anything.
            let others_let_go = snapshot
                .members
                .keys()
                .filter(|member| !in_ring.contains(*member))
                .all(|member| snapshot.acknowledged(member).is_none() || has(member));
            decision.in_force = others_let_go && ring.members.iter().all(|member| has(member));
        }
        Some(decision)
    }

    /// The members that have left, or whose lease did not change for its duration.
    fn silent(&mut self, snapshot: &Snapshot, now: Instant) -> Vec<String> {
        self.observed.retain(|name, _| snapshot.members.contains_key(name));
        let mut silent = Vec::new();
        for (name, member) in snapshot.members.iter().filter(|(name, _)| **name != self.me) {
            let (record, since) =
                self.observed.entry(name.clone()).or_insert_with(|| (member.record.clone(), now));
            if *record != member.record {
                (*record, *since) = (member.record.clone(), now);
            }
            if record.holder.is_empty() || now.saturating_duration_since(*since) >= record.duration {
                silent.push(name.clone());
            }
        }
        silent
    }

    /// A lease that somebody deleted does not tell that its holder has stopped: that is certain after its duration.
    fn look_for_missing(&mut self, in_ring: &BTreeSet<String>, snapshot: &Snapshot, now: Instant) {
        let is_missing = |name: &String| !snapshot.members.contains_key(name) && !self.dead.contains(name);
        let missing: Vec<_> = in_ring.iter().filter(|name| is_missing(name)).cloned().collect();
        self.missing.retain(|name, _| missing.contains(name));
        for name in missing {
            let since = *self.missing.entry(name.clone()).or_insert(now);
            if now.saturating_duration_since(since) >= self.lease_duration {
                self.missing.remove(&name);
                self.dead.insert(name);
            }
        }
    }
}
