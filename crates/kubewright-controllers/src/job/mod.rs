//! The Job controller: runs pods until enough of them have succeeded (`pkg/controller/job`).
//!
//! A pass looks at the Job and its pods (`view`), decides what to do about them (`plan`), does it (`act`), and then counts
//! what has ended (`accounts`). kube-controller-manager waits a second to look at a pod's change together with the
//! next ones; here the queue alone does that: what happens during a pass is seen by the next. Only where pods would be
//! stopped because others have succeeded it waits as long, for those that succeed at the same time.

mod accounts;
mod act;
mod backoff;
mod conditions;
mod end;
mod indexes;
mod orphans;
mod plan;
mod pods;
mod policies;
mod status;
mod template;
mod view;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use k8s_openapi::api::batch::v1::{Job, JobStatus};
use k8s_openapi::api::core::v1::Pod;
use kubewright_runtime::{Context, Controller, Error, EventType, Key, Outcome, Reconciler, owner};
use kubewright_spec::{Version, has_feature};
use parking_lot::Mutex;

use self::accounts::{Accounts, accounts, settle};
use self::backoff::Failures;
use self::conditions::JobResult;
pub(crate) use self::conditions::finished;
use self::end::End;
pub(crate) use self::orphans::controller as orphans;
use self::plan::plan;
use self::pods::TRACKING;
use self::view::View;
use crate::claims::{self, Selectors};

/// The value of `spec.managedBy` that stands for this controller.
const OWN_NAME: &str = "kubernetes.io/job-controller";
/// kube-controller-manager's `--concurrent-job-syncs`.
const WORKERS: usize = 5;
/// How long a Job whose success policy is met lets its other pods go on (`syncJobBatchPeriod`).
const BATCH: Duration = Duration::from_secs(1);

/// The controller, which runs under the name of its events' source.
#[must_use]
pub(crate) fn controller(kubernetes: Version) -> Controller {
    let selectors = Selectors::default();
    let adopters = selectors.clone();
    let keeps_start = !has_feature(kubernetes, "MutableSchedulingDirectivesForSuspendedJobs");
    Controller::new(
        "job-controller",
        Jobs { selectors, keeps_start, failures: Mutex::default(), met: Mutex::default() },
    )
    // A pass counts some of the pods that ended, and makes and deletes so many: the status that it wrote leads to the next.
    .for_kind::<Job>()
    .own_events()
    .owns::<Pod>()
    .watches(move |pod: &Pod| adopters.adopters(&pod.metadata))
    .concurrency(WORKERS)
}

struct Jobs {
    selectors: Selectors,
    /// Whether a Job that is suspended still says when it started.
    keeps_start: bool,
    /// The rows of failures of Jobs, by uid. They are not kept over a restart, as in kube-controller-manager.
    failures: Mutex<BTreeMap<Key, (String, Failures)>>,
    /// Since when the success policies of Jobs are met whose pods go on, by uid.
    met: Mutex<BTreeMap<Key, (String, Timestamp)>>,
}

impl Reconciler for Jobs {
    async fn reconcile(&self, ctx: &Context, key: &Key) -> Result<Outcome, Error> {
        let job = ctx.get::<Job>(key);
        orphans::release(ctx, key, job.as_deref()).await?;
        match job.filter(|job| !is_managed_by_another(job) && finished(job).is_none()) {
            Some(job) => self.sync(ctx, key, &job).await,
            None => {
                self.selectors.forget(key);
                self.failures.lock().remove(key);
                self.met.lock().remove(key);
                Ok(Outcome::Done)
            }
        }
    }
}

impl Jobs {
    async fn sync(&self, ctx: &Context, key: &Key, job: &Job) -> Result<Outcome, Error> {
        let Some(selector) = job.spec.as_ref().map(|spec| spec.selector.clone().unwrap_or_default()) else {
            return Ok(Outcome::Done);
        };
        self.selectors.set(key, &selector);
        let pods = ctx.list::<Pod>(key.namespace.as_deref());
        let pods = claims::claim_with_finalizer(ctx, job, &selector, pods, TRACKING).await?;
        let Some(view) = View::new(job, pods, ctx.world().clock.now()) else { return Ok(Outcome::Done) };
        let failures = self.row_of_failures(key, &view);

        let plan = plan(&view, failures);
        if let Some(left) = self.others_may_succeed(key, &view, plan.end.as_ref()) {
            return Ok(Outcome::RequeueAfter(left));
        }
        let acted = act::act(ctx, job, plan.step).await;
        let (mut status, mut end) = (status::begin(&view), plan.end);
        let controlled = controlled(ctx, job);
        status::count_pods(&mut status, controlled.iter().map(|pod| &**pod));
        let active = status.active.unwrap_or_default();
        let event = match end {
            // What could not be stopped is stopped by the next pass.
            Some(_) => {
                end = end.filter(|_| active == 0);
                None
            }
            None => {
                end = end::completed(&view, active);
                let managed = end.is_none() && job.metadata.deletion_timestamp.is_none();
                let suspend =
                    || status::suspend(&mut status, view.is_suspended(), self.keeps_start, view.now);
                managed.then(suspend).flatten()
            }
        };
        if let Some((reason, note)) = event {
            ctx.event(job, EventType::Normal, reason, note);
        }
        let accounts = accounts(&view, end.as_ref(), status);
        let remember = || self.remember(key, &view, failures);
        match write_down(ctx, job, accounts, end.as_ref(), remember).await {
            Err(error) if error.is_not_found() => Ok(Outcome::Done),
            Err(error) => Err(error),
            Ok(()) => acted.map(|()| plan.again.map_or(Outcome::Done, Outcome::RequeueAfter)),
        }
    }

