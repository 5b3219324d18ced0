//! Objects by their keys and by their owners, in tables of places: nothing is copied of what the objects say themselves, and an
//! object that replaces one with the same key and owners costs one lookup.

use std::{hash::BuildHasher, iter, sync::Arc};

use hashbrown::{DefaultHashBuilder, HashTable};
use parking_lot::Mutex;

use crate::{
    Key,
    object::{Head, Kept},
};

/// Where an object is in [`Objects::places`].
type Place = u32;

/// Objects by key, and by owner.
pub(super) struct Objects<K: ?Sized> {
    places: Vec<Option<Arc<K>>>,
    free: Vec<Place>,
    by_key: HashTable<Place>,
    by_owner: HashTable<Child>,
    /// In which order they are listed.
    order: Mutex<Order>,
    hashes: Hashes,
}

/// An object as one of an owner.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Child {
    place: Place,
    /// Which of the object's owners.
    owner: u32,
}

/// Places by the keys of their objects, as far as somebody asked for that.
#[derive(Default)]
struct Order {
    /// Each place that is taken. Not sorted: behind those that once were, perhaps twice, and among others that are free.
    places: Vec<Place>,
    is_sorted: bool,
}

#[derive(Default)]
struct Hashes(DefaultHashBuilder);

impl Hashes {
    fn of_key(&self, namespace: Option<&str>, name: &str) -> u64 {
        self.0.hash_one((namespace, name))
    }

    fn of_head(&self, head: Head<'_>) -> u64 {
        self.of_key(head.namespace, head.name)
    }

    fn of_owner(&self, uid: &str) -> u64 {
        self.0.hash_one(uid)
    }
}

fn sort_key<K: Kept + ?Sized>(object: &K) -> (Option<&str>, &str) {
    let head = object.head();
    (head.namespace, head.name)
}

/// The object at a place that is in a table.
fn at<K: ?Sized>(places: &[Option<Arc<K>>], place: Place) -> &Arc<K> {
    places[place as usize].as_ref().expect("tables have places that are taken")
}

fn uid_of<K: Kept + ?Sized>(places: &[Option<Arc<K>>], child: Child) -> &str {
    at(places, child.place).head().owners.uids().nth(child.owner as usize).unwrap_or_default()
}

impl<K: Kept + ?Sized> Objects<K> {
    pub(super) fn new() -> Self {
        Self {
            places: Vec::new(),
            free: Vec::new(),
            by_key: HashTable::new(),
            by_owner: HashTable::new(),
            order: Mutex::default(),
            hashes: Hashes::default(),
        }
    }

    pub(super) fn get(&self, key: &Key) -> Option<&Arc<K>> {
        self.place(key.namespace.as_deref(), &key.name).map(|place| at(&self.places, place))
    }

