//! Objects in the order of their keys, and of their owners: sets without copies of what the objects say themselves.

use std::{
    borrow::Borrow,
    cmp::Ordering,
    collections::{BTreeSet, btree_set},
    iter,
    ops::Bound,
    sync::Arc,
};

use crate::{Key, object::Kept};

/// The place of something in a set: by the uid of an owner (none in a set of all objects), namespace and name.
type SortKey<'a> = (&'a str, Option<&'a str>, &'a str);

/// What has a place in a set, and finds what is at that place.
trait Placed {
    fn sort_key(&self) -> SortKey<'_>;
}

impl PartialEq for dyn Placed {
    fn eq(&self, other: &Self) -> bool {
        self.sort_key() == other.sort_key()
    }
}

impl Eq for dyn Placed {}

impl PartialOrd for dyn Placed {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for dyn Placed {
    fn cmp(&self, other: &Self) -> Ordering {
        self.sort_key().cmp(&other.sort_key())
    }
}

impl Placed for Key {
    fn sort_key(&self) -> SortKey<'_> {
        ("", self.namespace.as_deref(), &self.name)
    }
}

/// An owner's uid, and the first key.
struct First(String);

impl Placed for First {
    fn sort_key(&self) -> SortKey<'_> {
        (&self.0, None, "")
    }
}

/// An object; as one of the owner whose place among its owners this is, or on its own.
struct Entry<K: ?Sized> {
    object: Arc<K>,
    owner: Option<u32>,
}

impl<K: Kept + ?Sized> Placed for Entry<K> {
    fn sort_key(&self) -> SortKey<'_> {
        let head = self.object.head();
        let owner = self.owner.and_then(|owner| head.owners.uids().nth(owner as usize)).unwrap_or_default();
        (owner, head.namespace, head.name)
    }
}

impl<K: Kept + ?Sized> Borrow<dyn Placed> for Entry<K> {
    fn borrow(&self) -> &(dyn Placed + 'static) {
        self
    }
}

impl<K: Kept + ?Sized> PartialEq for Entry<K> {
    fn eq(&self, other: &Self) -> bool {
        self.sort_key() == other.sort_key()
    }
}

impl<K: Kept + ?Sized> Eq for Entry<K> {}

impl<K: Kept + ?Sized> PartialOrd for Entry<K> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<K: Kept + ?Sized> Ord for Entry<K> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.sort_key().cmp(&other.sort_key())
    }
}

/// Objects by key, and by owner and key.
pub(super) struct Objects<K: ?Sized> {
    all: BTreeSet<Entry<K>>,
    owned: BTreeSet<Entry<K>>,
}

impl<K: Kept + ?Sized> Objects<K> {
    pub(super) fn new() -> Self {
        Self { all: BTreeSet::new(), owned: BTreeSet::new() }
    }

    pub(super) fn get(&self, key: &Key) -> Option<&Arc<K>> {
        self.all.get(key as &dyn Placed).map(|entry| &entry.object)
    }

    /// All of them, by key.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Arc<K>> {
        self.all.iter().map(|entry| &entry.object)
    }

    /// Those of a namespace, by key.
    pub(super) fn of_namespace(&self, namespace: &str) -> impl Iterator<Item = &Arc<K>> {
        from(&self.all, &Key::namespaced(namespace, ""))
            .map(|entry| &entry.object)
            .take_while(move |object| object.head().namespace == Some(namespace))
    }

    /// Those that name `uid` as an owner, by key.
    pub(super) fn owned_by(&self, uid: &str) -> impl Iterator<Item = &Arc<K>> {
        let first = First(uid.to_owned());
        from(&self.owned, &first)
            .take_while(move |entry| entry.sort_key().0 == uid)
            .map(|entry| &entry.object)
    }

    /// Puts an object in the place of the one that has its key, which is returned.
    pub(super) fn insert(&mut self, object: &Arc<K>) -> Option<Arc<K>> {
        let old = self.all.replace(Entry { object: object.clone(), owner: None });
        if let Some(old) = &old {
            self.disown(&old.object);
        }
        for (owner, _) in iter::zip(0.., object.head().owners.uids()) {
            self.owned.replace(Entry { object: object.clone(), owner: Some(owner) });
        }
        old.map(|old| old.object)
    }

    pub(super) fn remove(&mut self, key: &Key) -> Option<Arc<K>> {
        let object = self.all.take(key as &dyn Placed)?.object;
        self.disown(&object);
        Some(object)
    }

    fn disown(&mut self, object: &Arc<K>) {
        for (owner, _) in iter::zip(0.., object.head().owners.uids()) {
            self.owned.remove(&Entry { object: object.clone(), owner: Some(owner) });
        }
    }
}

/// What stands at a place, and behind it.
fn from<'a, K: Kept + ?Sized>(
    entries: &'a BTreeSet<Entry<K>>,
    sort_key: &(dyn Placed + 'static),
) -> btree_set::Range<'a, Entry<K>> {
    entries.range::<dyn Placed, _>((Bound::Included(sort_key), Bound::Unbounded))
}
