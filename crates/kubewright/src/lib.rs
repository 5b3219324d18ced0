//! Build, test and run Kubernetes operators in Rust.
//!
//! This is what an operator's author imports.

#[cfg(feature = "command")]
pub use kubewright_runtime::command;
#[cfg(feature = "otel")]
pub use kubewright_runtime::telemetry;
#[cfg(feature = "webhook")]
pub use kubewright_runtime::webhook;
pub use kubewright_runtime::{
    AppliedAll, Apply, Backlog, BoxError, CLEANUP_FAILED, Cache, Cached, CancellationToken, Change,
    ChildChange, ClientLayer, Clusters, Connect, Context, Controller, Counters, Counts, Defaults,
    DeleteParams, Deletion, Desired, Differences, DynamicContext, DynamicKind, DynamicOwner, Error,
    ErrorPolicy, Event, EventType, Expression, Failing, Failure, GRACEFUL_SHUTDOWN, Guarded, Index, Informer,
    JsonPatch, Key, Layered, LeaderElection, Leadership, ListOptions, Manager, Member, MergeFrom, Metrics,
    Namespaces, NewEvent, NotReady, Object, ObjectChange, ObjectReason, Outcome, Owner, PAUSED, Phase,
    Predicate, Reason, Reasons, ReconcileRecord, Reconciler, Runnable, SKIP_CLEANUP, Selector, Shard,
    Sharding, Shown, SpamFilter, StatusWrite, Subresource, Usage, ValidationDirective, Watching, What, World,
    Write, Written, conditions, finalizer, health, kube_rs, leader, logging, metrics, object, owner,
    predicate, probes, rbac, serving, shard, signals, sources, strict, workqueue,
};

/// The client and the types that this SDK is built on: a program that takes them from here has one version of each.
///
/// ```
/// use kubewright::{k8s_openapi::api::core::v1::ConfigMap, kube::{Api, Client}};
///
/// fn settings(client: Client) -> Api<ConfigMap> {
///     Api::namespaced(client, "default")
/// }
/// ```
pub use {http, k8s_openapi, kube, schemars};

/// A test with a cluster of its own, in virtual time.
#[cfg(feature = "testing")]
pub use kubewright_derive::test;
/// A Kubernetes in the process of the test, and what tests of operators need.
#[cfg(feature = "testing")]
pub use kubewright_testing as testing;

/// The README's examples compile.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
