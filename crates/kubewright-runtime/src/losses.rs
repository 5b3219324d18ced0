//! Owners that lost a child lately: before one of them gets a child again, the API server is asked whether it is still there.
//!
//! A watch that lags does not tell that an owner is gone. The garbage collector takes what is made for it, which is a reason
//! to make it anew: without the question, the two would work against one another for as long as the watch lags. What the
//! controller deletes itself is no loss, and a creation for an owner that has lost nothing costs no request.

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
/// The finalizer of an owner that goes when its dependents are gone (`metav1.FinalizerDeleteDependents`): what is made for it
/// is taken as if it were gone.
const FOREGROUND: &str = "foregroundDeletion";

/// The objects of a controller's own kind that lost something they control. Clones share it.
#[derive(Clone)]
pub(crate) struct Losses(Arc<Inner>);

struct Inner {
    /// Finds the key of the owner of an object with this metadata.
    owner_key: fn(&ObjectMeta) -> Option<Key>,
    /// Asks for an owner's metadata.
    ask: for<'a> fn(&'a Client, &'a Key) -> BoxFuture<'a, kube::Result<Option<ObjectMeta>>>,
    kind: String,
    lost: Mutex<Lost>,
    /// The uids of what the controller is deleting, once for each request.
    deleting: Mutex<Vec<String>>,
}

/// As long as it is kept, the controller is deleting an object.
pub(crate) struct OwnDeletion {
    losses: Losses,
    uid: String,
}

#[derive(Default)]
struct Lost {
    uids: BTreeSet<Arc<str>>,
    /// Oldest first.
    order: VecDeque<Arc<str>>,
}

impl Losses {
    /// Of owners of this kind.
    pub(crate) fn of<O: Object>() -> Self {
        Self(Arc::new(Inner {
            owner_key: controller_key::<O>,
            ask: ask::<O>,
            kind: O::kind(&()).into_owned(),
            lost: Mutex::default(),
            deleting: Mutex::default(),
        }))
    }

    /// The controller deletes the object of this uid itself.
    pub(crate) fn deleting(&self, uid: &str) -> OwnDeletion {
        self.0.deleting.lock().push(uid.to_owned());
        OwnDeletion { losses: self.clone(), uid: uid.to_owned() }
    }

    /// An object with this metadata is gone.
    pub(crate) fn note(&self, child: &ObjectMeta) {
        let (Some(_), Some(owner)) = ((self.0.owner_key)(child), controller_of(child)) else { return };
        let is_own = child.uid.as_ref().is_some_and(|uid| self.0.deleting.lock().contains(uid));
        if !is_own {
            self.0.lost.lock().add(&owner.uid);
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
        let mut deleting = self.losses.0.deleting.lock();
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
    let waits_for_them = found.finalizers.iter().flatten().any(|finalizer| finalizer == FOREGROUND);
    found.uid.as_deref() == Some(uid) && !(found.deletion_timestamp.is_some() && waits_for_them)
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

    use super::*;

    #[test]
    fn another_of_the_same_name_or_one_that_waits_for_its_children_to_go_is_not_there() {
        let meta = |uid: &str, finalizer: Option<&str>, is_going: bool| ObjectMeta {
            uid: Some(uid.to_owned()),
            finalizers: finalizer.map(|finalizer| vec![finalizer.to_owned()]),
            deletion_timestamp: is_going.then_some(Time(jiff::Timestamp::UNIX_EPOCH)),
            ..ObjectMeta::default()
        };
        assert!(keeps_children(&meta("a", None, false), "a"));
        assert!(!keeps_children(&meta("b", None, false), "a"));
        assert!(!keeps_children(&meta("a", Some(FOREGROUND), true), "a"));
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
