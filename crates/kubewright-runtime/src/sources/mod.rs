//! Reasons for a reconcile beyond Kubernetes: streams of keys for [`Controller::source`](crate::Controller::source).
//!
//! Any [`Stream`] of keys is a source; here are those that operators need most. A source is read only while the controller
//! works: on a replica that stands by, what waits in a channel waits on. A source that panics ends the manager.

mod http;
mod timer;

use std::sync::Arc;

use futures::{Stream, StreamExt, stream};
use tokio::sync::mpsc;

pub use self::{
    http::Http,
    timer::{Every, Jitter},
};
use crate::{Cached, Event, Key, Predicate, object::AnyObject};

/// A channel into a controller: what is sent is reconciled. It holds `capacity` keys (controller-runtime's channel source:
/// 1024); a sender waits while it is full. When every sender is gone the source ends, and the controller goes on.
///
/// ```
/// use kubewright_runtime::{Controller, Key, sources};
/// # use kubewright_runtime::{Context, Error, Outcome, Reconciler};
/// # struct Rollout;
/// # impl Reconciler for Rollout {
/// #     async fn reconcile(&self, _: &Context, _: &Key) -> Result<Outcome, Error> { Ok(Outcome::Done) }
/// # }
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let (sender, keys) = sources::channel(1024);
/// let controller = Controller::new("rollout", Rollout).source(keys);
/// sender.send(Key::namespaced("default", "web")).await?;
/// # Ok(()) }
/// ```
pub fn channel(capacity: usize) -> (mpsc::Sender<Key>, impl Stream<Item = Key> + Send + 'static) {
    let (sender, receiver) = mpsc::channel(capacity.max(1));
    (sender, received(receiver))
}

/// Objects that something else than the API server tells of, each an [`Event::Generic`]: of those that the predicate lets
/// through, the keys that `mapping` finds.
pub fn objects<K: Cached>(
    objects: impl Stream<Item = Arc<K>> + Send + 'static,
    predicate: Predicate,
    mapping: impl Fn(&K) -> Vec<Key> + Send + 'static,
) -> impl Stream<Item = Key> + Send + 'static {
    objects.flat_map(move |object| {
        let is_wanted = predicate.accepts(&Event::Generic(&*object as &dyn AnyObject));
        stream::iter(if is_wanted { mapping(&object) } else { Vec::new() })
    })
}

fn received(receiver: mpsc::Receiver<Key>) -> impl Stream<Item = Key> + Send + 'static {
    stream::unfold(receiver, |mut receiver| async move { Some((receiver.recv().await?, receiver)) })
}