    /// All of them, in any order.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Arc<K>> {
        self.places.iter().flatten()
    }

    /// All of them, or those of a namespace, by key.
    pub(super) fn list(&self, namespace: Option<&str>) -> Vec<Arc<K>> {
        let mut order = self.order.lock();
        if !order.is_sorted {
            self.sort(&mut order);
        }
        let object = |place: &Place| at(&self.places, *place);
        let places = match namespace {
            None => &order.places[..],
            Some(_) => {
                let begin = order.places.partition_point(|place| object(place).head().namespace < namespace);
                let behind = &order.places[begin..];
                let end = behind.partition_point(|place| object(place).head().namespace == namespace);
                &behind[..end]
            }
        };
        places.iter().map(object).cloned().collect()
    }

    /// Those that name `uid` as an owner, by key.
    pub(super) fn owned_by(&self, uid: &str) -> Vec<Arc<K>> {
        let hash = self.hashes.of_owner(uid);
        let children = self.by_owner.iter_hash(hash).filter(|child| uid_of(&self.places, **child) == uid);
        let mut objects: Vec<_> = children.map(|child| at(&self.places, child.place).clone()).collect();
        objects.sort_by(|a, b| sort_key(&**a).cmp(&sort_key(&**b)));
        // One that names an owner twice.
        objects.dedup_by(|a, b| Arc::ptr_eq(a, b));
        objects
    }

    /// Puts an object in the place of the one that has its key, which is returned.
    pub(super) fn insert(&mut self, object: &Arc<K>) -> Option<Arc<K>> {
        let head = object.head();
        if let Some(place) = self.place(head.namespace, head.name) {
            let has_same_owners = at(&self.places, place).head().owners.uids().eq(head.owners.uids());
            if !has_same_owners {
                self.disown(place);
            }
            let old = self.places[place as usize].replace(object.clone());
            if !has_same_owners {
                self.own(place);
            }
            return old;
        }
        let place = self.free.pop().unwrap_or_else(|| {
            self.places.push(None);
            Place::try_from(self.places.len() - 1).expect("a kind has fewer than 2^32 objects")
        });
        self.places[place as usize] = Some(object.clone());
        let (places, hashes) = (&self.places, &self.hashes);
        let hash = |place: &Place| hashes.of_head(at(places, *place).head());
        self.by_key.insert_unique(hashes.of_head(head), place, hash);
        self.own(place);
        let order = self.order.get_mut();
        order.is_sorted = false;
        order.places.push(place);
        if order.places.len() > 2 * self.by_key.len() + 64 {
            // Nobody lists them.
            order.places.retain(|place| self.places[*place as usize].is_some());
            order.places.sort_unstable();
            order.places.dedup();
        }
        None
    }

    pub(super) fn remove(&mut self, key: &Key) -> Option<Arc<K>> {
        let place = self.place(key.namespace.as_deref(), &key.name)?;
        self.disown(place);
        let hash = self.hashes.of_key(key.namespace.as_deref(), &key.name);
        if let Ok(entry) = self.by_key.find_entry(hash, |other| *other == place) {
            entry.remove();
        }
        self.order.get_mut().is_sorted = false;
        self.free.push(place);
        self.places[place as usize].take()
    }

    fn place(&self, namespace: Option<&str>, name: &str) -> Option<Place> {
        let is_it = |place: &Place| sort_key(&**at(&self.places, *place)) == (namespace, name);
        self.by_key.find(self.hashes.of_key(namespace, name), is_it).copied()
    }

    /// The object at this place is one of its owners from now on.
    fn own(&mut self, place: Place) {
        let (places, hashes) = (&self.places, &self.hashes);
        for (owner, uid) in iter::zip(0.., at(places, place).head().owners.uids()) {
            self.by_owner.insert_unique(hashes.of_owner(uid), Child { place, owner }, |child| {
                hashes.of_owner(uid_of(places, *child))
            });
        }
    }

    /// As long as the object is there that was put in with these owners.
    fn disown(&mut self, place: Place) {
        for (owner, uid) in iter::zip(0.., at(&self.places, place).head().owners.uids()) {
            let (hash, child) = (self.hashes.of_owner(uid), Child { place, owner });
            if let Ok(entry) = self.by_owner.find_entry(hash, |other| *other == child) {
                entry.remove();
            }
        }
    }

    /// What was sorted before is sorted still, and takes one look at each.
    fn sort(&self, order: &mut Order) {
        order.places.retain(|place| self.places[*place as usize].is_some());
        order
            .places
            .sort_by(|a, b| sort_key(&**at(&self.places, *a)).cmp(&sort_key(&**at(&self.places, *b))));
        order.places.dedup();
        order.is_sorted = true;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use k8s_openapi::{api::core::v1::ConfigMap, apimachinery::pkg::apis::meta::v1::OwnerReference};
    use kube::api::ObjectMeta;
    use proptest::{collection::vec, prelude::*};

    use super::*;

    /// What is done with the object of a namespace and a name.
    #[derive(Clone, Debug)]
    enum Step {
        /// It is there, with these owners.
        Put(Vec<u8>),
        Remove,
        List,
    }

    fn object(key: &Key, owners: &[u8]) -> Arc<ConfigMap> {
        let owner = |owner: &u8| OwnerReference { uid: owner.to_string(), ..OwnerReference::default() };
        let metadata = ObjectMeta {
            namespace: key.namespace.clone(),
            name: Some(key.name.clone()),
            owner_references: Some(owners.iter().map(owner).collect()),
            ..ObjectMeta::default()
        };
        Arc::new(ConfigMap { metadata, ..ConfigMap::default() })
    }

    fn steps() -> impl Strategy<Value = Vec<(u8, u8, Step)>> {
        let owners = vec(0_u8..3, 0..3);
        let step =
            prop_oneof![4 => owners.prop_map(Step::Put), 3 => Just(Step::Remove), 1 => Just(Step::List)];
        vec((0_u8..3, 0_u8..8, step), 0..200)
    }

    fn is_same(a: &[Arc<ConfigMap>], b: &[&Arc<ConfigMap>]) -> bool {
        a.len() == b.len() && iter::zip(a, b).all(|(a, b)| Arc::ptr_eq(a, b))
    }

    proptest! {
        #[test]
        fn what_is_found_by_key_by_owner_and_in_lists_is_what_was_put_there(steps in steps()) {
            let (mut objects, mut model) = (Objects::new(), BTreeMap::new());
            for (namespace, name, step) in steps {
                let namespace = (namespace > 0).then(|| namespace.to_string());
                let key = Key::new(namespace, name.to_string());
                match step {
                    Step::Put(owners) => {
                        let object = object(&key, &owners);
                        let old = objects.insert(&object);
                        let before = model.insert(key.clone(), (object, owners)).map(|(object, _)| object);
                        prop_assert_eq!(old.as_ref().map(Arc::as_ptr), before.as_ref().map(Arc::as_ptr));
                        let created = old.is_none();
                        prop_assert!(!created || objects.order.lock().places.len() <= 2 * model.len() + 64);
                    }
                    Step::Remove => {
                        let (old, before) = (objects.remove(&key), model.remove(&key).map(|(object, _)| object));
                        prop_assert_eq!(old.as_ref().map(Arc::as_ptr), before.as_ref().map(Arc::as_ptr));
                    }
                    Step::List => {
                        for namespace in [None, key.namespace.as_deref()] {
                            let wanted = |key: &Key| namespace.is_none() || key.namespace.as_deref() == namespace;
                            let those = model.iter().filter(|(key, _)| wanted(key));
                            let all: Vec<_> = those.map(|(_, (object, _))| object).collect();
                            prop_assert!(is_same(&objects.list(namespace), &all));
                        }
                    }
                }
                let (found, there) = (objects.get(&key), model.get(&key).map(|(object, _)| object));
                prop_assert_eq!(found.map(Arc::as_ptr), there.map(Arc::as_ptr));
                for owner in 0..3 {
                    let those = model.values().filter(|(_, owners)| owners.contains(&owner));
                    let children: Vec<_> = those.map(|(object, _)| object).collect();
                    prop_assert!(is_same(&objects.owned_by(&owner.to_string()), &children));
                }
                prop_assert_eq!(objects.iter().count(), model.len());
            }
        }
    }
}
