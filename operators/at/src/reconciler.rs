//! Observe, plan, act.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, LogParams, Preconditions},
    core::Expression,
};
use kubewright::{Context, Controller, Error, Key, Outcome, Reconciler, finalizer, owner, rbac::Verb};
use serde_json::json;

use crate::{
    At, AtKind, AtStatus, BookAt, Phase,
    plan::{Found, Plan, Step, plan},
    pod::{FINALIZER, MANAGED_BY, container_of, pod_key},
    status::events_of,
};

/// The client-go variant of the book has as many.
const WORKERS: usize = 2;
/// How long until an At is looked at again whose cached state was old.
const SOON: Duration = Duration::from_secs(1);
/// So much of a log is kept.
const LOG_LINES: i64 = 20;
const LOG_BYTES: usize = 4096;
/// How long until an At is looked at again whose pod is not watched.
const LOOK_AGAIN: Duration = Duration::from_secs(30);
/// Longer than this nothing is waited for at once.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// The controller of the Ats of `cnat.study.jayground8`.
#[must_use]
pub fn controller() -> Controller {
    of_kind::<At>("at")
}

/// The controller of the Ats of `cnat.programming-kubernetes.info`.
#[must_use]
pub fn book_controller() -> Controller {
    of_kind::<BookAt>("at-book")
}

fn of_kind<K: AtKind>(name: &str) -> Controller {
    let managed = || Expression::Equal(MANAGED_BY.0.to_owned(), MANAGED_BY.1.to_owned());
    Controller::new(name, AtReconciler::<K>::default())
        .for_kind::<K>()
        .owns::<Pod>()
        .labelled(managed())
        .watches(orphaned)
        .labelled(managed())
        .writes::<K>([Verb::Get, Verb::Delete])
        .writes_status::<K>()
        .writes::<Pod>([Verb::Create, Verb::Patch, Verb::Delete])
        .writes_subresource::<Pod>("log", [Verb::Get])
        .concurrency(WORKERS)
}

/// Runs the command of each At of one kind, once.
#[derive(Debug)]
pub struct AtReconciler<K>(std::marker::PhantomData<fn() -> K>);

impl<K> Default for AtReconciler<K> {
    fn default() -> Self {
        Self(std::marker::PhantomData)
    }
}

impl<K: AtKind> Reconciler for AtReconciler<K> {
    async fn reconcile(&self, ctx: &Context, key: &Key) -> Result<Outcome, Error> {
        let pod_key = pod_key(key);
        let cached = ctx.get::<Pod>(&pod_key);
        let Some(at) = ctx.get::<K>(key).filter(|at| at.meta().deletion_timestamp.is_none()) else {
            // What it made goes with it, unless somebody wants to keep it: the garbage collector's work, not ours.
            if let Some(pod) = cached.filter(|pod| is_of::<K>(pod) && finalizer::has(&**pod, FINALIZER)) {
                release(ctx, &pod).await?;
            }
            return Ok(Outcome::Done);
        };
        tracing::info!("instance {key}: checking schedule {:?}", at.asked().schedule);
        let mut pod = match cached {
            Some(pod) => Some((*pod).clone()),
            // The status knows of a pod that the cache does not: it may be behind.
            None if awaits_pod(at.status()) => ctx.live::<Pod>(&pod_key).await?,
            None => None,
        };
        if let Some(pod) = pod.as_ref().filter(|pod| found(&*at, Some(pod)) == Found::Leftover) {
            release(ctx, pod).await?;
        }
        let mut plan = plan(&*at, found(&*at, pod.as_ref()), ctx.world().clock.now());
        if let Step::Launch(wanted) = &plan.step {
            match launch(ctx, key, &*at, wanted).await? {
                Some(there) => pod = Some(there),
                None => return Ok(Outcome::RequeueAfter(SOON)),
            }
            plan = crate::plan::plan(&*at, found(&*at, pod.as_ref()), ctx.world().clock.now());
        }
        act(ctx, key, &*at, pod.as_ref(), plan).await
    }
}

/// The At that a pod was of which nobody controls any more: it has to be let go, whenever that is found.
fn orphaned(pod: &Pod) -> Vec<Key> {
    if owner::controller_of(&pod.metadata).is_some() || !finalizer::has(pod, FINALIZER) {
        return Vec::new();
    }
    let name = pod.name_any();
    let at = name.strip_suffix("-pod").map(|name| Key::new(pod.namespace(), name));
    at.into_iter().collect()
}

/// Whether the pod is one of those that Ats of this kind control, or controlled before they were taken away from it.
fn is_of<K: AtKind>(pod: &Pod) -> bool {
    owner::controller_of(&pod.metadata)
        .is_none_or(|owner| owner.api_version == K::api_version(&()) && owner.kind == K::kind(&()))
}

fn awaits_pod(status: Option<&AtStatus>) -> bool {
    status.is_some_and(|status| status.phase == Phase::Running && status.pod_uid.is_some())
}

