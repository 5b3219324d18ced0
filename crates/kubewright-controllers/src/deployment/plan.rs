//! What a Deployment has to write next about its ReplicaSets (`syncDeployment` in
//! `pkg/controller/deployment/deployment_controller.go` and what it calls).

use std::sync::Arc;

use k8s_openapi::api::apps::v1::{Deployment, DeploymentSpec, ReplicaSet, ReplicaSetSpec};
use kubewright_objects::optional;
use serde_json::{Value, json};

use super::goal::{Goal, Strategy};
use super::proportion::{self, Share};
use super::revision::{self, DESIRED_REPLICAS, MAX_REPLICAS, REVISION};
use super::rolling::{self, Step};
use super::sets::{self, Sets};
use super::{status, template};

/// One write.
#[derive(Debug, PartialEq)]
pub(super) enum Action {
    /// Create the ReplicaSet of the current template.
    Create(Box<ReplicaSet>),
    /// Patch this ReplicaSet, if it is still as it was looked at, and tell the user.
    Patch { name: String, patch: Value, event: Option<String> },
    /// Delete this ReplicaSet, an old one without pods.
    Delete { name: String },
}

/// The next writes; none when nothing can be done before something else changes. They are small steps: after they are
/// carried out `plan` is asked again, until it says nothing more.
pub(super) fn plan(deployment: &Deployment, sets: &Sets) -> Vec<Action> {
    if deployment.metadata.deletion_timestamp.is_some() {
        return Vec::new();
    }
    let goal = Goal::of(deployment);
    if let Some(action) = keep_revision(deployment, sets) {
        return vec![action];
    }
    if status::is_paused(deployment) {
        let mut actions = scale(deployment, &goal, sets);
        actions.extend(clean_up(deployment, sets));
        return actions;
    }
    if was_scaled(&goal, sets) {
        return scale(deployment, &goal, sets);
    }
    let actions = match goal.strategy {
        Strategy::RollingUpdate => roll(deployment, &goal, sets),
        Strategy::Recreate => recreate(deployment, &goal, sets),
    };
    if !actions.is_empty() {
        return actions;
    }
    match &deployment.status {
        Some(status) if status::is_complete(deployment, status) => clean_up(deployment, sets),
        _ => Vec::new(),
    }
}

/// The revision annotation that the Deployment should have; `None` while it has no new ReplicaSet.
pub(super) fn wanted_revision(sets: &Sets) -> Option<&str> {
    revision::annotation(&sets.new.as_ref()?.metadata, REVISION)
}

/// The set of the current template gets the Deployment's annotations, the highest revision and `minReadySeconds`.
fn keep_revision(deployment: &Deployment, sets: &Sets) -> Option<Action> {
    let new = sets.new.as_deref()?;
    let next = revision::next(sets.old.iter().map(|set| &**set));
    let annotations = revision::of_current(&deployment.metadata, &new.metadata, next);
    let min_ready = |seconds: Option<i32>| seconds.unwrap_or_default();
    let wanted =
        min_ready(optional::<DeploymentSpec>(&deployment.spec).and_then(|spec| spec.min_ready_seconds));
    let has = min_ready(optional::<ReplicaSetSpec>(&new.spec).and_then(|spec| spec.min_ready_seconds));
    if wanted == has && new.metadata.annotations.clone().unwrap_or_default() == annotations {
        return None;
    }
    let mut patch = json!({"metadata": {"annotations": annotations}});
    if wanted != has {
        patch["spec"] = json!({"minReadySeconds": wanted});
    }
    Some(patch_of(new, patch, None))
}

/// Whether a set with pods was last sized for another `spec.replicas` (`isScalingEvent`).
fn was_scaled(goal: &Goal, sets: &Sets) -> bool {
    sets.active().into_iter().any(|set| {
        revision::number::<i32>(&set.metadata, DESIRED_REPLICAS)
            .is_some_and(|desired| desired != goal.replicas)
    })
}

/// Follows a change of `spec.replicas` outside a rollout's steps: one set takes it all; a rollout under way keeps the
/// proportions of its sets.
///
/// One set that has the wanted size but was sized for another one is left alone, and [`was_scaled`] stays true: no
/// rollout goes on before `spec.replicas` changes again. So it is in Kubernetes
/// (<https://github.com/kubernetes/kubernetes/pull/138840>, open for v1.37).
fn scale(deployment: &Deployment, goal: &Goal, sets: &Sets) -> Vec<Action> {
    let active = sets.active();
    match active.as_slice() {
        [] => return sets.latest().and_then(|set| resize(goal, set, goal.replicas)).into_iter().collect(),
        [only] => return resize(goal, only, goal.replicas).into_iter().collect(),
        _ => {}
    }
    if sets.new.as_deref().is_some_and(|new| is_saturated(goal, new)) {
        return sets
            .old
            .iter()
            .filter(|set| sets::replicas(set) > 0)
            .filter_map(|set| resize(goal, set, 0))
            .collect();
    }
    if goal.strategy == Strategy::Recreate {
        return Vec::new();
    }
    let mut active = active;
    let total: i32 = active.iter().map(|set| sets::replicas(set)).sum();
    if goal.replicas > 0 && goal.most() > total {
        active.sort_by(|a, b| sets::largest_then_youngest(a).cmp(&sets::largest_then_youngest(b)));
    } else {
        active.sort_by(|a, b| sets::largest_then_oldest(a).cmp(&sets::largest_then_oldest(b)));
    }
    let share = |set: &&Arc<ReplicaSet>| Share {
        replicas: sets::replicas(set),
        most_before: revision::number(&set.metadata, MAX_REPLICAS),
    };
    let shares: Vec<_> = active.iter().map(share).collect();
    let actual = deployment.status.as_ref().and_then(|status| status.replicas).unwrap_or_default();
    let sizes = proportion::distribute(goal, actual, &shares);
    active.into_iter().zip(sizes).filter_map(|(set, size)| note(goal, set, size)).collect()
}

