//! From what is observed to what should be: a pure function.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;
use kubewright::conditions::{self, NewCondition, Status};

use crate::{
    ActiveJob, ConcurrencyPolicy, CronTab, CronTabStatus,
    events::{NewEvent, missed, too_many},
    job::{self, Run, ended},
    timetable::{Due, Timetable},
};

/// The annotation whose value, whenever it is another one, asks for a run at once.
pub const RUN_NOW: &str = "alpha.ianlewis.org/run-now";

/// What a pass over one CronTab does.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The runs that begin now.
    pub start: Vec<Start>,
    /// The Jobs that are to be deleted first, as these runs replace them.
    pub replaced: Vec<Job>,
    /// The Jobs that may go, as there are enough of their kind. None while a run begins: it has to be in the status first.
    pub history: Vec<Job>,
    /// The status that the CronTab should have, by what was observed before.
    pub status: CronTabStatus,
    /// When to look again, whatever happens until then.
    pub again: Option<Timestamp>,
    /// What somebody wants to hear of that the status does not tell.
    pub events: Vec<NewEvent>,
}

/// A run, and the Job that it is made of.
#[derive(Clone, Debug, PartialEq)]
pub struct Start {
    /// Which it is.
    pub run: Run,
    /// What is to be created.
    pub job: Job,
}

/// What to do for `crontab`, which has these `jobs`.
#[must_use]
pub fn plan(crontab: &CronTab, jobs: &[Arc<Job>], now: Timestamp) -> Plan {
    let mut status = review(crontab, jobs);
    let mut events = Vec::new();
    let timetable = match Timetable::of(&crontab.spec) {
        Ok(timetable) => timetable,
        Err(why) => return idle(crontab, status, (why.reason, why.message), now),
    };
    arm(crontab, &mut status, now);
    // The Jobs of a run are looked at before it is due: a template that makes none is told of now.
    let new = |run: &Run| job::job(crontab, run, &timetable.zone);
    if let Err(why) = new(&Run::At(now)) {
        return idle(crontab, status, ("InvalidTemplate", why), now);
    }
    let start_of = |run: Run| new(&run).ok().map(|job| Start { run, job });
    let mut start = Vec::new();
    if let Some(asked) = asked(crontab, &status) {
        let run = Run::Asked(asked);
        if jobs.iter().any(|job| job.name_any() == job::name(crontab, &run)) {
            begun(&mut status, &run);
        } else {
            start.extend(start_of(run));
        }
    }
    if crontab.spec.suspend {
        let reason = ("Suspended", "spec.suspend is set: nothing is started".to_owned());
        return Plan { start, ..idle(crontab, status, reason, now) };
    }

    let mut blocked = None;
    let mut replaced = Vec::new();
    if let Some(Due { at, after_many }) = timetable.due(since(&status, now), now) {
        let run = Run::At(at);
        if after_many {
            events.push(too_many(at));
        }
        if jobs.iter().any(|job| job.name_any() == job::name(crontab, &run)) {
            // An earlier pass made it, and then could not say so.
            begun(&mut status, &run);
        } else if is_late(crontab, at, now) {
            events.push(missed(at));
            left_out(&mut status, &run);
        } else {
            match crontab.spec.concurrency_policy {
                ConcurrencyPolicy::Forbid if !status.active.is_empty() => blocked = Some(at),
                ConcurrencyPolicy::Replace => {
                    replaced
                        .extend(jobs.iter().filter(|job| ended(job).is_none()).map(|job| (**job).clone()));
                    start.extend(start_of(run));
                }
                ConcurrencyPolicy::Allow | ConcurrencyPolicy::Forbid => start.extend(start_of(run)),
            }
        }
    }
    let history = if start.is_empty() { beyond_history(crontab, jobs) } else { Vec::new() };
    let next = timetable.next(if is_interval(crontab) { since(&status, now) } else { now });
    let next = next.map(|next| next.max(now));
    status.next_schedule_time = next.map(Time);
    let reason = match next {
        Some(_) => ("Waiting", String::new()),
        None => ("NeverDue", format!("{:?} is not due within five years", crontab.spec.schedule)),
    };
    say(crontab, &mut status, next.is_some(), reason, blocked, now);
    Plan { start, replaced, history, status, again: next, events }
}

/// Nothing is due, for this reason.
fn idle(crontab: &CronTab, mut status: CronTabStatus, reason: (&str, String), now: Timestamp) -> Plan {
    status.next_schedule_time = None;
    say(crontab, &mut status, false, reason, None, now);
    Plan {
        start: Vec::new(),
        replaced: Vec::new(),
        history: Vec::new(),
        status,
        again: None,
        events: Vec::new(),
    }
}