fn found<'a, K: AtKind>(at: &K, pod: Option<&'a Pod>) -> Found<'a> {
    match pod {
        None => Found::Nothing,
        Some(pod) if owner::is_controlled_by(pod, at) => Found::Own(pod),
        Some(pod) if owner::controller_of(&pod.metadata).is_some() && is_of::<K>(pod) => Found::Leftover,
        Some(_) => Found::Foreign,
    }
}

/// Makes the pod, unless this At's state is old; gives what now has its name. Of two replicas, and of two lives of one,
/// one makes it: it has one name, and does not go before what became of it is written down.
async fn launch<K: AtKind>(ctx: &Context, key: &Key, at: &K, pod: &Pod) -> Result<Option<Pod>, Error> {
    let now = ctx.live::<K>(key).await?;
    if now.is_none_or(|now| now.meta().resource_version != at.meta().resource_version) {
        return Ok(None);
    }
    tracing::info!("instance {key}: it's time! Ready to execute: {}", at.asked().command);
    match ctx.create(pod).await {
        Ok(pod) => {
            tracing::info!("instance {key}: pod launched: name={}", pod.name_any());
            Ok(Some(pod))
        }
        Err(error) if error.is_already_exists() => ctx.live::<Pod>(&Key::of(pod)).await,
        Err(error) => Err(error),
    }
}

/// Writes the status, tells what is new in it, and does what comes after.
async fn act<K: AtKind>(
    ctx: &Context,
    key: &Key,
    at: &K,
    pod: Option<&Pod>,
    plan: Plan,
) -> Result<Outcome, Error> {
    let Plan { step, mut status, again } = plan;
    if status.phase == Phase::Done && at.status().is_none_or(|told| told.phase != Phase::Done) {
        status.log = match pod {
            Some(pod) => log(ctx, pod).await,
            None => None,
        };
    }
    if ctx.get::<K>(key).is_none() {
        return Ok(Outcome::Done); // it went meanwhile, and its end brings us here again
    }
    ctx.status(at).set(|told| told.clone_from(&status)).await?;
    for event in events_of(at, at.status(), &status) {
        ctx.event(at, event.kind, &event.reason, &event.note);
    }
    match (step, pod) {
        (Step::Wait | Step::Launch(_), _) | (Step::Release | Step::Stop, None) => {}
        (Step::Release, Some(pod)) => release(ctx, pod).await?,
        (Step::Stop, Some(pod)) => {
            release(ctx, pod).await?;
            ctx.delete::<Pod>(&Key::of(pod), exactly(pod)).await?;
        }
        (Step::Expire, _) => {
            ctx.delete::<K>(key, exactly(at)).await?;
        }
    }
    // A pod that lost its label is not watched.
    let unwatched =
        status.phase == Phase::Running && pod.is_some_and(|pod| ctx.get::<Pod>(&Key::of(pod)).is_none());
    Ok(match again {
        Some(time) => Outcome::RequeueAfter(until(time, ctx.world().clock.now())),
        None if unwatched => Outcome::RequeueAfter(LOOK_AGAIN),
        None => Outcome::Done,
    })
}

fn until(time: Timestamp, now: Timestamp) -> Duration {
    Duration::try_from(time.duration_since(now)).unwrap_or_default().min(LONGEST)
}

/// This very object, not the next of its name.
fn exactly<K: kubewright::Object>(object: &K) -> DeleteParams {
    let preconditions = Preconditions { uid: object.meta().uid.clone(), resource_version: None };
    DeleteParams { preconditions: Some(preconditions), ..DeleteParams::background() }
}

/// Lets the pod go when somebody wants it to.
async fn release(ctx: &Context, pod: &Pod) -> Result<(), Error> {
    if !finalizer::has(pod, FINALIZER) {
        return Ok(());
    }
    let patch =
        json!({"metadata": {"uid": pod.metadata.uid, "$deleteFromPrimitiveList/finalizers": [FINALIZER]}});
    match ctx.patch_strategically::<Pod>(&Key::of(pod), patch).await {
        Err(error) if error.is_not_found() => Ok(()),
        written => written.map(|_| ()),
    }
}

/// The end of what the command wrote; nothing where nobody keeps logs.
async fn log(ctx: &Context, pod: &Pod) -> Option<String> {
    let pods: Api<Pod> = Api::namespaced(ctx.client().clone(), pod.metadata.namespace.as_deref()?);
    let wanted = LogParams {
        container: container_of(pod).map(str::to_owned),
        tail_lines: Some(LOG_LINES),
        limit_bytes: Some(64 * 1024),
        ..LogParams::default()
    };
    let text = pods.logs(&pod.name_any(), &wanted).await.ok()?;
    let start =
        (text.len().saturating_sub(LOG_BYTES)..=text.len()).find(|index| text.is_char_boundary(*index))?;
    let tail = text[start..].trim_end();
    (!tail.is_empty()).then(|| tail.to_owned())
}
