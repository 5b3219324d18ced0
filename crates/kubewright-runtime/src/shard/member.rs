//! A replica's part in a ring.

use std::{collections::BTreeMap, fmt, sync::Arc};

use futures::StreamExt;
use k8s_openapi::api::coordination::v1::Lease;
use kube::{
    Api, Client,
    api::ObjectMeta,
    runtime::watcher::{self, watcher},
};
use kubewright_world::World;
use parking_lot::Mutex;
use tokio::{sync::Notify, time::Instant};
use tokio_util::sync::CancellationToken;

use super::{
    Shard, Sharding,
    keys::{Assignment, Keys},
    view::{EPOCH, Epoch, MEMBERS, Ring, Snapshot, View},
};
use crate::leader::{
    FencingToken, Term,
    gate::Gate,
    lock::{LeaseError, Leases},
    record::{Record, as_micro_time},
    settings::{JITTER_FACTOR, identity},
};

/// Names the ring on each of its Leases.
const RING: &str = "kubewright.dev/ring";

/// Takes part in a ring.
pub(crate) struct RingMember {
    settings: Sharding,
    world: World,
    identity: String,
    api: Api<Lease>,
    leases: Leases,
    gate: Gate,
    keys: Arc<Keys>,
    shard: Shard,
    own: Mutex<Own>,
    /// Told when there is something to write to our own lease.
    wanted: Notify,
    /// Told when something has changed that may ask for an answer.
    changed: Notify,
}

/// Our own lease.
#[derive(Default)]
struct Own {
    lease: Lease,
    /// The epoch that we act by.
    epoch: Option<Epoch>,
    /// When it is lost if it is not renewed.
    valid_until: Option<Instant>,
}

/// The lease is not ours any more.
struct Lost;

impl RingMember {
    pub(crate) fn new(client: Client, world: World, settings: Sharding) -> Self {
        let timeout = settings.times.request_timeout();
        let gate = Gate::new(world.clock);
        let keys = Arc::<Keys>::default();
        Self {
            identity: settings.identity.clone().unwrap_or_else(|| identity(&world)),
            api: Api::namespaced(client.clone(), &settings.namespace),
            leases: Leases::new(client, &settings.namespace, timeout),
            shard: Shard::new(gate.clone(), keys.clone()),
            gate,
            keys,
            own: Mutex::default(),
            wanted: Notify::new(),
            changed: Notify::new(),
            settings,
            world,
        }
    }

    pub(crate) fn gate(&self) -> &Gate {
        &self.gate
    }

    pub(crate) fn keys(&self) -> Arc<Keys> {
        self.keys.clone()
    }

    pub(crate) fn shard(&self) -> Shard {
        self.shard.clone()
    }

    pub(crate) fn mistakes(&self) -> Vec<String> {
        self.settings.mistakes()
    }

    /// Is a member until `shutdown`. Whenever a share of the keys is this replica's, `lead` is called, as in
    /// [`crate::leader::Elector::run`].
    pub(crate) async fn run<F, W>(self, shutdown: CancellationToken, mut lead: F)
    where
        F: FnMut(Term) -> W,
        W: Future<Output = ()>,
    {
        let _close_on_drop = CloseOnDrop(self.gate.clone());
        loop {
            tokio::select! {
                biased;
                () = shutdown.cancelled() => return,
                () = self.join() => {}
            }
            if self.live(&shutdown, &mut lead).await {
                return self.leave().await;
            }
            self.retire().await;
            if shutdown.is_cancelled() {
                return;
            }
        }
    }

    /// Becomes a member, under a name that nobody had before.
    async fn join(&self) {
        loop {
            let sent = Instant::now();
            match self.leases.create(&self.new_lease()).await {
                Ok(lease) => {
                    let valid_until = sent + self.settings.times.renew_deadline;
                    *self.own.lock() = Own { lease, epoch: None, valid_until: Some(valid_until) };
                    tracing::info!(ring = self.settings.name, member = self.name(), "joined the ring");
                    return self.gate.open(valid_until);
                }
                Err(failure) => {
                    tracing::warn!(ring = self.settings.name, %failure, "cannot join the ring; trying again");
                }
            }
            self.pause().await;
        }
    }

    /// Is a member; whether until the end of the work.
    async fn live<F, W>(&self, shutdown: &CancellationToken, lead: &mut F) -> bool
    where
        F: FnMut(Term) -> W,
        W: Future<Output = ()>,
    {
        let lost = async {
            tokio::select! {
                biased;
                () = self.keep() => {}
                () = self.take_part() => {}
                () = self.follow() => {}
            }
        };
        let mut lost = std::pin::pin!(lost);
        tokio::select! {
            biased;
            () = &mut lost => {
                self.lose();
                return false;
            }
            () = shutdown.cancelled() => return true,
            () = self.keys.settled() => {}
        }
        let number = self.own.lock().epoch.as_ref().map(|epoch| epoch.number).unwrap_or_default();
        let term = Term::new(FencingToken(u32::try_from(number).unwrap_or_default()));
        let lose = || {
            self.lose();
            self.shard.set_overdue(true);
        };
        let is_over = term.last(shutdown, lost, lose, lead(term.clone())).await;
        self.shard.set_overdue(false);
        is_over
    }