/// What the Jobs mean for the status.
fn review(crontab: &CronTab, jobs: &[Arc<Job>]) -> CronTabStatus {
    let mut status = crontab.status.clone().unwrap_or_default();
    status.observed_generation = crontab.metadata.generation;
    let active = jobs.iter().filter(|job| ended(job).is_none());
    let active = active.map(|job| ActiveJob { name: job.name_any(), uid: job.uid().unwrap_or_default() });
    status.active = active.collect();
    status.running = i32::try_from(status.active.len()).unwrap_or(i32::MAX);
    let succeeded = jobs.iter().filter(|job| ended(job) == Some("Complete"));
    let last = succeeded.filter_map(|job| job.status.as_ref()?.completion_time.clone()).max();
    if last > status.last_successful_time {
        status.last_successful_time = last;
    }
    status
}

/// Another schedule than the one that the status speaks of begins now, not with what it would have missed.
fn arm(crontab: &CronTab, status: &mut CronTabStatus, now: Timestamp) {
    let spec = &crontab.spec;
    let schedule = match &spec.time_zone {
        Some(zone) => format!("{} {zone}", spec.schedule),
        None => spec.schedule.clone(),
    };
    if status.armed_schedule.as_ref() == Some(&schedule) {
        return;
    }
    let first = status.armed_schedule.is_none();
    let made = crontab.metadata.creation_timestamp.clone().filter(|_| first);
    status.armed_since = Some(made.unwrap_or(Time(now)));
    status.armed_schedule = Some(schedule);
}

/// What the status says of a run once it has begun.
pub(crate) fn begun(status: &mut CronTabStatus, run: &Run) {
    match run {
        Run::At(at) => status.last_schedule_time = Some(Time(*at)),
        Run::Asked(text) => status.last_run_request = Some(text.clone()),
    }
}

/// What it says of a run that is left out.
pub(crate) fn left_out(status: &mut CronTabStatus, run: &Run) {
    match run {
        Run::At(at) => status.armed_since = Some(Time(*at)),
        Run::Asked(text) => status.last_run_request = Some(text.clone()),
    }
}

/// From when on runs count.
fn since(status: &CronTabStatus, now: Timestamp) -> Timestamp {
    let times = [&status.armed_since, &status.last_schedule_time];
    times.into_iter().flatten().map(|time| time.0).max().unwrap_or(now)
}

/// Whether it is too late for the run `at`.
fn is_late(crontab: &CronTab, at: Timestamp, now: Timestamp) -> bool {
    let deadline = crontab.spec.starting_deadline_seconds.map(SignedDuration::from_secs);
    deadline.and_then(|deadline| at.checked_add(deadline).ok()).is_some_and(|latest| latest < now)
}

/// The run that somebody asks for, if it was not made.
fn asked(crontab: &CronTab, status: &CronTabStatus) -> Option<String> {
    let asked = crontab.annotations().get(RUN_NOW).filter(|asked| !asked.is_empty())?;
    (status.last_run_request.as_ref() != Some(asked)).then(|| asked.clone())
}

fn is_interval(crontab: &CronTab) -> bool {
    crontab.spec.schedule.contains("@every")
}

/// The finished Jobs beyond the limits, those that were made first.
fn beyond_history(crontab: &CronTab, jobs: &[Arc<Job>]) -> Vec<Job> {
    let spec = &crontab.spec;
    let limits =
        [("Complete", spec.successful_jobs_history_limit), ("Failed", spec.failed_jobs_history_limit)];
    let mut beyond = Vec::new();
    for (kind, limit) in limits {
        let mut of_kind: Vec<&Arc<Job>> = jobs.iter().filter(|job| ended(job) == Some(kind)).collect();
        of_kind.sort_by_key(|job| (job.creation_timestamp(), job.name_any()));
        let kept = usize::try_from(limit).unwrap_or_default();
        of_kind.truncate(of_kind.len().saturating_sub(kept));
        beyond.extend(of_kind.into_iter().map(|job| (**job).clone()));
    }
    beyond
}

fn say(
    crontab: &CronTab,
    status: &mut CronTabStatus,
    scheduled: bool,
    (reason, message): (&str, String),
    blocked: Option<Timestamp>,
    now: Timestamp,
) {
    let scheduled = NewCondition::new("Scheduled", scheduled.into(), reason).message(message);
    let blocked = match blocked {
        Some(at) => NewCondition::new("Blocked", Status::True, "JobAlreadyActive").message(format!(
            "the run of {at} waits: an earlier one goes on, and concurrencyPolicy is Forbid"
        )),
        None => NewCondition::new("Blocked", Status::False, "NothingWaits"),
    };
    for wanted in [scheduled, blocked] {
        conditions::set(&mut status.conditions, &wanted.of(crontab), now);
    }
}

#[cfg(test)]
mod tests;
