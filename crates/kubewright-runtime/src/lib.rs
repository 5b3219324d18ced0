//! Manager, Controller, workqueue and cache for Kubernetes operators on kube-rs: what controller-runtime is to Go.
//!
//! An operator is a [`Reconciler`] (what to do about one object) in a [`Controller`] (which events lead to which
//! objects) in a [`Manager`] (which runs controllers on shared caches). A reconcile gets a [`Key`] and a [`Context`]:
//! it reads from the cache, writes through the context, and never sees a state older than its own last write.
//!
//! The crate keeps kube's client, types, derives and `watcher`, and works against any Kubernetes API server. It reads
//! no clock and rolls no dice of its own: a [`kubewright_world::World`] is handed in, and waiting is tokio's, so that
//! under tokio's paused clock a test runs hours in milliseconds and a seed replays it.

mod apply;
mod backlog;
mod cache;
pub mod command;
pub mod conditions;
mod connect;
mod context;
mod controller;
mod counters;
mod dynamic_watches;
mod endpoint;
pub mod ensure;
mod error;
mod events;
pub mod finalizer;
mod guard;
pub mod health;
mod key;
pub mod leader;
mod logging;
mod manager;
mod member;
pub mod metrics;
mod orphan_guard;
pub mod owner;
mod pause;
pub mod predicate;
pub mod probes;
pub mod rbac;
mod reconciler;
mod replicas;
mod runnable;
mod runners;
pub mod serving;
pub mod shard;
pub mod signals;
mod source;
pub mod sources;
mod span;
mod status;
pub mod strict;
#[cfg(feature = "webhook")]
pub mod webhook;
mod worker;
pub mod workqueue;

pub use kubewright_meta::difference::Differences;
/// Kubernetes objects as JSON: one form to read and one to write, for all types.
pub use kubewright_objects as object;
pub use kubewright_world::World;
pub use tokio_util::sync::CancellationToken;

pub use self::{
    apply::Apply,
    backlog::{Backlog, Failing},
    cache::{Cache, Change, Index, Informer, Usage},
    connect::Connect,
    context::{Context, Deletion, Watching},
    controller::Controller,
    counters::{Counters, Counts},
    ensure::Ensured,
    error::{BoxError, Error},
    events::{EventType, SpamFilter},
    guard::{CLEANUP_FAILED, Guarded, SKIP_CLEANUP},
    key::Key,
    leader::{LeaderElection, Leadership},
    manager::{GRACEFUL_SHUTDOWN, Manager},
    member::Member,
    metrics::Metrics,
    object::{Cached, Object},
    owner::Owner,
    pause::PAUSED,
    predicate::{Event, Predicate},
    reconciler::{Outcome, Reconciler},
    runnable::{Phase, Runnable},
    shard::{Shard, Sharding},
};
