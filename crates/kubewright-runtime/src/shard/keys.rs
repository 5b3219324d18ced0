//! Which keys are this replica's, and which of them are being worked on.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::sync::Notify;

use super::{
    rendezvous::{Hashed, Seat},
    view::Epoch,
};
use crate::Key;

/// How long a reconcile may go on when its key has become another replica's; then it is dropped. Until it has ended, no
/// key changes hands.
pub(super) const HAND_OVER: Duration = Duration::from_secs(10);

/// Who works on what in an epoch, as one of the members sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Assignment {
    pub(super) epoch: Epoch,
    own: Option<Seat>,
    others: Vec<Seat>,
}

impl Assignment {
    pub(super) fn new(epoch: Epoch, members: &[String], me: &str) -> Self {
        let (own, others): (Vec<_>, Vec<_>) = members.iter().partition(|member| *member == me);
        let seat = |member: &String| Seat::of(member);
        Self { epoch, own: own.first().copied().map(seat), others: others.into_iter().map(seat).collect() }
    }

    pub(super) fn gives_me(&self, key: &Key) -> bool {
        let key = Hashed::of(key);
        // Two members of one score (of 2^64) would both let the other have the key: it stays with nobody rather than with
        // two.
        self.own.is_some_and(|own| self.others.iter().all(|other| own.score(key) > other.score(key)))
    }
}

/// The keys of a replica. All controllers of a manager share them.
#[derive(Debug, Default)]
pub(crate) struct Keys {
    state: Mutex<State>,
    /// Told when keys are taken away or given.
    changed: Notify,
    /// Told when keys are given.
    given: Notify,
    /// Told when a reconcile has ended.
    idle: Notify,
}

#[derive(Debug, Default)]
struct State {
    /// The settled epoch's, and those that were announced since. A key is this replica's if it is in all of them: what an
    /// epoch took away may be with somebody else, even if a later one gives it back.
    assignments: Vec<Arc<Assignment>>,
    settled: bool,
    /// How many controllers work on a key.
    busy: BTreeMap<Key, usize>,
    /// What all held before keys were given; what was not in all of it is new.
    before: Option<Gain>,
}

/// What was this replica's before it got more.
#[derive(Clone, Debug, Default)]
pub(crate) struct Gain(Vec<Arc<Assignment>>);

/// Whose turn it is to work on a key.
pub(crate) enum Turn<'a> {
    /// This replica's, from now until it is dropped.
    Mine(Mine<'a>),
    /// This replica's, when its last owner has let go of it.
    Soon,
    /// Somebody else's.
    Others,
}

/// A key that is being worked on.
pub(crate) struct Mine<'a> {
    keys: &'a Keys,
    key: &'a Key,
}

impl State {
    fn is_mine(&self, key: &Key) -> bool {
        self.settled && self.assignments.iter().all(|assignment| assignment.gives_me(key))
    }
}

impl Keys {
    /// Whether a key is this replica's.
    pub(crate) fn is_mine(&self, key: &Key) -> bool {
        self.state.lock().is_mine(key)
    }

    /// Begins to work on a key, if it is this replica's.
    pub(crate) fn turn<'a>(&'a self, key: &'a Key) -> Turn<'a> {
        let mut state = self.state.lock();
        if state.is_mine(key) {
            *state.busy.entry(key.clone()).or_default() += 1;
            return Turn::Mine(Mine { keys: self, key });
        }
        match state.assignments.last() {
            Some(newest) if newest.gives_me(key) => Turn::Soon,
            _ => Turn::Others,
        }
    }

    /// A new epoch is announced: what it gives to others is not to be worked on any more.
    pub(super) fn announce(&self, assignment: Assignment) {
        let mut state = self.state.lock();
        if state.assignments.last().is_some_and(|newest| newest.epoch == assignment.epoch) {
            return;
        }
        state.assignments.push(Arc::new(assignment));
        drop(state);
        self.changed.notify_waiters();
    }

    /// Everybody has let go of what the newest epoch, if it is `epoch`, gives to others: it is in force.
    pub(super) fn settle(&self, epoch: &Epoch) {
        let mut state = self.state.lock();
        let Some(newest) = state.assignments.pop() else { return };
        if newest.epoch != *epoch || (state.settled && state.assignments.is_empty()) {
            state.assignments.push(newest);
            return;
        }
        let before = std::mem::replace(&mut state.assignments, vec![newest]);
        if state.settled {
            state.before.get_or_insert_default().0.extend(before);
        }
        state.settled = true;
        drop(state);
        self.changed.notify_waiters();
        self.given.notify_one();
    }

    /// Nothing is this replica's any more.
    pub(super) fn reset(&self) {
        let mut state = self.state.lock();
        state.assignments.clear();
        (state.settled, state.before) = (false, None);
        drop(state);
        self.changed.notify_waiters();
    }

    /// Whether nothing is being worked on but what is this replica's by every epoch that is known.
    pub(super) fn is_drained(&self) -> bool {
        let state = self.state.lock();
        // Before the first epoch is in force, nothing is.
        !state.settled || state.busy.keys().all(|key| state.is_mine(key))
    }

    /// Waits until a reconcile has ended.
    pub(super) async fn idle(&self) {
        self.idle.notified().await;
    }

    /// Waits until an epoch is in force.
    pub(super) async fn settled(&self) {
        loop {
            let changed = self.changed.notified();
            if self.state.lock().settled {
                return;
            }
            changed.await;
        }
    }

    /// Waits until more keys have become this replica's.
    pub(crate) async fn gained(&self) -> Gain {
        loop {
            if let Some(before) = self.state.lock().before.take() {
                return before;
            }
            self.given.notified().await;
        }
    }

    /// Whether a key is this replica's and was not, or not all the time, before.
    pub(crate) fn is_gained(&self, before: &Gain, key: &Key) -> bool {
        self.is_mine(key) && !before.0.iter().all(|assignment| assignment.gives_me(key))
    }

    /// Waits until `key` is another replica's, and the time to hand it over has passed.
    async fn revoked(&self, key: &Key) {
        loop {
            let changed = self.changed.notified();
            if !self.is_mine(key) {
                return tokio::time::sleep(HAND_OVER).await;
            }
            changed.await;
        }
    }
}

impl Mine<'_> {
    /// Works on the key; `None` if it had to be dropped, because the key is another replica's now.
    pub(crate) async fn during<T>(self, work: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            output = work => Some(output),
            () = self.keys.revoked(self.key) => None,
        }
    }
}

impl Drop for Mine<'_> {
    fn drop(&mut self) {
        let mut state = self.keys.state.lock();
        if let Some(count) = state.busy.get_mut(self.key) {
            *count -= 1;
            if *count == 0 {
                state.busy.remove(self.key);
            }
        }
        drop(state);
        self.keys.idle.notify_one();
    }
}
