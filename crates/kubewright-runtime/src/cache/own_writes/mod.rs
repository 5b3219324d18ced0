//! Own writes: a controller is not woken by the event of a write of its own.
//!
//! What a reconcile writes comes back twice, in either order: as the answer to the request, and from the watch. A reconcile for that
//! event would find nothing to do. But the answer tells only how the object is now, not whether somebody else wrote as well,
//! between what the reconcile saw and its own write. The watch tells every version there was. So a change is *withheld* from
//! its author until both are in and each version that the watch told of was *claimed* by an answer.
//!
//! [`WriteTracker`] holds that for the objects of one kind. It is part of the cache's `State`, so it is plain data: no lock, no task. The
//! rest of the SDK uses four things of this folder: an [`ActiveReconcile`] for each reconcile, the author of its writes; an [`Intent`] for each
//! write, which says whether the answer is as it was asked for; `cache::Write`, which carries both to the cache; and the
//! [`Delivery`] of a change, which says which [`Recipients`] it is for.
//!
//! # States
//!
//! For each object and author one state ([`Phase`](pending::Phase)); without one, changes go to everybody.
//!
//! | state | it holds | changes of the object |
//! |---|---|---|
//! | (none) | the author has written nothing that is still open | go to all |
//! | `InFlight` | a write of the author is not answered | are withheld from the author, but for the object's end |
//! | `AwaitingWatch` | all writes are answered, and the watch has not told of each claimed version | go to all |
//! | `Own` | each version that was told of is claimed, and each that is claimed was told of | (ends at once) |
//! | `Foreign` | a version was told of that no answer claims, or one may have been left out | (ends at once) |
//!
//! | when | from | to |
//! |---|---|---|
//! | a write begins | any | `InFlight` |
//! | a write is answered as it was asked for | `InFlight` | the same, its version claimed |
//! | a write is answered otherwise, or not at all, or is one to delete | `InFlight` | the same, nothing claimed |
//! | the last write ends | `InFlight` | `AwaitingWatch`, `Own` or `Foreign` |
//! | the watch tells of a claimed version | `AwaitingWatch` | the same, or `Own` after the last |
//! | the watch tells of another version, which is new | `AwaitingWatch` | (none): the author gets it with all others |
//! | the watch skips a claimed version, or a list tells of the object | any | `Foreign`, once no write is in flight |
//! | more than [`MOST_UNOBSERVED`](pending) versions are claimed | `AwaitingWatch` | `Foreign` |
//! | the object ends | any | (none): all get it, the author too |
//!
//! At `Own` what was withheld is dropped: the author has seen all of it in answers. At `Foreign` the author gets it as one change,
//! alone, as the others have it.
//!
//! # Invariants
//!
//! The tests are those of `cache/state_tests.rs`, against a server whose answers, watch and lists come at any time, and those of
//! `tests/tests/sdk/own.rs` against an API server. `docs/design/own-writes.md` names them one by one.
//!
//! 1. An author gets every change that is not its own alone.
//! 2. An author gets no change that is its own alone, as long as the watch skips nothing.
//! 3. Nothing is withheld for ever, and nothing is remembered of an author whose writes are settled.
//! 4. Everybody else gets each change once, in the order of the changes.
//! 5. Authors are compared by controller and key: other keys, other controllers and other replicas are others.
//! 6. A write counts as its author's only while the reconcile goes on, and only when the answer is as it was asked for.

mod author;
mod delivery;
mod intent;
mod pending;

use std::{collections::BTreeMap, sync::Arc};

use self::pending::{PendingWrites, Phase};
pub(crate) use self::{
    author::{ActiveReconcile, ActiveReconcileGuard, Author},
    delivery::{Delivery, Recipients},
    intent::Intent,
};
use super::Change;
use crate::Key;

/// What authors wrote to the objects of one kind, as far as the watch and the answers do not agree on it yet.
#[derive(Debug)]
pub(super) struct WriteTracker<K: ?Sized>(BTreeMap<Key, Vec<PendingWrites<K>>>);

impl<K: ?Sized> WriteTracker<K> {
    pub(super) fn new() -> Self {
        Self(BTreeMap::new())
    }

