//! Controllers that were written for kube's own `Controller`, on this crate's manager: a program moves one after the other.
//!
//! The reconcile function and the error policy stay as they are. Watches, caches, the queue, retries, leader election, metrics and shutdown are
//! the manager's.
//!
//! ```no_run
//! use std::{sync::Arc, time::Duration};
//!
//! use k8s_openapi::api::{apps::v1::Deployment, core::v1::ConfigMap};
//! use kube::runtime::controller::Action;
//! use kubewright_runtime::{Controller, Manager, kube_rs};
//!
//! struct Data { client: kube::Client }
//!
//! async fn reconcile(map: Arc<ConfigMap>, data: Arc<Data>) -> Result<Action, kube::Error> {
//!     Ok(Action::requeue(Duration::from_secs(300)))
//! }
//!
//! fn error_policy(_: Arc<ConfigMap>, _: &kube::Error, _: Arc<Data>) -> Action {
//!     Action::requeue(Duration::from_secs(5))
//! }
//!
//! # fn example(manager: &mut Manager) {
//! let data = Arc::new(Data { client: manager.client().clone() });
//! manager.add(
//!     Controller::new("maps", kube_rs::reconciler(reconcile, error_policy, data))
//!         .for_kind::<ConfigMap>()
//!         .owns::<Deployment>()
//!         .all_own_events(), // writes by kube's client are not known as own ones
//! );
//! let maps = kube_rs::store::<ConfigMap>(manager.cache()); // where the code reads a `Store`
//! # }
//! ```
//!
//! What is as with kube: an object that is gone is not reconciled; an [`Action`] says when to come again, after a success as after an
//! error. What is not: an error that the policy answers with [`Action::await_change`] is [terminal](Error::terminal), which is logged and counted as one; a
//! panic is caught. Writes go by kube's client, so that the cache sees them by its watch, as a `Store` does.

use std::{marker::PhantomData, sync::Arc, time::Duration};

use kube::runtime::{
    controller::Action,
    reflector::{self, Store},
    watcher::Event,
};
use parking_lot::Mutex;

use crate::{BoxError, Cache, Change, Context, Error, Key, Object, Outcome, Reconciler};

/// A reconciler of the functions that kube's `Controller::run` takes, and the context that it hands to them.
pub fn reconciler<K, C, E, F, P, R>(reconcile: F, error_policy: P, context: Arc<C>) -> impl Reconciler
where
    K: Object,
    C: Send + Sync + 'static,
    E: Into<BoxError> + Send + 'static,
    F: Fn(Arc<K>, Arc<C>) -> R + Send + Sync + 'static,
    P: Fn(Arc<K>, &E, Arc<C>) -> Action + Send + Sync + 'static,
    R: Future<Output = Result<Action, E>> + Send + 'static,
{
    Functions { reconcile, error_policy, context, types: PhantomData::<fn() -> (K, E)> }
}

struct Functions<F, P, C, T> {
    reconcile: F,
    error_policy: P,
    context: Arc<C>,
    types: PhantomData<T>,
}

impl<K, C, E, F, P, R> Reconciler for Functions<F, P, C, fn() -> (K, E)>
where
    K: Object,
    C: Send + Sync + 'static,
    E: Into<BoxError> + Send + 'static,
    F: Fn(Arc<K>, Arc<C>) -> R + Send + Sync + 'static,
    P: Fn(Arc<K>, &E, Arc<C>) -> Action + Send + Sync + 'static,
    R: Future<Output = Result<Action, E>> + Send + 'static,
{
    async fn reconcile(&self, ctx: &Context, key: &Key) -> Result<Outcome, Error> {
        let Some(object) = ctx.get::<K>(key) else { return Ok(Outcome::Done) };
        let error = match (self.reconcile)(object.clone(), self.context.clone()).await {
            Ok(action) => {
                return Ok(requeue_after(&action)?.map_or(Outcome::Done, Outcome::RequeueAfter));
            }
            Err(error) => error,
        };
        let action = (self.error_policy)(object, &error, self.context.clone());
        Err(match requeue_after(&action)? {
            Some(delay) => Error::new(error).retry_after(delay),
            None => Error::terminal(error),
        })
    }
}

