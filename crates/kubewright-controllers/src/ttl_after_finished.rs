//! Deletes Jobs some time after they have ended (`pkg/controller/ttlafterfinished`).

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::batch::v1::Job;
use kube::Api;
use kube::api::{DeleteParams, Preconditions, PropagationPolicy};
use kubewright_runtime::{Context, Controller, Error, Event, Key, Outcome, Predicate, Reconciler};

use crate::job::finished;

/// The controller.
#[must_use]
pub(crate) fn controller() -> Controller {
    Controller::new("ttl-after-finished-controller", Cleanup)
        .for_kind::<Job>()
        .predicate(Predicate::of(|event: &Event<'_, Job>| expiry(event.object()).is_some()))
        .concurrency(5)
}

struct Cleanup;

impl Reconciler for Cleanup {
    async fn reconcile(&self, ctx: &Context, key: &Key) -> Result<Outcome, Error> {
        let now = || ctx.world().clock.now();
        let Some(job) = ctx.get::<Job>(key) else { return Ok(Outcome::Done) };
        if let TtlDecision::Stays(outcome) = decision(&job, now()) {
            return Ok(outcome);
        }
        // The time may have been prolonged just now: the API server has the last word.
        let jobs: Api<Job> =
            Api::namespaced(ctx.client().clone(), key.namespace.as_deref().unwrap_or_default());
        let Some(fresh) = jobs.get_opt(&key.name).await? else { return Ok(Outcome::Done) };
        if let TtlDecision::Stays(outcome) = decision(&fresh, now()) {
            return Ok(outcome);
        }
        let params = DeleteParams {
            propagation_policy: Some(PropagationPolicy::Foreground),
            preconditions: Some(Preconditions { uid: fresh.metadata.uid, resource_version: None }),
            ..DeleteParams::default()
        };
        ctx.delete::<Job>(key, params).await?;
        Ok(Outcome::Done)
    }
}

#[derive(Debug, PartialEq)]
enum TtlDecision {
    Goes,
    Stays(Outcome),
}

fn decision(job: &Job, now: Timestamp) -> TtlDecision {
    let Some(expiry) = expiry(job) else { return TtlDecision::Stays(Outcome::Done) };
    match Duration::try_from(expiry.duration_since(now)) {
        Ok(left) if !left.is_zero() => TtlDecision::Stays(Outcome::RequeueAfter(left)),
        _ => TtlDecision::Goes,
    }
}

/// When the Job is to go: `spec.ttlSecondsAfterFinished` after it has ended. `None` for one that has not, has no such
/// time, or is being deleted.
fn expiry(job: &Job) -> Option<Timestamp> {
    if job.metadata.deletion_timestamp.is_some() {
        return None;
    }
    let seconds = job.spec.as_ref()?.ttl_seconds_after_finished?;
    let ended = finished(job)?.last_transition_time.as_ref()?.0;
    ended.checked_add(SignedDuration::from_secs(seconds.into())).ok()
}

#[cfg(test)]
mod tests {
    use kubewright_world::SIMULATION_START as NOW;
    use serde_json::{Value, json};

    use super::*;

    fn job(ttl: &Value, condition: &str) -> Job {
        kubewright_objects::from_value(json!({
            "metadata": {"name": "work", "namespace": "default"},
            "spec": {"ttlSecondsAfterFinished": ttl, "template": {}},
            "status": {"conditions": [{"type": condition, "status": "True", "lastTransitionTime": NOW.to_string()}]},
        }))
        .expect("a Job")
    }

    #[test]
    fn a_finished_job_goes_when_its_time_is_over() {
        for ended in ["Complete", "Failed"] {
            let at = |seconds| decision(&job(&json!(4), ended), NOW + Duration::from_secs(seconds));
            assert_eq!(at(1), TtlDecision::Stays(Outcome::RequeueAfter(Duration::from_secs(3))));
            assert_eq!(at(4), TtlDecision::Goes);
        }
        assert_eq!(decision(&job(&json!(0), "Complete"), NOW), TtlDecision::Goes);
    }

    #[test]
    fn a_job_that_runs_or_has_no_time_or_is_being_deleted_is_left_alone() {
        let late = NOW + Duration::from_secs(1000);
        let mut going = job(&json!(0), "Complete");
        going.metadata.deletion_timestamp = Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(NOW));
        for job in [job(&json!(0), "SuccessCriteriaMet"), job(&Value::Null, "Complete"), going] {
            assert_eq!(decision(&job, late), TtlDecision::Stays(Outcome::Done));
        }
    }
}
