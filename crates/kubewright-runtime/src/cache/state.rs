//! What is known of the objects of one kind, as plain data: no watch, no task, no lock.

use std::{collections::BTreeSet, sync::Arc};

use super::{
    applied::{Applied, AppliedFields, Applier, LastApply, Owned},
    order::Objects,
    own_writes::{Author, Delivery, Recipients, WriteTracker},
    tombstones::{Tombstones, Until},
    version::{is_newer, version},
};
use crate::{
    Cached, Key,
    object::{AnyObject, Head, Kept, typed},
};

/// A change of what is known.
#[derive(Debug)]
pub enum Change<K: ?Sized> {
    /// An object became known.
    Created(Arc<K>),
    /// An object is different now.
    Updated {
        /// Before.
        old: Arc<K>,
        /// Now.
        new: Arc<K>,
    },
    /// An object is gone; its last known state.
    Deleted(Arc<K>),
}

impl Change<dyn Kept> {
    /// The change of values.
    pub(crate) fn values(&self) -> Change<dyn AnyObject> {
        match self {
            Self::Created(new) => Change::Created(new.clone().value()),
            Self::Updated { old, new } => {
                Change::Updated { old: old.clone().value(), new: new.clone().value() }
            }
            Self::Deleted(last) => Change::Deleted(last.clone().value()),
        }
    }

    /// The change of an object of kind `K`; `None` if it is one of another kind.
    pub(super) fn typed<K: Cached>(&self) -> Option<Change<K>> {
        Some(match self.values() {
            Change::Created(new) => Change::Created(typed(new)?),
            Change::Updated { old, new } => Change::Updated { old: typed(old)?, new: typed(new)? },
            Change::Deleted(last) => Change::Deleted(typed(last)?),
        })
    }
}

/// When a write began, as far as the cache must know to judge its answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ticket {
    number: u64,
    lists: u64,
}

/// The objects of one kind, from two sources that are each in order but not with one another: the watch, and the
/// answers to our own writes.
///
/// The newer resource version wins, so a late watch event never hides what a write returned. Where nothing is left to
/// compare with, tombstones keep what is late from coming back.
pub(super) struct State<K: ?Sized> {
    objects: Objects<K>,
    tombstones: Tombstones,
    own_writes: WriteTracker<K>,
    applied: AppliedFields,
    /// The number of the next write.
    next_write: u64,
    writes_under_way: BTreeSet<u64>,
    /// How many lists are complete.
    lists: u64,
    /// While a list is under way: what was known when it began and it did not tell of yet.
    unlisted: Option<BTreeSet<Key>>,
    /// Objects that a write returned while a list was under way and that the list did not tell of: made after the list
    /// was taken, or gone before. Only the server knows.
    unconfirmed: BTreeSet<Key>,
}

impl<K: Kept + ?Sized> State<K> {
    pub(super) fn new() -> Self {
        Self {
            objects: Objects::new(),
            tombstones: Tombstones::default(),
            own_writes: WriteTracker::new(),
            applied: AppliedFields::default(),
            next_write: 0,
            writes_under_way: BTreeSet::new(),
            lists: 0,
            unlisted: None,
            unconfirmed: BTreeSet::new(),
        }
    }

    pub(super) fn get(&self, key: &Key) -> Option<&Arc<K>> {
        self.objects.get(key)
    }

    /// The object that has this head, if it is known in this very version.
    pub(super) fn in_version(&self, head: Head<'_>) -> Option<&Arc<K>> {
        let is_same = |stored: &&Arc<K>| {
            let stored = stored.head();
            stored.uid == head.uid
                && stored.resource_version == head.resource_version
                && head.resource_version.is_some()
        };
        self.objects.get(&Key::at(head)).filter(is_same)
    }

    /// All objects, or those of a namespace, by key.
    pub(super) fn list(&self, namespace: Option<&str>) -> Vec<Arc<K>> {
        self.objects.list(namespace)
    }

    /// The objects that name `uid` as an owner, by key.
    pub(super) fn owned_by(&self, uid: &str) -> Vec<Arc<K>> {
        self.objects.owned_by(uid)
    }

