//! Manager, Controller, workqueue and cache for Kubernetes operators on kube-rs: what controller-runtime is to Go.
//!
//! An operator is a [`Reconciler`] (what to do about one object) in a [`Controller`] (which events lead to which
//! objects) in a [`Manager`] (which runs controllers on shared caches). A reconcile gets a [`Key`] and a [`Context`]:
//! it reads from the cache, writes through the context, and never sees a state older than its own last write.
//!
//! The crate keeps kube's client, types, derives and `watcher`, and works against any Kubernetes API server. It reads
//! no clock and rolls no dice of its own: a [`kubewright_world::World`] is handed in, and waiting is tokio's, so that
//! under tokio's paused clock a test runs hours in milliseconds and a seed replays it.

mod accesses;
mod apply;
mod backlog;
mod cache;
mod client_layer;
mod clusters;
#[cfg(feature = "command")]
pub mod command;
pub mod conditions;
mod connect;
mod context;
mod controller;
mod counters;
mod dynamic_watches;
mod endpoint;
mod error;
mod error_policy;
mod events;
pub mod finalizer;
mod guard;
pub mod health;
mod in_clusters;
mod in_namespaces;
mod journal;
mod key;
mod kind;
pub mod kube_rs;
pub mod leader;
pub mod logging;
mod manager;
mod member;
pub mod metrics;
mod namespaces;
mod orphan_guard;
pub mod owner;
mod pause;
pub mod predicate;
pub mod probes;
pub mod rbac;
mod reason;
mod reconciler;
mod replicas;
mod reporter;
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
mod unreachable;
#[cfg(feature = "webhook")]
pub mod webhook;
mod worker;
pub mod workqueue;
mod written;

pub use json_patch::Patch as JsonPatch;
pub use kube::{
    api::{DeleteParams, ValidationDirective},
    core::{Expression, Selector},
};
pub use kubewright_meta::{
    access::{Access, Found},
    difference::Differences,
};
/// Kubernetes objects as JSON: one form to read and one to write, for all types.
pub use kubewright_objects as object;
#[cfg(feature = "otel")]
pub use kubewright_telemetry as telemetry;
pub use kubewright_world::World;
pub use tokio_util::sync::CancellationToken;

pub use self::{
    apply::{AppliedAll, Apply, ChildChange, Desired, NotReady, What},
    backlog::{Backlog, Failing},
    cache::{Cache, Change, Index, Informer, Usage},
    client_layer::{ClientLayer, Layered},
    clusters::Clusters,
    connect::Connect,
    context::{Context, Deletion, DynamicContext, ListOptions, MergeFrom, Subresource, Watching, Write},
    controller::{Controller, Defaults},
    counters::{Counters, Counts},
    error::{BoxError, Error},
    error_policy::{ErrorPolicy, Failure, Shown},
    events::{EventType, NewEvent, SpamFilter},
    guard::{CLEANUP_FAILED, Guarded, SKIP_CLEANUP},
    journal::ReconcileRecord,
    key::Key,
    kind::{DynamicKind, DynamicOwner},
    leader::{LeaderElection, Leadership},
    manager::{GRACEFUL_SHUTDOWN, Manager},
    member::Member,
    metrics::Metrics,
    namespaces::Namespaces,
    object::{Cached, Object},
    owner::Owner,
    pause::PAUSED,
    predicate::{Event, Predicate},
    reason::{ObjectChange, ObjectReason, Reason, Reasons},
    reconciler::{Outcome, Reconciler},
    runnable::{Phase, Runnable},
    shard::{Shard, Sharding},
    status::StatusWrite,
    written::Written,
};
