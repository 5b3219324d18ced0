//! Observe, plan, act.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::Job;
use kube::{
    ResourceExt,
    api::{DeleteParams, PartialObjectMeta, Preconditions},
};
use kubewright::{Context, Controller, Error, Key, Outcome, Reconciler, owner, rbac::Verb};

use crate::{
    CronTab,
    events::{NewEvent, turned},
    job::ended,
    plan::{Plan, Start, begun, left_out, plan},
};

/// As many as kube-controller-manager's `--concurrent-cron-job-syncs`.
const WORKERS: usize = 5;
/// How long until a CronTab is looked at again whose cached state was old.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// Longer than this nothing is waited for at once.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// The CronTab controller: a CronTab is reconciled when it or one of its Jobs changes, and when it is due.
#[must_use]
pub fn controller() -> Controller {
    Controller::new("crontab", CronTabReconciler::default())
        .for_kind::<CronTab>()
        .owns::<Job>()
        .writes::<CronTab>([Verb::Get])
        .writes_status::<CronTab>()
        .writes::<Job>([Verb::Create, Verb::Delete])
        .concurrency(WORKERS)
}

/// Which CronTab was seen: its uid and its generation.
type Seen = (Option<String>, Option<i64>);

/// Makes the Jobs of each CronTab.
#[derive(Debug, Default)]
pub struct CronTabReconciler {
    /// Those that were seen: for the log alone.
    known: Mutex<BTreeMap<Key, Seen>>,
}

impl Reconciler for CronTabReconciler {
    async fn reconcile(&self, ctx: &Context, key: &Key) -> Result<Outcome, Error> {
        let crontab = ctx.get::<CronTab>(key).filter(|crontab| crontab.metadata.deletion_timestamp.is_none());
        self.log(key, crontab.as_deref());
        // Its Jobs go with it: the garbage collector's work.
        let Some(crontab) = crontab else { return Ok(Outcome::Done) };
        let jobs = jobs_of(ctx, &crontab);
        let mut plan = plan(&crontab, &jobs, ctx.world().clock.now());
        let events = std::mem::take(&mut plan.events);
        if !plan.start.is_empty() {
            match begin(ctx, key, &crontab, plan).await? {
                Some(next) => plan = next,
                None => return Ok(Outcome::RequeueAfter(LOOK_AGAIN)),
            }
        }
        let Plan { status, history, again, .. } = plan;
        let events = events
            .into_iter()
            .chain(of_jobs(&crontab, &jobs))
            .chain(turned(crontab.status.as_ref(), &status));
        if ctx.get::<CronTab>(key).is_none() {
            return Ok(Outcome::Done); // it went meanwhile
        }
        record_events(ctx, &crontab, events);
        ctx.status(&*crontab).set(|told| *told = status).await?;
        for job in &history {
            remove(ctx, &crontab, job).await?;
        }
        Ok(again.map_or(Outcome::Done, |time| Outcome::RequeueAfter(until(time, ctx.world().clock.now()))))
    }
}

impl CronTabReconciler {
    /// Tells who reads the log which CronTabs come, change and go.
    fn log(&self, key: &Key, crontab: Option<&CronTab>) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let is = crontab.map(|crontab| (crontab.metadata.uid.clone(), crontab.metadata.generation));
        let was = match &is {
            Some(is) => known.insert(key.clone(), is.clone()),
            None => known.remove(key),
        };
        let name = &key.name;
        match (was, is) {
            (Some(was), Some(is)) if was.0 == is.0 => {
                if was.1 != is.1 {
                    tracing::info!("Updating crontab {name}");
                }
            }
            (was, is) => {
                if was.is_some() {
                    tracing::info!("Removed crontab: {name}");
                }
                if is.is_some() {
                    tracing::info!("Added crontab: {name}");
                }
            }
        }
    }
}

