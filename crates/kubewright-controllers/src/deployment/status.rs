//! The status of a Deployment (`pkg/controller/deployment/{sync,progress}.go`).

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{
    Deployment, DeploymentCondition, DeploymentSpec, DeploymentStatus, ReplicaSet,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kubewright_objects::{field, optional};

use super::goal::Goal;
use super::sets::{self, Sets};

const PROGRESSING: &str = "Progressing";
const AVAILABLE: &str = "Available";
const REPLICA_FAILURE: &str = "ReplicaFailure";
const COMPLETE: &str = "NewReplicaSetAvailable";
const TIMED_OUT: &str = "ProgressDeadlineExceeded";
const PAUSED: &str = "DeploymentPaused";

/// What happened to the new ReplicaSet in this pass.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Happened {
    #[default]
    Nothing,
    /// It was created.
    Created(String),
    /// It could not be created: what to tell the user.
    NotCreated(String),
    /// Another object has its name: its next one will be another.
    Collided,
}

/// The status that `deployment` should have, and when to look again because its deadline passes then.
pub(super) fn status(
    deployment: &Deployment,
    sets: &Sets,
    happened: &Happened,
    now: Timestamp,
) -> (DeploymentStatus, Option<Duration>) {
    let before = deployment.status.clone().unwrap_or_default();
    let mut conditions = Conditions { all: before.conditions.clone().unwrap_or_default(), now: Time(now) };
    let deadline = progress_deadline(deployment);
    let deleting = deployment.metadata.deletion_timestamp.is_some();
    if deadline.is_some() && !deleting {
        note_pause(&mut conditions, is_paused(deployment));
        note_new_set(&mut conditions, sets, happened);
    }

    let mut status = counts(deployment, sets, &before, happened);
    note_availability(&mut conditions, deployment, &status);
    let mut again = None;
    if !is_paused(deployment) && !deleting {
        match deadline {
            None => conditions.remove(PROGRESSING),
            Some(deadline) => {
                note_progress(&mut conditions, deployment, sets, &before, &status, deadline);
                again = until_timeout(&conditions, deployment, &status, deadline);
            }
        }
        match replica_failure(sets) {
            Some(failure) => conditions.set(failure),
            None => conditions.remove(REPLICA_FAILURE),
        }
    }
    status.conditions = (!conditions.all.is_empty()).then_some(conditions.all);
    (status, again)
}

fn counts(
    deployment: &Deployment,
    sets: &Sets,
    before: &DeploymentStatus,
    happened: &Happened,
) -> DeploymentStatus {
    let positive = |count: i32| (count > 0).then_some(count);
    let actual = |set: &ReplicaSet| sets::reported(set, |status| Some(status.replicas));
    let available = sets.sum(sets::available);
    DeploymentStatus {
        observed_generation: deployment.metadata.generation,
        replicas: positive(sets.sum(actual)),
        updated_replicas: positive(sets.new.as_deref().map_or(0, actual)),
        ready_replicas: positive(sets.sum(|set| sets::reported(set, |status| status.ready_replicas))),
        available_replicas: positive(available),
        unavailable_replicas: positive(sets.sum(sets::replicas) - available),
        terminating_replicas: terminating(sets),
        collision_count: match happened {
            Happened::Collided => Some(before.collision_count.unwrap_or_default().saturating_add(1)),
            _ => before.collision_count,
        },
        conditions: None,
    }
}

/// `None` when a set that its controller has seen does not say; a set that it has not seen yet has none.
fn terminating(sets: &Sets) -> Option<i32> {
    sets.all().try_fold(0, |sum, set| {
        let status = set.status.as_ref();
        match status.and_then(|status| status.terminating_replicas) {
            Some(count) => Some(sum + count),
            None if status.and_then(|status| status.observed_generation).is_none() => Some(sum),
            None => None,
        }
    })
}

/// A deadline of the largest number means none (`HasProgressDeadline`).
fn progress_deadline(deployment: &Deployment) -> Option<Duration> {
    let seconds = optional::<DeploymentSpec>(&deployment.spec)?.progress_deadline_seconds?;
    if seconds == i32::MAX {
        return None;
    }
    Some(Duration::from_secs(u64::try_from(seconds).unwrap_or_default()))
}