    /// Lets no write pass any more, and tells that no key is ours.
    fn lose(&self) {
        self.gate.close();
        self.keys.reset();
        tracing::warn!(ring = self.settings.name, member = self.name(), "lost the membership; joining anew");
    }

    /// Tells the others that we have let go of everything.
    async fn leave(&self) {
        self.gate.close();
        self.keys.reset();
        let now = as_micro_time(self.world.clock.now());
        let left = Record {
            holder: String::new(),
            duration: std::time::Duration::from_secs(1),
            acquired: Some(now),
            renewed: Some(now),
            transitions: 0,
        };
        let mut lease = self.own.lock().lease.clone();
        left.write(lease.spec.get_or_insert_default());
        match self.leases.replace(&lease).await {
            Ok(_) => tracing::info!(ring = self.settings.name, member = self.name(), "left the ring"),
            Err(failure) => {
                tracing::debug!(ring = self.settings.name, %failure, "cannot leave the ring; the lease will expire");
            }
        }
    }

    /// After the membership was lost and all work has ended: nobody has to wait for the old lease.
    async fn retire(&self) {
        let lease = self.own.lock().lease.clone();
        if let Err(failure) = self.leases.delete(&lease).await {
            tracing::debug!(ring = self.settings.name, %failure, "cannot delete the lost lease; it will expire");
        }
    }

    /// Renews our own lease, and writes to it which epoch we act by; ends when it is lost.
    async fn keep(&self) {
        let mut next = Instant::now() + self.settings.times.retry_period;
        loop {
            let Some(valid_until) = self.own.lock().valid_until else { return };
            tokio::select! {
                biased;
                () = self.wanted.notified() => {}
                () = tokio::time::sleep_until(next.min(valid_until)) => {}
            }
            match tokio::time::timeout_at(valid_until, self.renew()).await {
                Ok(Ok(Ok(()))) => {}
                Ok(Ok(Err(Lost))) | Err(_) => return,
                Ok(Err(failure)) => {
                    tracing::debug!(ring = self.settings.name, %failure, "cannot renew the membership");
                }
            }
            next = Instant::now() + self.settings.times.retry_period;
        }
    }

    async fn renew(&self) -> Result<Result<(), Lost>, LeaseError> {
        // Once over what we wrote last, and once over what somebody else (a label, say) wrote since.
        for _ in 0..2 {
            let sent = Instant::now();
            let lease = self.renewed_lease();
            match self.leases.replace(&lease).await {
                Ok(lease) => {
                    let valid_until = sent + self.settings.times.renew_deadline;
                    let mut own = self.own.lock();
                    (own.lease, own.valid_until) = (lease, Some(valid_until));
                    drop(own);
                    self.gate.open(valid_until);
                    self.changed.notify_one();
                    return Ok(Ok(()));
                }
                Err(LeaseError::Outdated(_)) => {}
                Err(failure) => return Err(failure),
            }
            let Some(lease) = self.leases.get(&self.name()).await? else { return Ok(Err(Lost)) };
            if Record::of(lease.spec.as_ref()).holder != self.identity {
                return Ok(Err(Lost));
            }
            self.own.lock().lease = lease;
        }
        Ok(Ok(()))
    }

    /// Looks at the ring whenever something changes, and does what is to be done; ends when we are not in it any more.
    async fn take_part(&self) {
        let mut view = View::new(&self.name(), self.settings.times.lease_duration);
        let selector = format!("{RING}={}", self.settings.name);
        loop {
            let again = match self.leases.list(&selector).await {
                Ok(list) => {
                    let snapshot = Snapshot::new(&self.settings.name, list.items);
                    match self.act(&mut view, &snapshot).await {
                        Ok(Ok(again)) => again,
                        Ok(Err(Lost)) => return,
                        Err(failure) => self.cannot(&failure),
                    }
                }
                Err(failure) => self.cannot(&failure),
            };
            if again {
                continue;
            }
            tokio::select! {
                biased;
                () = self.changed.notified() => {}
                () = self.keys.idle(), if !self.keys.is_drained() => {}
                () = self.pause() => {}
            }
        }
    }

    /// Acts on a snapshot; whether to look again at once.
    async fn act(&self, view: &mut View, snapshot: &Snapshot) -> Result<Result<bool, Lost>, LeaseError> {
        let Some(decision) = view.decide(snapshot, Instant::now()) else { return Ok(Err(Lost)) };
        if let Some(ring) = &snapshot.ring {
            self.keys.announce(Assignment::new(ring.epoch.clone(), &ring.members, &self.name()));
            self.shard.set_members(&ring.members);
            if decision.acknowledge && self.keys.is_drained() {
                let mut own = self.own.lock();
                if own.epoch.as_ref() != Some(&ring.epoch) {
                    own.epoch = Some(ring.epoch.clone());
                    self.wanted.notify_one();
                }
            }
            if decision.in_force {
                self.keys.settle(&ring.epoch);
            }
        }
        let mut again = false;
        for name in &decision.evict {
            let Some(member) = snapshot.members.get(name) else { continue };
            again = true;
            match self.leases.delete(&member.lease).await {
                Ok(()) => {
                    tracing::info!(ring = self.settings.name, member = name, "removed a member that is gone");
                    view.evicted(name);
                }
                // It gave a sign of life, or another member was faster.
                Err(LeaseError::Outdated(_)) => {}
                Err(failure) => return Err(failure),
            }
        }
        if again {
            return Ok(Ok(true));
        }
        match decision.propose {
            None => Ok(Ok(false)),
            Some(members) => match self.propose(snapshot.ring.as_ref(), &members).await {
                Ok(()) | Err(LeaseError::Outdated(_)) => Ok(Ok(true)),
                Err(failure) => Err(failure),
            },
        }
    }

