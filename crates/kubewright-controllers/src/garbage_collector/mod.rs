//! The garbage collector: what is owned goes when its last owner is gone (`pkg/controller/garbagecollector`).
//!
//! It watches the metadata of every kind that is served, custom ones included, and looks at an object when its owners,
//! its finalizers or its deletion change, or when an owner of it does. What the caches show is a reason to look, never
//! to delete: before that the API server is asked for each owner, and the deletion holds only for the object as it was
//! looked at.

mod gc_action;
mod item;
mod kinds;
mod owners;
mod report;

use std::collections::BTreeSet;
use std::time::Duration;

use futures::future::join_all;
use futures::stream;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{DeleteParams, ListParams, ObjectMeta, Patch, PatchParams, Preconditions, PropagationPolicy};
use kubewright_runtime::{Context, Controller, Error, Informer, Key, Outcome, Reconciler};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::RwLock;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use self::gc_action::GcAction;
use self::item::{FOREGROUND, Item, Meta, ORPHAN, waits_with};
use self::kinds::Kinds;
use self::owners::{Absent, Unclear};
use crate::discovery::{Catalog, Served};

/// How many objects are worked on at a time.
const WORKERS: usize = 4;
/// How long the first list of a kind may take before the collector goes on without it.
const SYNC_TIMEOUT: Duration = Duration::from_secs(30);

/// The controller.
#[must_use]
pub(crate) fn controller() -> Controller {
    let (keys, mut received) = unbounded_channel();
    let collector =
        Collector { kinds: RwLock::default(), absent: Absent::default(), unresolved: Mutex::default(), keys };
    Controller::new("garbage-collector-controller", collector)
        .watches(|_: &CustomResourceDefinition| vec![discovery_key()])
        .source(stream::iter([discovery_key()]))
        .source(stream::poll_fn(move |cx| received.poll_recv(cx)))
        .concurrency(WORKERS)
}

/// Asks for a look at what is served; it is no object's key.
fn discovery_key() -> Key {
    Key::default()
}

struct Collector {
    /// Held for writing while kinds come: nothing is judged before their objects are known.
    kinds: RwLock<Kinds>,
    absent: Absent,
    /// Objects with an owner of a kind that nobody serves; looked at again when that changes.
    unresolved: Mutex<BTreeSet<Key>>,
    keys: UnboundedSender<Key>,
}

impl Reconciler for Collector {
    async fn reconcile(&self, ctx: &Context, key: &Key) -> Result<Outcome, Error> {
        if *key == discovery_key() {
            self.discover(ctx).await?;
            return Ok(Outcome::Done);
        }
        let Some(item) = Item::parse(key) else { return Ok(Outcome::Done) };
        let kinds = self.kinds.read().await;
        let (Some(object), Some(served)) = (kinds.object(&item), kinds.resource(&item)) else {
            self.look_at_dependents(&kinds, &item.uid);
            return Ok(Outcome::Done);
        };
        let look = Look { ctx, kinds: &kinds, served, meta: &object.metadata };
        if waits_with(&object.metadata, ORPHAN) {
            look.orphan_dependents(&item.uid).await?;
        } else if waits_with(&object.metadata, FOREGROUND) {
            look.finish_foreground(self, &item.uid).await?;
        } else if object.metadata.deletion_timestamp.is_none() {
            self.judge(&look, key).await?;
        }
        Ok(Outcome::Done)
    }
}

impl Collector {
    /// Watches what is served now, and waits until the objects of new kinds are known.
    async fn discover(&self, ctx: &Context) -> Result<(), Error> {
        let catalog = Catalog::fetch(ctx.client()).await?;
        let mut kinds = self.kinds.write().await;
        if !kinds.is_current(&catalog) {
            let renewal = kinds.renew(catalog, ctx.cache(), &self.keys);
            let synced = join_all(renewal.came.iter().map(Informer::synced));
            if tokio::time::timeout(SYNC_TIMEOUT, synced).await.is_err() {
                tracing::warn!("the objects of some kinds could not be listed; collecting without them");
            }
            self.unresolved.lock().extend(renewal.lost_owners);
        }
        for key in std::mem::take(&mut *self.unresolved.lock()) {
            self.look_at(key);
        }
        Ok(())
    }