/// When an action says to come again. It tells nobody but kube's own controller: what it is can be seen from its debugging form alone, which a test
/// holds to what is read here.
fn requeue_after(action: &Action) -> Result<Option<Duration>, Error> {
    let told = format!("{action:?}");
    let unknown = || Error::terminal(format!("kube's {told} is not understood: it is of another version"));
    let inner = told.strip_prefix("Action { requeue_after: ").and_then(|rest| rest.strip_suffix(" }"));
    match inner.ok_or_else(unknown)? {
        "None" => Ok(None),
        some => {
            let text = some.strip_prefix("Some(").and_then(|rest| rest.strip_suffix(')'));
            let delay = text.and_then(duration).filter(|delay| *action == Action::requeue(*delay));
            delay.map(Some).ok_or_else(unknown)
        }
    }
}

/// A duration from its debugging form: `1.5s`, `20ms`.
fn duration(text: &str) -> Option<Duration> {
    let at = text.find(|letter: char| !letter.is_ascii_digit() && letter != '.')?;
    let (number, unit) = text.split_at(at);
    let nanoseconds: u128 = match unit {
        "s" => 1_000_000_000,
        "ms" => 1_000_000,
        "\u{b5}s" => 1_000,
        "ns" => 1,
        _ => return None,
    };
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    let digits = u32::try_from(part.len()).ok()?;
    let part = if part.is_empty() { 0 } else { part.parse::<u128>().ok()? };
    let all = whole.parse::<u128>().ok()?.checked_mul(nanoseconds)?;
    let all = all.checked_add(part.checked_mul(nanoseconds)? / 10_u128.checked_pow(digits)?)?;
    let seconds = u64::try_from(all / 1_000_000_000).ok()?;
    Some(Duration::new(seconds, u32::try_from(all % 1_000_000_000).ok()?))
}

/// A store of kube's reflector that has what the manager's cache has of a kind, for code that reads one; `None` when no controller declares
/// the kind. It is empty, and [`Store::wait_until_ready`] waits, until the cache is filled, and ends with the manager.
///
/// # Panics
/// Outside a tokio runtime.
#[must_use]
pub fn store<K: Object>(cache: &Cache) -> Option<Store<K>> {
    let informer = cache.informer::<K>()?;
    let (store, writer) = reflector::store::<K>();
    // Whether the store is filled, beside what fills it.
    let filling = Arc::new(Mutex::new((writer, false)));
    let changing = filling.clone();
    informer.subscribe(move |change| {
        let (writer, is_filled) = &mut *changing.lock();
        if *is_filled {
            writer.apply_watcher_event(&match change {
                Change::Created(object) | Change::Updated { new: object, .. } => {
                    Event::Apply((**object).clone())
                }
                Change::Deleted(object) => Event::Delete((**object).clone()),
            });
        }
    });
    tokio::spawn(async move {
        informer.synced().await;
        if !informer.is_synced() {
            return;
        }
        let (writer, is_filled) = &mut *filling.lock();
        writer.apply_watcher_event(&Event::Init);
        for object in informer.list(None) {
            writer.apply_watcher_event(&Event::InitApply((*object).clone()));
        }
        writer.apply_watcher_event(&Event::InitDone);
        *is_filled = true;
    });
    Some(store)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_an_action_of_kube_says_is_read_from_it(seconds in 0_u64..1 << 40, nanoseconds in 0_u32..1_000_000_000) {
            for delay in [
                Duration::new(seconds, nanoseconds),
                Duration::from_secs(seconds),
                Duration::from_millis(seconds),
                Duration::from_micros(seconds),
                Duration::from_nanos(seconds),
            ] {
                prop_assert_eq!(requeue_after(&Action::requeue(delay)).ok(), Some(Some(delay)));
            }
        }
    }

    #[test]
    fn to_wait_for_a_change_is_no_time() {
        assert_eq!(requeue_after(&Action::await_change()).ok(), Some(None));
        assert_eq!(requeue_after(&Action::requeue(Duration::MAX)).ok(), Some(Some(Duration::MAX)));
        assert_eq!(duration("5"), None);
        assert_eq!(duration("5h"), None);
    }
}
