//! The CronJob controller: starts a Job when its schedule says so (`pkg/controller/cronjob`).
//!
//! A pass first looks at what became of the Jobs that were started (`review`), then whether another one is due (`plan`), and
//! writes the status once.

mod missed;
mod plan;
mod review;
mod template;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::api::batch::v1::{CronJob, CronJobSpec, CronJobStatus, Job};
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::DeleteParams;
use kube::{Api, Resource};
use kubewright_objects::optional;
use kubewright_runtime::{Context, Controller, Error, Key, Outcome, Reconciler, owner};
use parking_lot::Mutex;

use self::plan::{Run, plan};
use self::review::{forget, history, is_active, review};
use crate::event::NewEvent;

/// kube-controller-manager's `--concurrent-cron-job-syncs`.
const WORKERS: usize = 5;

/// The controller, which runs under the name of its events' source.
#[must_use]
pub(crate) fn controller() -> Controller {
    Controller::new("cronjob-controller", CronJobs::default())
        .for_kind::<CronJob>()
        .owns::<Job>()
        .concurrency(WORKERS)
}

#[derive(Default)]
struct CronJobs {
    /// The schedules that were last seen: one that changes does not begin with what it missed.
    seen: Mutex<BTreeMap<Key, ScheduleKey>>,
}

/// Uid, schedule and time zone.
type ScheduleKey = (Option<String>, String, Option<String>);

impl Reconciler for CronJobs {
    async fn reconcile(&self, ctx: &Context, key: &Key) -> Result<Outcome, Error> {
        let Some(cron) = ctx.get::<CronJob>(key) else {
            self.seen.lock().remove(key);
            return Ok(Outcome::Done);
        };
        let jobs = jobs_of(ctx, key);
        let mut status = cron.status.clone().unwrap_or_default();
        for job in history(&cron, &jobs) {
            // What stays is removed by a later pass.
            let _ = delete(ctx, &cron, &mut status, &Key::of(&*job), job.metadata.uid.as_deref()).await;
        }
        let lost = lost(ctx, &status, &jobs).await?;
        record(ctx, &cron, review(&mut status, &jobs, &lost));

        let rescheduled = self.is_rescheduled(key, &cron);
        let plan = plan(&cron, &status, rescheduled, ctx.world().clock.now());
        record(ctx, &cron, plan.events);
        let started = match plan.run {
            Some(run) => start(ctx, &cron, &mut status, run).await,
            None => Ok(()),
        };
        if cron.status.as_ref() != Some(&status) {
            ctx.update_status(&CronJob { status: Some(status), ..(*cron).clone() }).await?;
        }
        started.map(|()| plan.again.map_or(Outcome::Done, Outcome::RequeueAfter))
    }
}

impl CronJobs {
    fn is_rescheduled(&self, key: &Key, cron: &CronJob) -> bool {
        let Some(spec) = optional::<CronJobSpec>(&cron.spec) else { return false };
        let now = (cron.metadata.uid.clone(), spec.schedule.clone(), spec.time_zone.clone());
        let before = self.seen.lock().insert(key.clone(), now.clone());
        before.is_some_and(|before| before.0 == now.0 && before != now)
    }
}

/// The Jobs whose controller is called as the CronJob.
fn jobs_of(ctx: &Context, key: &Key) -> Vec<Arc<Job>> {
    let mut jobs = ctx.list::<Job>(key.namespace.as_deref());
    jobs.retain(|job| owner::controller_of(job.meta()).is_some_and(|owner| owner.name == key.name));
    jobs
}

/// The uids of active Jobs that are not there any more. The API server has the last word: the cache may be behind.
async fn lost(ctx: &Context, status: &CronJobStatus, jobs: &[Arc<Job>]) -> Result<BTreeSet<String>, Error> {
    let mut lost = BTreeSet::new();
    for active in status.active.iter().flatten() {
        let here = jobs.iter().any(|job| job.metadata.uid == active.uid);
        if !here && live(ctx, &key_of(active)).await?.is_none() {
            lost.extend(active.uid.clone());
        }
    }
    Ok(lost)
}

/// The Job as the API server has it now.
async fn live(ctx: &Context, key: &Key) -> Result<Option<Job>, Error> {
    let namespace = key.namespace.as_deref().unwrap_or_default();
    Ok(Api::<Job>::namespaced(ctx.client().clone(), namespace).get_opt(&key.name).await?)
}

fn key_of(reference: &ObjectReference) -> Key {
    Key::new(reference.namespace.clone(), reference.name.clone().unwrap_or_default())
}