    /// Deletes an object without owners, or has it forget those that it has no longer.
    async fn judge(&self, look: &Look<'_>, key: &Key) -> Result<(), Error> {
        let Look { ctx, kinds, served, meta } = *look;
        if owners::are_all_solid(kinds, meta) {
            return Ok(());
        }
        let (standings, misplaced) = match owners::standings(ctx, kinds, &self.absent, meta).await? {
            Ok(judged) => judged,
            Err(Unclear::UnknownKind) => {
                self.unresolved.lock().insert(key.clone());
                return Ok(());
            }
            Err(Unclear::NamespacedOwner(owner)) => {
                if kinds.lives_elsewhere(&owner) {
                    report::owner_of_another_namespace(ctx, &served.resource, meta, &owner).await;
                }
                return Ok(());
            }
        };
        for owner in &misplaced {
            report::owner_of_another_namespace(ctx, &served.resource, meta, owner).await;
        }
        let dependents = kinds.dependents(meta.uid.as_deref().unwrap_or_default());
        match gc_action::gc_action(meta, &standings, !dependents.is_empty()) {
            GcAction::Keep => Ok(()),
            GcAction::Detach(uids) => look.patch(&without_owners(meta, &uids)).await,
            GcAction::Delete(policy) => {
                let waiting = dependents.iter().any(|(_, object)| waits_with(&object.metadata, FOREGROUND));
                if matches!(policy, PropagationPolicy::Foreground) && waiting && blocks_an_owner(meta) {
                    // Owners and dependents that wait for each other would wait for ever. The patch brings it back here.
                    return look.patch(&unblocking(meta)).await;
                }
                look.delete(policy).await
            }
        }
    }

    fn look_at_dependents(&self, kinds: &Kinds, uid: &str) {
        for (resource, object) in kinds.dependents(uid) {
            self.look_at(Item::of(resource, &object.metadata).key());
        }
    }

    fn look_at(&self, key: Key) {
        // Nobody receives any more when the manager stops.
        let _ = self.keys.send(key);
    }
}

/// An object that is looked at.
#[derive(Clone, Copy)]
struct Look<'a> {
    ctx: &'a Context,
    kinds: &'a Kinds,
    served: &'a Served,
    meta: &'a ObjectMeta,
}

impl Look<'_> {
    /// Has the dependents of a foreground deletion looked at, and lets it end when none blocks it any more. Those that do not block it
    /// are judged before: where another finalizer holds it, it would be an owner like any other to them afterwards.
    async fn finish_foreground(&self, collector: &Collector, uid: &str) -> Result<(), Error> {
        let dependents = self.kinds.dependents(uid);
        let blocked = dependents.iter().any(|(_, object)| blocks(&object.metadata, uid));
        for (resource, object) in &dependents {
            if object.metadata.deletion_timestamp.is_some() {
                continue;
            }
            let item = Item::of(resource, &object.metadata);
            match self.kinds.resource(&item) {
                Some(served) if !blocked => {
                    let look = Look { served, meta: &object.metadata, ..*self };
                    collector.judge(&look, &item.key()).await?;
                }
                _ => collector.look_at(item.key()),
            }
        }
        if blocked { Ok(()) } else { self.patch(&without_finalizer(self.meta, FOREGROUND)).await }
    }

    /// Takes this owner off all its dependents, then lets it go. The API server is asked for them, not the cache: a
    /// dependent that is missed here would be deleted.
    async fn orphan_dependents(&self, uid: &str) -> Result<(), Error> {
        let uids = [uid.to_owned()];
        let client = self.ctx.client();
        let mut dependents = Vec::new();
        for served in self.kinds.served() {
            if self.served.namespaced && !served.namespaced {
                continue;
            }
            let namespace = self.meta.namespace.as_deref().filter(|_| self.served.namespaced);
            let listed = served.api(client, namespace).list_metadata(&ListParams::default()).await;
            let listed = match listed.map_err(Error::from) {
                // The kind is served no more, which the catalog does not say yet: its objects are gone with it.
                Err(error) if error.is_not_found() => continue,
                listed => listed?,
            };
            let is_one =
                |meta: &ObjectMeta| meta.owner_references.iter().flatten().any(|owner| owner.uid == uid);
            let of_kind = listed.into_iter().filter(|object| is_one(&object.metadata));
            dependents.extend(of_kind.map(|object| (served, object)));
        }
        dependents.extend(self.elsewhere(uid));
        // All at once: what controls them is not to see some of them with an owner and some without (`orphanDependents`).
        let let_go = dependents.iter().map(|(served, dependent)| async {
            let look = Look { served, meta: &dependent.metadata, ..*self };
            look.patch(&without_owners(&dependent.metadata, &uids)).await
        });
        join_all(let_go).await.into_iter().collect::<Result<(), Error>>()?;
        self.patch(&without_finalizer(self.meta, ORPHAN)).await
    }

    /// The dependents that are not where an owner's belong, as the caches have them: of the cluster, or of another namespace.
    fn elsewhere(&self, uid: &str) -> Vec<(&Served, Meta)> {
        let Some(namespace) = self.meta.namespace.as_ref().filter(|_| self.served.namespaced) else {
            return Vec::new();
        };
        let all = self.kinds.dependents(uid).into_iter();
        all.filter(|(_, object)| object.metadata.namespace.as_ref() != Some(namespace))
            .filter_map(|(resource, object)| {
                let served = self.kinds.resource(&Item::of(resource, &object.metadata))?;
                Some((served, (*object).clone()))
            })
            .collect()
    }

    async fn delete(&self, policy: PropagationPolicy) -> Result<(), Error> {
        let (uid, resource_version) = (self.meta.uid.clone(), self.meta.resource_version.clone());
        let params = DeleteParams {
            propagation_policy: Some(policy),
            preconditions: Some(Preconditions { uid, resource_version }),
            ..DeleteParams::default()
        };
        forgive_absence(self.api().delete(self.name(), &params).await)
    }

    async fn patch(&self, patch: &Value) -> Result<(), Error> {
        let patch = Patch::Merge(patch);
        forgive_absence(self.api().patch_metadata(self.name(), &PatchParams::default(), &patch).await)
    }

    fn api(&self) -> kube::Api<kube::core::DynamicObject> {
        self.served.api(self.ctx.client(), self.meta.namespace.as_deref())
    }

    fn name(&self) -> &str {
        self.meta.name.as_deref().unwrap_or_default()
    }
}