    /// A write of `author` begins, to an object that is known in this version. [`WriteTracker::ended`] must follow.
    pub(super) fn began(&mut self, key: &Key, author: &Arc<Author>, version: Option<u64>) {
        self.pending(key, author, version).begin();
    }

    /// A write of `author` was answered with this version, as it was asked for. The object was known in the version `before`,
    /// and `change` is what the answer changed of what is known. Returns who gets that change.
    pub(super) fn answered(
        &mut self,
        key: &Key,
        author: &Arc<Author>,
        version: u64,
        before: Option<u64>,
        change: Option<&Change<K>>,
    ) -> Recipients {
        self.pending(key, author, before).claim(version);
        self.update(key, |pending| match change {
            None => {}
            Some(change) if pending.author() == author => pending.withhold(change, Some(version)),
            Some(_) => pending.delivered(Some(version)),
        });
        Recipients::AllExcept(vec![author.clone()])
    }

    /// What is known of an object changed, not by the watch and not as an author asked for: everybody gets it.
    pub(super) fn changed(&mut self, key: &Key, version: Option<u64>) {
        self.update(key, |pending| pending.delivered(version));
    }

    /// The watch told of this version of an object (none if it may have left others out), or of its end in this version, and
    /// that changed what is known or did not. Returns the change, and what authors get now that was withheld.
    pub(super) fn watched(
        &mut self,
        key: &Key,
        version: Option<u64>,
        change: Option<Change<K>>,
    ) -> Vec<Delivery<K>> {
        if !self.0.contains_key(key) {
            return change.map(|change| Delivery::to_all(change)).into_iter().collect();
        }
        let mut withheld_from = Vec::new();
        self.update(key, |pending| {
            pending.observe(version);
            match &change {
                Some(change @ (Change::Created(_) | Change::Updated { .. })) if pending.is_in_flight() => {
                    pending.withhold(change, version);
                    withheld_from.push(pending.author().clone());
                }
                Some(_) => pending.delivered(version),
                None => {}
            }
        });
        let mut deliveries = self.settle(key);
        deliveries.extend(change.map(|change| Delivery::new(change, Recipients::AllExcept(withheld_from))));
        deliveries
    }

    /// A write of `author` is over, whatever came of it. Returns what authors get now that was withheld.
    pub(super) fn ended(&mut self, key: &Key, author: &Arc<Author>) -> Vec<Delivery<K>> {
        let pending = self.0.get_mut(key).into_iter().flatten();
        pending.filter(|pending| pending.author() == author).for_each(PendingWrites::end);
        self.settle(key)
    }

    /// A list is complete. Returns what authors get now that was withheld.
    pub(super) fn listed(&mut self) -> Vec<Delivery<K>> {
        let keys: Vec<Key> = self.0.keys().cloned().collect();
        self.0.values_mut().flatten().for_each(PendingWrites::doubt);
        keys.iter().flat_map(|key| self.settle(key)).collect()
    }

    /// Of how many objects something is remembered.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    fn pending(&mut self, key: &Key, author: &Arc<Author>, version: Option<u64>) -> &mut PendingWrites<K> {
        let all = self.0.entry(key.clone()).or_default();
        let position = all.iter().position(|pending| pending.author() == author).unwrap_or_else(|| {
            all.push(PendingWrites::new(author.clone(), version.unwrap_or(0)));
            all.len() - 1
        });
        &mut all[position]
    }

    /// Calls `f` for all who wrote to an object, and forgets those whose writes are settled as their own.
    fn update(&mut self, key: &Key, mut f: impl FnMut(&mut PendingWrites<K>)) {
        if let Some(all) = self.0.get_mut(key) {
            all.iter_mut().for_each(&mut f);
            all.retain(|pending| pending.phase() != Phase::Own);
            if all.is_empty() {
                self.0.remove(key);
            }
        }
    }

    /// Forgets all whose writes are settled. Returns what was withheld from those that were not alone.
    fn settle(&mut self, key: &Key) -> Vec<Delivery<K>> {
        let mut due = Vec::new();
        self.update(key, |pending| {
            if pending.phase() == Phase::Foreign {
                let author = pending.author().clone();
                due.extend(pending.release().map(|change| Delivery::new(change, Recipients::Only(author))));
            }
        });
        due
    }
}