/// `spec.paused`.
pub(super) fn is_paused(deployment: &Deployment) -> bool {
    optional::<DeploymentSpec>(&deployment.spec).and_then(|spec| spec.paused).unwrap_or_default()
}

/// Whether a rollout is over, as `status` has it (`DeploymentComplete`).
pub(super) fn is_complete(deployment: &Deployment, status: &DeploymentStatus) -> bool {
    let wanted = Goal::of(deployment).replicas;
    [status.updated_replicas, status.replicas, status.available_replicas]
        .iter()
        .all(|count| count.unwrap_or_default() == wanted)
        && status.observed_generation >= deployment.metadata.generation
}

/// A pause and its end are noted, so that a pause is not taken for a lack of progress.
fn note_pause(conditions: &mut Conditions, paused: bool) {
    let reason = conditions.reason(PROGRESSING);
    if reason == Some(TIMED_OUT) {
        return;
    }
    match (paused, reason == Some(PAUSED)) {
        (true, false) => conditions.put(PROGRESSING, "Unknown", PAUSED, "Deployment is paused"),
        (false, true) => {
            conditions.put(PROGRESSING, "Unknown", "DeploymentResumed", "Deployment is resumed");
        }
        (true, true) | (false, false) => {}
    }
}

fn note_new_set(conditions: &mut Conditions, sets: &Sets, happened: &Happened) {
    match happened {
        Happened::Created(name) => {
            let message = format!("Created new replica set {name:?}");
            conditions.put(PROGRESSING, "True", "NewReplicaSetCreated", &message);
        }
        Happened::NotCreated(message) => {
            conditions.put(PROGRESSING, "False", "ReplicaSetCreateError", message);
        }
        Happened::Collided => {}
        Happened::Nothing => {
            if let (Some(new), None) = (&sets.new, conditions.get(PROGRESSING)) {
                let message = format!("Found new replica set {:?}", sets::name(new));
                conditions.put(PROGRESSING, "True", "FoundNewReplicaSet", &message);
            }
        }
    }
}

fn note_availability(conditions: &mut Conditions, deployment: &Deployment, status: &DeploymentStatus) {
    if status.available_replicas.unwrap_or_default() >= Goal::of(deployment).least_available() {
        let message = "Deployment has minimum availability.";
        conditions.put(AVAILABLE, "True", "MinimumReplicasAvailable", message);
    } else {
        let message = "Deployment does not have minimum availability.";
        conditions.put(AVAILABLE, "False", "MinimumReplicasUnavailable", message);
    }
}

fn note_progress(
    conditions: &mut Conditions,
    deployment: &Deployment,
    sets: &Sets,
    before: &DeploymentStatus,
    status: &DeploymentStatus,
    deadline: Duration,
) {
    let was_complete =
        status.replicas == status.updated_replicas && conditions.reason(PROGRESSING) == Some(COMPLETE);
    if was_complete {
        return;
    }
    let subject = match &sets.new {
        Some(new) => format!("ReplicaSet {:?}", sets::name(new)),
        None => format!("Deployment {:?}", deployment.metadata.name.as_deref().unwrap_or_default()),
    };
    if is_complete(deployment, status) {
        conditions.put(PROGRESSING, "True", COMPLETE, &format!("{subject} has successfully progressed."));
    } else if has_progressed(before, status) {
        conditions.renew_progress(&format!("{subject} is progressing."));
    } else if time_left(conditions, deadline).is_some_and(|left| left.is_negative()) {
        conditions.put(PROGRESSING, "False", TIMED_OUT, &format!("{subject} has timed out progressing."));
    }
}

/// More new pods, fewer old ones, or more that are ready or available (`DeploymentProgressing`).
fn has_progressed(before: &DeploymentStatus, status: &DeploymentStatus) -> bool {
    let grew = |count: fn(&DeploymentStatus) -> Option<i32>| {
        count(status).unwrap_or_default() > count(before).unwrap_or_default()
    };
    let old = |status: &DeploymentStatus| {
        status.replicas.unwrap_or_default() - status.updated_replicas.unwrap_or_default()
    };
    grew(|status| status.updated_replicas)
        || old(status) < old(before)
        || grew(|status| status.ready_replicas)
        || grew(|status| status.available_replicas)
}