/// Begins the runs of a plan, unless the CronTab's state is old; gives what is left to do. The name of a run's Job is
/// that of the run, so of two attempts one is refused.
async fn begin(ctx: &Context, key: &Key, crontab: &CronTab, plan: Plan) -> Result<Option<Plan>, Error> {
    let stored = ctx.live::<PartialObjectMeta<CronTab>>(key).await?;
    if stored.is_none_or(|stored| stored.metadata.resource_version != crontab.metadata.resource_version) {
        return Ok(None);
    }
    let Plan { start, replaced, mut status, .. } = plan;
    for job in &replaced {
        remove(ctx, crontab, job).await?;
    }
    for Start { run, job } in &start {
        match create(ctx, crontab, job).await? {
            Created::Yes => begun(&mut status, run),
            Created::Never(why) => {
                record_events(ctx, crontab, [NewEvent::warning("FailedCreate", why)]);
                left_out(&mut status, run);
            }
        }
    }
    let updated = CronTab { status: Some(status), ..crontab.clone() };
    let next = crate::plan::plan(&updated, &jobs_of(ctx, crontab), ctx.world().clock.now());
    // What is due by now begins in a pass of its own.
    let again = if next.start.is_empty() { next.again } else { Some(Timestamp::MIN) };
    Ok(Some(Plan { history: Vec::new(), again, ..next }))
}

/// Whether there is a Job.
enum Created {
    Yes,
    /// There will be none, for this reason.
    Never(String),
}

async fn create(ctx: &Context, crontab: &CronTab, job: &Job) -> Result<Created, Error> {
    let name = job.name_any();
    tracing::info!("Creating job {name} for crontab {}", crontab.name_any());
    match ctx.create(job).await {
        Ok(_) => {
            record_events(
                ctx,
                crontab,
                [NewEvent::normal("SuccessfulCreate", format!("Created job {name}"))],
            );
            Ok(Created::Yes)
        }
        // Of an earlier pass; or else somebody else's, whom nothing is taken from.
        Err(error) if error.is_already_exists() => {
            let there = ctx.live::<Job>(&Key::of(job)).await?;
            if there.is_none_or(|there| owner::is_controlled_by(&there, crontab)) {
                return Ok(Created::Yes);
            }
            Ok(Created::Never(format!(
                "Error creating job: {name} is there and not of this CronTab: the run is left out"
            )))
        }
        // What the API server says of this Job it will say a second later too.
        Err(error) if error.status().is_some_and(|status| status.code == 422) => {
            Ok(Created::Never(format!("Error creating job: {error}: the run is left out")))
        }
        Err(error) => {
            record_events(
                ctx,
                crontab,
                [NewEvent::warning("FailedCreate", format!("Error creating job: {error}"))],
            );
            Err(error)
        }
    }
}

async fn remove(ctx: &Context, crontab: &CronTab, job: &Job) -> Result<(), Error> {
    let preconditions = Preconditions { uid: job.uid(), resource_version: None };
    let exactly = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::background() };
    ctx.delete::<Job>(&Key::of(job), exactly).await?;
    let note = format!("Deleted job {}", job.name_any());
    record_events(ctx, crontab, [NewEvent::normal("SuccessfulDelete", note)]);
    Ok(())
}

fn jobs_of(ctx: &Context, crontab: &CronTab) -> Vec<Arc<Job>> {
    let mut jobs = ctx.owned_by::<Job>(crontab.metadata.uid.as_deref().unwrap_or_default());
    jobs.retain(|job| owner::is_controlled_by(&**job, crontab) && job.metadata.deletion_timestamp.is_none());
    jobs
}

/// What became of the Jobs that were active when the status was written.
fn of_jobs(crontab: &CronTab, jobs: &[Arc<Job>]) -> Vec<NewEvent> {
    let active = crontab.status.iter().flat_map(|status| &status.active);
    active
        .filter_map(|active| match jobs.iter().find(|job| job.uid().as_ref() == Some(&active.uid)) {
            None => Some(NewEvent::normal("MissingJob", format!("Active job went missing: {}", active.name))),
            Some(job) => ended(job).map(|how| {
                NewEvent::normal(
                    "SawCompletedJob",
                    format!("Saw completed job: {}, condition: {how}", active.name),
                )
            }),
        })
        .collect()
}

fn record_events(ctx: &Context, crontab: &CronTab, events: impl IntoIterator<Item = NewEvent>) {
    for NewEvent { kind, reason, note } in events {
        ctx.event(crontab, kind, &reason, &note);
    }
}

fn until(time: Timestamp, now: Timestamp) -> Duration {
    Duration::try_from(time.duration_since(now)).unwrap_or_default().min(LONGEST)
}