/// What is gone needs nothing more. A conflict is an error: the object changed, and is to be looked at again.
fn forgive_absence<T>(written: kube::Result<T>) -> Result<(), Error> {
    match written.map_err(Error::from) {
        Err(error) if !error.is_not_found() => Err(error),
        _ => Ok(()),
    }
}

/// Whether the object blocks the deletion of its owner `uid`.
fn blocks(meta: &ObjectMeta, uid: &str) -> bool {
    let mut owners = meta.owner_references.iter().flatten();
    owners.any(|owner| owner.uid == uid && owner.block_owner_deletion == Some(true))
}

/// Whether the object blocks the deletion of any owner.
fn blocks_an_owner(meta: &ObjectMeta) -> bool {
    meta.owner_references.iter().flatten().any(|owner| owner.block_owner_deletion == Some(true))
}

/// The merge patch that removes the owners with these uids from the object as it was looked at.
fn without_owners(meta: &ObjectMeta, uids: &[String]) -> Value {
    let owners: Vec<_> =
        meta.owner_references.iter().flatten().filter(|owner| !uids.contains(&owner.uid)).collect();
    let owners = if owners.is_empty() { Value::Null } else { json!(owners) };
    patch(meta, "ownerReferences", owners)
}

/// The merge patch after which the object blocks the deletion of none of its owners.
fn unblocking(meta: &ObjectMeta) -> Value {
    let mut owners = meta.owner_references.clone().unwrap_or_default();
    for owner in &mut owners {
        owner.block_owner_deletion = Some(false);
    }
    patch(meta, "ownerReferences", json!(owners))
}

/// The merge patch that removes a finalizer from the object as it was looked at.
fn without_finalizer(meta: &ObjectMeta, finalizer: &str) -> Value {
    let left: Vec<_> = meta.finalizers.iter().flatten().filter(|has| *has != finalizer).collect();
    let left = if left.is_empty() { Value::Null } else { json!(left) };
    patch(meta, "finalizers", left)
}

fn patch(meta: &ObjectMeta, field: &str, value: Value) -> Value {
    let mut metadata = json!({"uid": meta.uid, "resourceVersion": meta.resource_version});
    metadata[field] = value;
    json!({"metadata": metadata})
}