/// The new set has all its pods, available, and was sized for this goal.
fn is_saturated(goal: &Goal, new: &ReplicaSet) -> bool {
    sets::replicas(new) == goal.replicas
        && sets::available(new) == goal.replicas
        && revision::number(&new.metadata, DESIRED_REPLICAS) == Some(goal.replicas)
}

fn roll(deployment: &Deployment, goal: &Goal, sets: &Sets) -> Vec<Action> {
    let others = sets.old.iter().map(|set| sets::counts(set).pods).sum();
    let Some(new) = &sets.new else {
        return vec![create(deployment, goal, sets, rolling::new_size(goal, 0, others))];
    };
    let old: Vec<_> = sets.old.iter().map(|set| sets::counts(set)).collect();
    match rolling::step(goal, sets::counts(new), &old) {
        Step::New(size) => resize(goal, new, size).into_iter().collect(),
        Step::Old(sizes) => {
            sets.old.iter().zip(sizes).filter_map(|(set, size)| resize(goal, set, size)).collect()
        }
        Step::Wait => Vec::new(),
    }
}

/// First all old sets go to 0, then their last pod has to be gone, then the new set comes.
fn recreate(deployment: &Deployment, goal: &Goal, sets: &Sets) -> Vec<Action> {
    let active = sets.old.iter().filter(|set| sets::replicas(set) > 0);
    let emptied: Vec<_> = active.filter_map(|set| resize(goal, set, 0)).collect();
    if !emptied.is_empty() {
        return emptied;
    }
    if sets.old.iter().any(|set| has_pods(set)) {
        return Vec::new();
    }
    match &sets.new {
        Some(new) => resize(goal, new, goal.replicas).into_iter().collect(),
        None => vec![create(deployment, goal, sets, goal.replicas)],
    }
}

/// Whether a set of size 0 may still have pods, terminating ones included.
fn has_pods(set: &ReplicaSet) -> bool {
    !sets::is_observed(set)
        || sets::reported(set, |status| Some(status.replicas)) > 0
        || sets::reported(set, |status| status.terminating_replicas) > 0
}

fn create(deployment: &Deployment, goal: &Goal, sets: &Sets, size: i32) -> Action {
    let mut new = template::new_replica_set(deployment, size);
    let next = revision::next(sets.old.iter().map(|set| &**set));
    let mut annotations = revision::of_current(&deployment.metadata, &new.metadata, next);
    annotations.extend(revision::sizing(goal));
    new.metadata.annotations = Some(annotations);
    Action::Create(Box::new(new))
}

/// Sizes `set` for `goal`; `None` when it has the size already, whatever its annotations say (`scaleReplicaSet`).
fn resize(goal: &Goal, set: &ReplicaSet, size: i32) -> Option<Action> {
    if sets::replicas(set) == size { None } else { note(goal, set, size) }
}

/// Sizes `set` for `goal` and notes what for; `None` when it has the size and the annotations already.
fn note(goal: &Goal, set: &ReplicaSet, size: i32) -> Option<Action> {
    let before = sets::replicas(set);
    let sizing = revision::sizing(goal);
    let noted = sizing.iter().all(|(name, value)| revision::annotation(&set.metadata, name) == Some(value));
    if before == size && noted {
        return None;
    }
    let direction = if size > before { "up" } else { "down" };
    let event = (before != size)
        .then(|| format!("Scaled {direction} replica set {} from {before} to {size}", sets::name(set)));
    let mut patch = json!({"metadata": {"annotations": sizing}});
    if before != size {
        patch["spec"] = json!({"replicas": size});
    }
    Some(patch_of(set, patch, event))
}

fn patch_of(set: &ReplicaSet, mut patch: Value, event: Option<String>) -> Action {
    patch["metadata"]["resourceVersion"] = json!(set.metadata.resource_version);
    Action::Patch { name: sets::name(set).to_owned(), patch, event }
}

/// Old sets beyond `spec.revisionHistoryLimit` go, lowest revision first, if they have no pods (`cleanupDeployment`).
fn clean_up(deployment: &Deployment, sets: &Sets) -> Vec<Action> {
    let limit = optional::<DeploymentSpec>(&deployment.spec).and_then(|spec| spec.revision_history_limit);
    let Some(limit) = limit.filter(|limit| *limit != i32::MAX).and_then(|limit| usize::try_from(limit).ok())
    else {
        return Vec::new();
    };
    let mut kept: Vec<_> = sets.old.iter().filter(|set| set.metadata.deletion_timestamp.is_none()).collect();
    kept.sort_by_key(|set| revision::revision(set));
    let surplus = kept.len().saturating_sub(limit);
    let is_empty = |set: &ReplicaSet| {
        sets::replicas(set) == 0
            && sets::is_observed(set)
            && sets::reported(set, |status| Some(status.replicas)) == 0
    };
    kept.into_iter()
        .take(surplus)
        .filter(|set| is_empty(set))
        .map(|set| Action::Delete { name: sets::name(set).to_owned() })
        .collect()
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