/// Starts the Job of a run and lists it as active.
async fn start(ctx: &Context, cron: &CronJob, status: &mut CronJobStatus, run: Run) -> Result<(), Error> {
    for active in &run.replaced {
        delete(ctx, cron, status, &key_of(active), active.uid.as_deref()).await?;
    }
    let new = template::job(cron, run.at, &run.zone);
    let job = match ctx.create(&new).await {
        Ok(job) => {
            let name = review::name(&job);
            record(ctx, cron, [NewEvent::normal("SuccessfulCreate", format!("Created job {name}"))]);
            job
        }
        Err(error) if error.is_already_exists() => {
            // Ours, when an earlier pass could not write the status; otherwise it is somebody else's business.
            let there = live(ctx, &Key::of(&new)).await?;
            let ours = |job: &Job| {
                owner::is_controlled_by(job, cron) && !is_active(status, job.metadata.uid.as_deref())
            };
            match there.filter(ours) {
                Some(job) => job,
                None => return Ok(()),
            }
        }
        Err(error @ Error::OwnerGone(_)) => return Err(error),
        Err(error) => {
            if !crate::is_namespace_terminating(&error) {
                record(
                    ctx,
                    cron,
                    [NewEvent::warning("FailedCreate", format!("Error creating job: {error}"))],
                );
            }
            return Err(error);
        }
    };
    let reference =
        ObjectReference { resource_version: job.metadata.resource_version.clone(), ..job.object_ref(&()) };
    status.active.get_or_insert_default().push(reference);
    status.last_schedule_time = Some(Time(run.at));
    Ok(())
}

/// Deletes a Job with its pods, and takes it off the list of active ones.
async fn delete(
    ctx: &Context,
    cron: &CronJob,
    status: &mut CronJobStatus,
    job: &Key,
    uid: Option<&str>,
) -> Result<(), Error> {
    if let Err(error) = ctx.delete::<Job>(job, DeleteParams::background()).await {
        record(ctx, cron, [NewEvent::warning("FailedDelete", format!("Deleted job: {error}"))]);
        return Err(error);
    }
    forget(status, uid);
    record(ctx, cron, [NewEvent::normal("SuccessfulDelete", format!("Deleted job {}", job.name))]);
    Ok(())
}

fn record(ctx: &Context, cron: &CronJob, events: impl IntoIterator<Item = NewEvent>) {
    for event in events {
        event.record(ctx, cron);
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::batch::v1::{CronJob, Job};
    use k8s_openapi::api::core::v1::ObjectReference;
    use kubewright_world::SIMULATION_START as START;
    use serde_json::{Value, json};

    /// A CronJob `tick` of every minute, made at the start, with these members of `spec`.
    pub(super) fn cron_job(spec: Value) -> CronJob {
        let mut cron = json!({
            "metadata": {"name": "tick", "namespace": "default", "uid": "uid-tick", "creationTimestamp": START.to_string()},
            "spec": {"schedule": "* * * * *", "jobTemplate": {}},
        });
        let Value::Object(members) = spec else { panic!("members of a specification") };
        cron["spec"].as_object_mut().expect("a specification").extend(members);
        kubewright_objects::from_value(cron).expect("a CronJob")
    }

    fn job(name: &str, status: Value) -> Job {
        let metadata = json!({"name": name, "namespace": "default", "uid": format!("uid-{name}")});
        let mut job = json!({"metadata": metadata});
        job["status"] = status;
        kubewright_objects::from_value(job).expect("a Job")
    }

    /// A Job that runs.
    pub(super) fn running(name: &str) -> Job {
        job(name, json!({"active": 1}))
    }

    /// A Job that started so many seconds after the start and ended thus in a second.
    pub(super) fn ended(name: &str, condition: &str, seconds: u64) -> Job {
        let at = |seconds| (START + std::time::Duration::from_secs(seconds)).to_string();
        let completed = (condition == "Complete").then(|| at(seconds + 1));
        job(
            name,
            json!({"startTime": at(seconds), "completionTime": completed,
            "conditions": [{"type": condition, "status": "True"}]}),
        )
    }

    /// How the status refers to a Job of this name.
    pub(super) fn reference(name: &str) -> ObjectReference {
        ObjectReference {
            name: Some(name.to_owned()),
            namespace: Some("default".to_owned()),
            uid: Some(format!("uid-{name}")),
            ..ObjectReference::default()
        }
    }
}