    /// The watch, or a list, told of an object.
    pub(super) fn watched(&mut self, object: Arc<K>) -> Vec<Delivery<K>> {
        let key = Key::at(object.head());
        if let Some(unlisted) = &mut self.unlisted {
            unlisted.remove(&key);
        }
        let uid = object.head().uid;
        let stored = self.stored_uid(&key);
        let replaces = stored.is_some_and(|stored| stored != uid);
        if stored == Some(uid) {
            // Whatever its version: it lived when the list was taken, so the watch will tell of its end.
            self.unconfirmed.remove(&key);
        }
        if self.tombstones.hide(&key, object.head()) {
            return Vec::new();
        }
        // A list tells of the last version alone, not of those before; and where another object has taken the place of the
        // one that is known, nobody told of the end of that.
        let left_out = self.unlisted.is_some() || replaces;
        let version = if left_out { None } else { version(object.head()) };
        let change = self.put(&key, object);
        self.own_writes.watched(&key, version, change)
    }

    /// Appliers own this of an object with this head, which the watch or an answer just told of.
    pub(super) fn note_owned(&mut self, head: Head<'_>, owned: Vec<Owned>) {
        if self.in_version(head).is_some() {
            self.applied.note(&Key::at(head), head.resource_version, owned);
        }
    }

    /// What an applier owns of the object `key` in this version, if it is the one that is known.
    pub(super) fn applied(&self, key: &Key, version: Option<&str>, applier: &Applier) -> Option<Applied> {
        self.applied.get(key, version, applier)
    }

    /// Remembers what an apply to the object `key` left.
    pub(super) fn remember(&mut self, key: &Key, applier: &Applier, last: LastApply) {
        self.applied.remember(key, applier, last);
    }

    /// The watch told of the end of an object with this head.
    pub(super) fn watched_end(&mut self, head: Head<'_>) -> Vec<Delivery<K>> {
        let (key, uid) = (Key::at(head), head.uid);
        let was_known = self.tombstones.remove(&key, uid);
        self.bury_until_answered(&key, head);
        let ends = |stored: &Arc<K>| stored.head().uid == uid || !is_newer(stored.head(), head);
        let change = if self.objects.get(&key).is_some_and(ends) { self.remove(&key) } else { None };
        if was_known && change.is_none() {
            return Vec::new();
        }
        self.own_writes.watched(&key, version(head), change)
    }

    /// A list began: what it does not tell of is gone.
    pub(super) fn list_began(&mut self) {
        self.unlisted = Some(self.objects.iter().map(|object| Key::at(object.head())).collect());
    }

    /// The list is complete.
    pub(super) fn list_ended(&mut self) -> Vec<Delivery<K>> {
        let Some(mut gone) = self.unlisted.take() else { return Vec::new() };
        self.lists += 1;
        self.tombstones.list_ended(self.lists);
        gone.retain(|key| !self.unconfirmed.contains(key));
        let gone: Vec<_> = gone.iter().filter_map(|key| self.end(key)).collect();
        self.own_writes.listed().into_iter().chain(gone).collect()
    }

    /// Nobody looks at it any more: all that is known has ended.
    pub(super) fn left(&mut self) -> Vec<Delivery<K>> {
        self.unlisted = None;
        let all: Vec<Key> = self.objects.iter().map(|object| Key::at(object.head())).collect();
        let ended: Vec<_> = all.iter().filter_map(|key| self.end(key)).collect();
        self.own_writes.listed().into_iter().chain(ended).collect()
    }

    /// A write begins; [`State::write_ended`] must follow. It is one of the object and author that are named.
    pub(super) fn write_began(&mut self, own: Option<(&Key, &Arc<Author>)>) -> Ticket {
        if let Some((key, author)) = own {
            self.own_writes.began(key, author, self.stored_version(key));
        }
        let number = self.next_write;
        self.next_write += 1;
        self.writes_under_way.insert(number);
        Ticket { number, lists: self.lists }
    }

    /// A write is over, whatever came of it. It began as one of this object and author.
    pub(super) fn write_ended(
        &mut self,
        ticket: Ticket,
        own: Option<(&Key, &Arc<Author>)>,
    ) -> Vec<Delivery<K>> {
        let was_oldest = self.writes_under_way.first() == Some(&ticket.number);
        self.writes_under_way.remove(&ticket.number);
        if was_oldest {
            self.tombstones.answered(self.writes_under_way.first().copied().unwrap_or(self.next_write));
        }
        own.map(|(key, author)| self.own_writes.ended(key, author)).unwrap_or_default()
    }