    /// How much longer the pods of a Job go on whose success policy was met a moment ago; `None` when nothing is waited for.
    fn others_may_succeed(&self, key: &Key, view: &View<'_>, end: Option<&End>) -> Option<Duration> {
        let is_new = conditions::is_true(view.job, JobResult::Success.interim()).is_none();
        end.filter(|end| is_new && end.kind == JobResult::Success && !view.active.is_empty())?;
        let uid = view.job.metadata.uid.clone().unwrap_or_default();
        let mut met = self.met.lock();
        let since = met.get(key).filter(|(of, _)| *of == uid).map_or(view.now, |(_, since)| *since);
        met.insert(key.clone(), (uid, since));
        let waited = Duration::try_from(view.now.duration_since(since)).unwrap_or_default();
        BATCH.checked_sub(waited).filter(|left| !left.is_zero())
    }

    fn row_of_failures(&self, key: &Key, view: &View<'_>) -> Failures {
        let known = self.failures.lock().get(key).cloned();
        let row = known.filter(|(uid, _)| Some(uid) == view.job.metadata.uid.as_ref()).map(|(_, row)| row);
        let (succeeded, failed) = (view.newly_succeeded.iter(), view.newly_failed.iter());
        row.unwrap_or_default().after(succeeded.map(|pod| &**pod), failed.map(|pod| &**pod))
    }

    /// The new failures are part of the row once the status says so: the next pass will not find them new.
    fn remember(&self, key: &Key, view: &View<'_>, failures: Failures) {
        let uid = view.job.metadata.uid.clone().unwrap_or_default();
        self.failures.lock().insert(key.clone(), (uid, failures));
    }
}

/// The pods that the Job controls now.
fn controlled(ctx: &Context, job: &Job) -> Vec<Arc<Pod>> {
    let mut pods = ctx.owned_by::<Pod>(job.metadata.uid.as_deref().unwrap_or_default());
    pods.retain(|pod| owner::is_controlled_by(&**pod, job));
    pods
}

/// Writes the status, releases the pods that it tells of, and writes what follows from that. Each write stands alone:
/// whoever comes next goes on from what the status and the finalizers say.
async fn write_down(
    ctx: &Context,
    job: &Job,
    accounts: Accounts,
    end: Option<&End>,
    remember: impl FnOnce(),
) -> Result<(), Error> {
    let Accounts { mut status, release, mut tracked, more } = accounts;
    let now = ctx.world().clock.now();
    if let Some(end) = end {
        status::announce(&mut status, end, now);
    }
    let written = write_status(ctx, job, status).await?;
    remember();

    let (released, failed) = act::release(ctx, &release).await;
    tracked.retain(|uid| !released.contains(uid));
    let mut status = view::status(&written);
    settle(&mut status, &tracked);
    let ended = end.filter(|_| failed.is_none() && !more);
    let ended = ended.filter(|end| status::finish(&mut status, end, now));
    let written = write_status(ctx, &written, status).await?;
    if let Some(end) = ended {
        act::record_end_event(ctx, &written, end);
    }
    failed.map_or(Ok(()), Err)
}

/// Writes the status, if that changes it; the Job as it is then.
async fn write_status(ctx: &Context, job: &Job, status: JobStatus) -> Result<Job, Error> {
    if job.status.as_ref() == Some(&status) {
        return Ok(job.clone());
    }
    ctx.update_status(&Job { status: Some(status), ..job.clone() }).await
}

/// Whether `spec.managedBy` says that the Job is somebody else's.
fn is_managed_by_another(job: &Job) -> bool {
    let manager = job.spec.as_ref().and_then(|spec| spec.managed_by.as_deref());
    manager.is_some_and(|manager| manager != OWN_NAME)
}

#[cfg(test)]
mod tests;