/// How long the rollout may still take without progress; `None` when nothing says since when it runs, or it is over.
fn time_left(conditions: &Conditions, deadline: Duration) -> Option<jiff::SignedDuration> {
    let condition = conditions.get(PROGRESSING)?;
    if matches!(condition.reason.as_deref(), Some(COMPLETE | TIMED_OUT)) {
        return None;
    }
    let since = condition.last_update_time.as_ref()?.0;
    let passed = conditions.now.0.duration_since(since);
    Some(jiff::SignedDuration::try_from(deadline).unwrap_or(jiff::SignedDuration::MAX).saturating_sub(passed))
}

/// A second is added, for conditions know only whole seconds.
fn until_timeout(
    conditions: &Conditions,
    deployment: &Deployment,
    status: &DeploymentStatus,
    deadline: Duration,
) -> Option<Duration> {
    if is_complete(deployment, status) {
        return None;
    }
    let left = Duration::try_from(time_left(conditions, deadline)?).unwrap_or_default();
    Some(left.saturating_add(Duration::from_secs(1)))
}

/// The failure of a ReplicaSet, first of all of the new one.
fn replica_failure(sets: &Sets) -> Option<DeploymentCondition> {
    let failure = |set: &ReplicaSet| {
        let conditions = set.status.as_ref()?.conditions.as_ref()?;
        conditions.iter().find(|condition| is(&condition.type_, REPLICA_FAILURE)).cloned()
    };
    let failure = sets.new.iter().chain(&sets.old).find_map(|set| failure(set))?;
    Some(DeploymentCondition {
        type_: field(REPLICA_FAILURE.to_owned()),
        status: failure.status,
        last_transition_time: failure.last_transition_time.clone(),
        last_update_time: failure.last_transition_time,
        reason: failure.reason,
        message: failure.message,
    })
}

/// Whether a field says this.
fn is<'a>(field: impl Into<Option<&'a String>>, text: &str) -> bool {
    optional(field).is_some_and(|said| said == text)
}

/// Conditions, and the time that changes get.
struct Conditions {
    all: Vec<DeploymentCondition>,
    now: Time,
}

impl Conditions {
    fn get(&self, kind: &str) -> Option<&DeploymentCondition> {
        self.all.iter().find(|condition| is(&condition.type_, kind))
    }

    fn reason(&self, kind: &str) -> Option<&str> {
        self.get(kind)?.reason.as_deref()
    }

    fn remove(&mut self, kind: &str) {
        self.all.retain(|condition| !is(&condition.type_, kind));
    }

    fn put(&mut self, kind: &str, status: &str, reason: &str, message: &str) {
        self.set(DeploymentCondition {
            type_: field(kind.to_owned()),
            status: field(status.to_owned()),
            last_update_time: Some(self.now.clone()),
            last_transition_time: Some(self.now.clone()),
            reason: Some(reason.into()),
            message: Some(message.into()),
        });
    }

    /// The same status and reason change nothing; the same status keeps its transition time
    /// (`SetDeploymentCondition`).
    fn set(&mut self, mut condition: DeploymentCondition) {
        if let Some(before) = self.all.iter().find(|before| before.type_ == condition.type_) {
            if before.status == condition.status && before.reason == condition.reason {
                return;
            }
            if before.status == condition.status {
                condition.last_transition_time = before.last_transition_time.clone();
            }
        }
        self.all.retain(|before| before.type_ != condition.type_);
        self.all.push(condition);
    }

    /// Progress renews the update time even where status and reason stay: the deadline counts from there.
    fn renew_progress(&mut self, message: &str) {
        let since = self
            .get(PROGRESSING)
            .filter(|before| is(&before.status, "True"))
            .and_then(|before| before.last_transition_time.clone());
        self.remove(PROGRESSING);
        self.put(PROGRESSING, "True", "ReplicaSetUpdated", message);
        if let (Some(since), Some(renewed)) = (since, self.all.last_mut()) {
            renewed.last_transition_time = Some(since);
        }
    }
}

#[cfg(test)]
#[path = "status_tests.rs"]
mod tests;