    /// A write returned an object; as this author asked for it, from whom the change is withheld.
    pub(super) fn written(
        &mut self,
        ticket: Ticket,
        object: Arc<K>,
        author: Option<&Arc<Author>>,
    ) -> Option<Delivery<K>> {
        let key = Key::at(object.head());
        if self.tombstones.hide(&key, object.head()) {
            return None;
        }
        let during_list = self.unlisted.is_some() || self.lists != ticket.lists;
        let listed = self.is_listed(&key);
        let (before, version) = (self.stored_version(&key), version(object.head()));
        // Another object than the one that is known: somebody ended that.
        let is_same = self.stored_uid(&key).is_none_or(|stored| stored == object.head().uid);
        let change = self.put(&key, object);
        let recipients = match author.filter(|_| is_same).zip(version) {
            Some((author, version)) => {
                self.own_writes.answered(&key, author, version, before, change.as_ref())
            }
            None => {
                if change.is_some() {
                    self.own_writes.changed(&key, version);
                }
                Recipients::AllExcept(Vec::new())
            }
        };
        let change = change?;
        if during_list && !listed {
            self.unconfirmed.insert(key);
        }
        Some(Delivery::new(change, recipients))
    }

    /// A write ended the life of the object `key`, which has this `uid` if the answer said so.
    pub(super) fn written_end(&mut self, key: &Key, uid: Option<&str>) -> Option<Delivery<K>> {
        let uid = uid.or(self.stored_uid(key))?.to_owned();
        let ends_stored = self.stored_uid(key) == Some(&uid);
        let last = self.objects.get(key).filter(|_| ends_stored).and_then(|stored| version(stored.head()));
        self.tombstones.add(key, &uid, last, self.until_watched());
        if ends_stored { self.end(key) } else { None }
    }

    /// An object (and its uid) that only the server can tell of, once no list is under way.
    pub(super) fn unconfirmed(&self) -> Option<(Key, String)> {
        if self.unlisted.is_some() {
            return None;
        }
        let key = self.unconfirmed.first()?;
        Some((key.clone(), self.stored_uid(key)?.to_owned()))
    }

    /// The server told whether the object `key` with this `uid` is there.
    pub(super) fn confirmed(&mut self, key: &Key, uid: &str, there: bool) -> Option<Delivery<K>> {
        if self.stored_uid(key) != Some(uid) {
            return None;
        }
        self.unconfirmed.remove(key);
        if there {
            return None;
        }
        self.written_end(key, Some(uid))
    }

    /// How much is remembered besides the objects.
    #[cfg(test)]
    pub(super) fn remembered(&self) -> usize {
        self.tombstones.len() + self.unconfirmed.len() + self.own_writes.len()
    }

    /// Of how many objects something is withheld from somebody.
    #[cfg(test)]
    pub(super) fn writers(&self) -> usize {
        self.own_writes.len()
    }

    /// Whether the list that is under way told of the object that is known.
    fn is_listed(&self, key: &Key) -> bool {
        let unlisted = self.unlisted.as_ref();
        unlisted.is_some_and(|unlisted| !unlisted.contains(key) && !self.unconfirmed.contains(key))
            && self.objects.get(key).is_some()
    }

    fn stored_uid(&self, key: &Key) -> Option<&str> {
        self.objects.get(key).map(|object| object.head().uid)
    }

    fn stored_version(&self, key: &Key) -> Option<u64> {
        self.objects.get(key).and_then(|object| version(object.head()))
    }

    /// As long as a watch that is behind may tell of the life of what is gone now.
    fn until_watched(&self) -> Until {
        Until::Watched { list: self.lists + if self.unlisted.is_some() { 2 } else { 1 } }
    }

    fn put(&mut self, key: &Key, new: Arc<K>) -> Option<Change<K>> {
        if let Some(stored) = self.objects.get(key)
            && !is_newer(new.head(), stored.head())
        {
            return None;
        }
        let old = self.objects.insert(&new);
        self.unconfirmed.remove(key);
        Some(match old {
            Some(old) => Change::Updated { old, new },
            None => Change::Created(new),
        })
    }

    /// Takes an object away whose end everybody is told.
    fn end(&mut self, key: &Key) -> Option<Delivery<K>> {
        let change = self.remove(key)?;
        self.own_writes.changed(key, None);
        Some(Delivery::to_all(change))
    }

    fn remove(&mut self, key: &Key) -> Option<Change<K>> {
        let object = self.objects.remove(key)?;
        self.unconfirmed.remove(key);
        self.applied.forget(key);
        self.bury_until_answered(key, object.head());
        Some(Change::Deleted(object))
    }

    /// Remembers the end of an object as long as the answer to a write may be older.
    fn bury_until_answered(&mut self, key: &Key, head: Head<'_>) {
        if !self.writes_under_way.is_empty() {
            self.tombstones.add(key, head.uid, version(head), Until::Answered { write: self.next_write });
        }
    }
}
