//! Owners that lost a child lately: before one of them gets a child again, the API server is asked whether it is still there.
//!
//! A watch that lags does not tell that an owner is gone. The garbage collector takes its children, or the owner from them,
//! which is a reason to make others: without the question, the two would work against one another for as long as the watch
//! lags. What the controller deletes itself is no loss, and a creation for an owner that has lost nothing costs no request.

use std::{
    collections::{BTreeSet, VecDeque},
    sync::Arc,
};

use futures::{FutureExt, future::BoxFuture};
use kube::{Client, api::ObjectMeta, core::PartialObjectMeta};
use parking_lot::Mutex;

use crate::{
    Error, Key, Object,
    endpoint::Endpoint,
    owner::{controller_key, controller_of},
};

/// So many owners are remembered; of those whose loss is longer ago, nobody is asked.
const MOST: usize = 4096;
/// The finalizers of an owner that the garbage collector parts from its dependents (`metav1.FinalizerDeleteDependents`,
/// `metav1.FinalizerOrphanDependents`): what is made for it is taken as if it were gone.
const PARTING: [&str; 2] = ["foregroundDeletion", "orphan"];

/// The objects of a controller's own kind that lost something they control. Clones share it.
#[derive(Clone)]
pub(crate) struct OrphanGuard(Arc<Inner>);

struct Inner {
    /// Finds the key of the owner of an object with this metadata.
    owner_key: fn(&ObjectMeta) -> Option<Key>,
    /// Asks for an owner's metadata.
    ask: for<'a> fn(&'a Client, &'a Key) -> BoxFuture<'a, kube::Result<Option<ObjectMeta>>>,
    kind: String,
    lost: Mutex<Lost>,
}

/// As long as it is kept, the controller is deleting an object.
pub(crate) struct OwnDeletion {
    orphan_guard: OrphanGuard,
    uid: String,
}

#[derive(Default)]
struct Lost {
    uids: BTreeSet<Arc<str>>,
    /// Oldest first.
    order: VecDeque<Arc<str>>,
    /// The uids of what the controller is deleting, once for each request.
    deleting: Vec<String>,
}

impl OrphanGuard {
    /// Of owners of this kind.
    pub(crate) fn of<O: Object>() -> Self {
        Self(Arc::new(Inner {
            owner_key: controller_key::<O>,
            ask: ask::<O>,
            kind: O::kind(&()).into_owned(),
            lost: Mutex::default(),
        }))
    }

    /// The controller deletes the object of this uid itself.
    pub(crate) fn deleting(&self, uid: &str) -> OwnDeletion {
        self.0.lost.lock().deleting.push(uid.to_owned());
        OwnDeletion { orphan_guard: self.clone(), uid: uid.to_owned() }
    }

    /// An object that had the metadata `before` has other metadata `now`, or is gone.
    pub(crate) fn note(&self, before: &ObjectMeta, now: Option<&ObjectMeta>) {
        let Some(owner) = controller_of(before) else { return };
        let is_kept = now.and_then(controller_of).is_some_and(|controller| controller.uid == owner.uid);
        if is_kept || (self.0.owner_key)(before).is_none() {
            return;
        }
        let mut lost = self.0.lost.lock();
        if !before.uid.as_ref().is_some_and(|uid| lost.deleting.contains(uid)) {
            lost.add(&owner.uid);
        }
    }

    /// Whether an object with this metadata may be made.
    ///
    /// # Errors
    /// When its owner has lost a child and is gone, or it cannot be found out.
    pub(crate) async fn look_for_owner(&self, client: &Client, child: &ObjectMeta) -> Result<(), Error> {
        let (Some(key), Some(owner)) = ((self.0.owner_key)(child), controller_of(child)) else {
            return Ok(());
        };
        if !self.0.lost.lock().uids.contains(&*owner.uid) {
            return Ok(());
        }
        let found = (self.0.ask)(client, &key).await?;
        if !found.is_some_and(|found| keeps_children(&found, &owner.uid)) {
            return Err(Error::OwnerGone(format!("{} {key}", self.0.kind)));
        }
        self.0.lost.lock().uids.remove(&*owner.uid);
        Ok(())
    }
}

impl Drop for OwnDeletion {
    fn drop(&mut self) {
        let deleting = &mut self.orphan_guard.0.lost.lock().deleting;
        if let Some(position) = deleting.iter().position(|uid| *uid == self.uid) {
            deleting.swap_remove(position);
        }
    }
}

impl Lost {
    fn add(&mut self, uid: &str) {
        let uid: Arc<str> = uid.into();
        if !self.uids.insert(uid.clone()) {
            return;
        }
        self.order.push_back(uid);
        if self.order.len() > MOST
            && let Some(oldest) = self.order.pop_front()
        {
            self.uids.remove(&oldest);
        }
    }
}

fn ask<'a, O: Object>(client: &'a Client, key: &'a Key) -> BoxFuture<'a, kube::Result<Option<ObjectMeta>>> {
    async move {
        let endpoint = Endpoint::<PartialObjectMeta<O>>::new(client, &(), key.namespace.as_deref());
        Ok(endpoint.get(&key.name).await?.map(|owner| owner.metadata))
    }
    .boxed()
}

/// Whether what the owner of this uid controls is left to it, when this is what there is under its name.
fn keeps_children(found: &ObjectMeta, uid: &str) -> bool {
    let parts = found.finalizers.iter().flatten().any(|finalizer| PARTING.contains(&finalizer.as_str()));
    found.uid.as_deref() == Some(uid) && !(found.deletion_timestamp.is_some() && parts)
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

    use super::*;

    #[test]
    fn another_of_the_same_name_or_one_that_is_parted_from_its_children_is_not_there() {
        let meta = |uid: &str, finalizer: Option<&str>, is_going: bool| ObjectMeta {
            uid: Some(uid.to_owned()),
            finalizers: finalizer.map(|finalizer| vec![finalizer.to_owned()]),
            deletion_timestamp: is_going.then_some(Time(jiff::Timestamp::UNIX_EPOCH)),
            ..ObjectMeta::default()
        };
        assert!(keeps_children(&meta("a", None, false), "a"));
        assert!(!keeps_children(&meta("b", None, false), "a"));
        for finalizer in PARTING {
            assert!(!keeps_children(&meta("a", Some(finalizer), true), "a"), "{finalizer}");
        }
        assert!(
            keeps_children(&meta("a", Some("shop.example/bill"), true), "a"),
            "its cleanup may need some"
        );
    }

    #[test]
    fn only_the_last_losses_are_remembered() {
        let mut lost = Lost::default();
        for number in 0..=MOST {
            lost.add(&number.to_string());
            lost.add(&number.to_string());
        }
        assert_eq!((lost.uids.len(), lost.order.len()), (MOST, MOST));
        assert!(!lost.uids.contains("0") && lost.uids.contains("1"));
    }
}
