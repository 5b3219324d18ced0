//! The kinds that the collector watches, and their objects: the graph of owners and dependents is looked up in the
//! caches, it is not built a second time.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kube::api::ObjectMeta;
use kube::core::ApiResource;
use kubewright_runtime::{Cache, Informer, Key};
use tokio::sync::mpsc::UnboundedSender;

use super::item::{self, Item, Meta};
use crate::discovery::{Catalog, Served};

/// Events are by far the most frequent objects, and nobody's owner or dependent (`ignoredResources`).
const IGNORED: [(&str, &str); 2] = [("", "Event"), ("events.k8s.io", "Event")];

/// A group and a kind.
type Id = (String, String);

/// What a new catalog brought.
pub(super) struct Renewal {
    pub(super) came: Vec<Informer<Meta>>,
    /// Objects with an owner of a kind that is served no longer: nobody may have told of the end of that owner.
    pub(super) lost_owners: Vec<Key>,
}

/// What is served, and the metadata of all objects of it.
#[derive(Default)]
pub(super) struct Kinds {
    catalog: Catalog,
    informers: BTreeMap<Id, (Served, Informer<Meta>)>,
    /// Those that were served once, and are not.
    went: BTreeSet<Id>,
}

impl Kinds {
    /// Takes over a new catalog: watches the kinds that came, which tell `keys` what is to be looked at, and forgets
    /// those that went.
    pub(super) fn renew(&mut self, catalog: Catalog, cache: &Cache, keys: &UnboundedSender<Key>) -> Renewal {
        let wanted: BTreeMap<_, _> = catalog
            .collectable()
            .map(|served| (id(&served.resource), served.clone()))
            .filter(|((group, kind), _)| !IGNORED.contains(&(group, kind)))
            .collect();
        let went: BTreeSet<Id> =
            self.informers.keys().filter(|kind| !wanted.contains_key(*kind)).cloned().collect();
        self.went.retain(|kind| !wanted.contains_key(kind));
        self.informers.retain(|kind, (served, _)| wanted.get(kind) == Some(served));
        let mut came = Vec::new();
        for (kind, served) in wanted {
            if self.informers.contains_key(&kind) {
                continue;
            }
            let informer = cache.watch::<Meta>(&served.resource);
            let (resource, keys) = (served.resource.clone(), keys.clone());
            informer.subscribe(move |change| {
                for key in item::concerned(&resource, change) {
                    // Nobody receives any more when the manager stops.
                    let _ = keys.send(key);
                }
            });
            came.push(informer.clone());
            self.informers.insert(kind, (served, informer));
        }
        self.catalog = catalog;
        let lost_owners = if went.is_empty() { Vec::new() } else { self.dependents_of(&went) };
        self.went.extend(went);
        Renewal { came, lost_owners }
    }

    /// Whether `catalog` is the one that is in use.
    pub(super) fn is_current(&self, catalog: &Catalog) -> bool {
        self.catalog == *catalog
    }

    /// All kinds that are watched.
    pub(super) fn served(&self) -> impl Iterator<Item = &Served> {
        self.informers.values().map(|(served, _)| served)
    }

    /// The resource of an object's kind; `None` while nobody serves it.
    pub(super) fn resource(&self, item: &Item) -> Option<&Served> {
        self.catalog.find(&item.group, &item.kind)
    }

    /// Whether an object's kind was served once, and is not.
    pub(super) fn went(&self, item: &Item) -> bool {
        self.went.contains(&(item.group.clone(), item.kind.clone()))
    }

    /// The objects with an owner of one of these kinds.
    fn dependents_of(&self, kinds: &BTreeSet<Id>) -> Vec<Key> {
        let objects = self.informers.values().flat_map(|(served, informer)| {
            informer.list(None).into_iter().map(|object| (&served.resource, object))
        });
        let owned = objects.filter(|(_, object)| {
            Item::owners(&object.metadata).any(|owner| kinds.contains(&(owner.group, owner.kind)))
        });
        owned.map(|(resource, object)| Item::of(resource, &object.metadata).key()).collect()
    }

    /// The object as the cache has it; `None` when it is gone, or another has its name now.
    pub(super) fn object(&self, item: &Item) -> Option<Arc<Meta>> {
        let (served, informer) = self.informers.get(&(item.group.clone(), item.kind.clone()))?;
        let namespace = item.namespace.clone().filter(|_| served.namespaced);
        let object = informer.get(&Key::new(namespace, &item.name))?;
        (object.metadata.uid.as_deref() == Some(&item.uid)).then_some(object)
    }

    /// The objects of all kinds that name `uid` as an owner.
    pub(super) fn dependents(&self, uid: &str) -> Vec<(&ApiResource, Arc<Meta>)> {
        self.informers
            .values()
            .flat_map(|(served, informer)| {
                informer.owned_by(uid).into_iter().map(|object| (&served.resource, object))
            })
            .collect()
    }

    /// Whether an object of the item's kind has its uid and lives in another namespace. One that is gone from its own may be in the
    /// cache for a moment still.
    pub(super) fn lives_elsewhere(&self, item: &Item) -> bool {
        let known = self.informers.get(&(item.group.clone(), item.kind.clone()));
        known.is_some_and(|(_, informer)| {
            informer.list(None).iter().any(|object| is_elsewhere(&object.metadata, item))
        })
    }
}

fn is_elsewhere(meta: &ObjectMeta, item: &Item) -> bool {
    meta.uid.as_deref() == Some(&item.uid) && meta.namespace != item.namespace
}

fn id(resource: &ApiResource) -> Id {
    (resource.group.clone(), resource.kind.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_that_the_cache_has_still_does_not_live_elsewhere() {
        let owner = |namespace: Option<&str>| Item {
            group: String::new(),
            kind: "ConfigMap".into(),
            namespace: namespace.map(str::to_owned),
            name: "owner".into(),
            uid: "u".into(),
        };
        let known = |uid: &str| ObjectMeta {
            uid: Some(uid.into()),
            namespace: Some("shop".into()),
            ..ObjectMeta::default()
        };
        assert!(!is_elsewhere(&known("u"), &owner(Some("shop"))));
        assert!(is_elsewhere(&known("u"), &owner(Some("other"))));
        assert!(is_elsewhere(&known("u"), &owner(None)));
        assert!(!is_elsewhere(&known("another"), &owner(None)));
    }
}