    /// Makes the next epoch, unless somebody else was faster.
    async fn propose(&self, ring: Option<&Ring>, members: &[String]) -> Result<(), LeaseError> {
        let mut lease = ring.map_or_else(|| self.lease(&self.settings.name), |ring| ring.lease.clone());
        lease.metadata.annotations.get_or_insert_default().insert(MEMBERS.to_owned(), members.join(","));
        let next = ring.map_or(1, |ring| ring.epoch.number.saturating_add(1));
        lease.spec.get_or_insert_default().lease_transitions = Some(next);
        match ring {
            Some(_) => self.leases.replace(&lease).await?,
            None => self.leases.create(&lease).await?,
        };
        tracing::info!(
            ring = self.settings.name,
            epoch = next,
            members = members.len(),
            "the members changed"
        );
        Ok(())
    }

    /// Watches the ring, so that a hand-over does not wait for the next look. What is decided is decided by looking.
    async fn follow(&self) {
        let config = watcher::Config::default().labels(&format!("{RING}={}", self.settings.name));
        let mut events = watcher(self.api.clone(), config).boxed();
        let mut known = BTreeMap::new();
        while let Some(event) = events.next().await {
            match event {
                Ok(watcher::Event::Apply(lease) | watcher::Event::InitApply(lease)) => {
                    // A renewal is nothing new.
                    let holder = lease.spec.and_then(|spec| spec.holder_identity);
                    let state = (holder, lease.metadata.annotations);
                    let name = lease.metadata.name.unwrap_or_default();
                    if known.insert(name, state.clone()) != Some(state) {
                        self.changed.notify_one();
                    }
                }
                Ok(watcher::Event::Delete(lease)) => {
                    known.remove(&lease.metadata.name.unwrap_or_default());
                    self.changed.notify_one();
                }
                Ok(watcher::Event::Init | watcher::Event::InitDone) => {}
                Err(error) => {
                    tracing::debug!(ring = self.settings.name, %error, "the watch of the ring failed");
                    self.pause().await;
                }
            }
        }
        std::future::pending::<()>().await;
    }

    fn cannot(&self, failure: &LeaseError) -> bool {
        tracing::debug!(ring = self.settings.name, %failure, "cannot read or write the ring; trying again");
        false
    }

    async fn pause(&self) {
        let jitter = 1.0 + self.world.dice.fraction() * JITTER_FACTOR;
        tokio::time::sleep(self.settings.times.retry_period.mul_f64(jitter)).await;
    }

    /// The name of our own lease.
    fn name(&self) -> String {
        self.own.lock().lease.metadata.name.clone().unwrap_or_default()
    }

    fn record(&self, acquired: jiff::Timestamp) -> Record {
        Record {
            holder: self.identity.clone(),
            duration: self.settings.times.lease_duration,
            acquired: Some(acquired),
            renewed: Some(as_micro_time(self.world.clock.now())),
            transitions: 0,
        }
    }

    fn new_lease(&self) -> Lease {
        let mut lease = self.lease(&format!("{}-{}", self.settings.name, self.world.dice.suffix(10)));
        self.record(as_micro_time(self.world.clock.now())).write(lease.spec.get_or_insert_default());
        lease
    }

    fn renewed_lease(&self) -> Lease {
        let own = self.own.lock();
        let mut lease = own.lease.clone();
        let acquired = Record::of(lease.spec.as_ref()).acquired.unwrap_or_default();
        self.record(acquired).write(lease.spec.get_or_insert_default());
        if let Some(epoch) = &own.epoch {
            let annotations = lease.metadata.annotations.get_or_insert_default();
            annotations.insert(EPOCH.to_owned(), epoch.to_string());
        }
        lease
    }

    fn lease(&self, name: &str) -> Lease {
        Lease {
            metadata: ObjectMeta {
                namespace: Some(self.settings.namespace.clone()),
                name: Some(name.to_owned()),
                labels: Some([(RING.to_owned(), self.settings.name.clone())].into()),
                ..ObjectMeta::default()
            },
            spec: None,
        }
    }
}

impl fmt::Debug for RingMember {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RingMember").field("settings", &self.settings).finish_non_exhaustive()
    }
}

/// Nobody works on anything whose membership is not kept.
struct CloseOnDrop(Gate);

impl Drop for CloseOnDrop {
    fn drop(&mut self) {
        self.0.close();
    }
}
