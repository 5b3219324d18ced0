//! The disruption controller: how many pods of a budget may be evicted now
//! (`pkg/controller/disruption/disruption.go`).

mod expected;
mod plan;

use std::time::Duration;

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::core::v1::{Pod, ReplicationController};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, Time};
use kubewright_runtime::{Context, Controller, Error, Event, EventType, Key, Outcome, Predicate, Reconciler};

use self::plan::Observed;
use crate::claims::{self, Selectors};
use crate::{go_text, pod};

/// The source of its events.
const NAME: &str = "controllermanager";
/// How long a pod is said to be going without going, before that is taken back.
const STALE: Duration = Duration::from_secs(120);

/// The controller of budgets.
#[must_use]
pub(crate) fn controller() -> Controller {
    let selectors = Selectors::default();
    let (guards, now) = (selectors.clone(), selectors.clone());
    Controller::new(NAME, Budgets { selectors })
        .for_kind::<PodDisruptionBudget>()
        // What a pass wrote is looked at again, as upstream (`updateDb`): the pods may have changed meanwhile.
        .own_events()
        .watches(move |pod: &Pod| guards.selecting(&pod.metadata))
        // As upstream, a pod that is relabelled concerns the budgets that select it now (`updatePod`).
        .predicate(Predicate::of(move |event: &Event<'_, Pod>| {
            !now.selecting(&event.object().metadata).is_empty()
        }))
        .reads::<Deployment>()
        .reads::<ReplicaSet>()
        .reads::<ReplicationController>()
        .reads::<StatefulSet>()
}

/// The controller of pods that were to be evicted and were not.
#[must_use]
pub(crate) fn stale_conditions() -> Controller {
    Controller::new("disruption-controller-stale-conditions", StaleConditions)
        .for_kind::<Pod>()
        .predicate(Predicate::of(|event: &Event<'_, Pod>| is_target(event.object())))
}

struct Budgets {
    selectors: Selectors,
}

impl Reconciler for Budgets {
    async fn reconcile(&self, ctx: &Context, key: &Key) -> Result<Outcome, Error> {
        let Some(budget) = ctx.get::<PodDisruptionBudget>(key) else {
            self.selectors.forget(key);
            return Ok(Outcome::Done);
        };
        let selector = budget.spec.as_ref().and_then(|spec| spec.selector.clone());
        match &selector {
            Some(selector) => self.selectors.set(key, selector),
            None => self.selectors.forget(key),
        }
        let guarded = |selector| claims::matching(selector, ctx.list::<Pod>(key.namespace.as_deref()));
        let pods = selector.as_ref().map(guarded).unwrap_or_default();
        if pods.is_empty() {
            ctx.event(&*budget, EventType::Normal, "NoPods", "No matching pods found");
        }
        let now = ctx.world().clock.now();
        let (changed, again) = match expected::count(ctx, &budget, &pods).await {
            Ok(count) => {
                if count.has_unmanaged {
                    let note = unmanaged(selector.as_ref());
                    ctx.event(&*budget, EventType::Warning, "UnmanagedPods", &note);
                }
                plan::status(
                    &budget,
                    &Observed { pods: &pods, expected: count.expected, desired: count.desired },
                    now,
                )
            }
            Err(why) => {
                let note = format!("Failed to calculate the number of expected pods: {why}");
                ctx.event(&*budget, EventType::Warning, "CalculateExpectedPodCountFailed", &note);
                (plan::failed(&budget, &why, now), None)
            }
        };
        if let Some(changed) = changed {
            match ctx.update_status(&changed).await {
                Err(error) if error.is_not_found() => {}
                written => drop(written?),
            }
        }
        Ok(again.map_or(Outcome::Done, Outcome::RequeueAfter))
    }
}

/// What is told of pods that nobody controls, with the selector as Go prints it.
fn unmanaged(selector: Option<&LabelSelector>) -> String {
    let selector = go_text::label_selector(selector);
    format!(
        "Pods selected by this PodDisruptionBudget (selector: {selector}) were found to be unmanaged. As a result, the status of the PDB cannot be calculated correctly, which may result in undefined behavior. To account for these pods please set \".spec.minAvailable\" field of the PDB to an integer value."
    )
}

struct StaleConditions;

impl Reconciler for StaleConditions {
    async fn reconcile(&self, ctx: &Context, key: &Key) -> Result<Outcome, Error> {
        let Some(pod) = ctx.get::<Pod>(key).filter(|pod| is_target(pod)) else { return Ok(Outcome::Done) };
        let now = ctx.world().clock.now();
        let since =
            pod::condition(&pod, "DisruptionTarget").and_then(|one| one.last_transition_time.as_ref());
        let age =
            since.map_or(STALE, |time| Duration::try_from(now.duration_since(time.0)).unwrap_or_default());
        if let Some(left) = STALE.checked_sub(age).filter(|left| !left.is_zero()) {
            return Ok(Outcome::RequeueAfter(left));
        }
        let mut changed = (*pod).clone();
        let conditions = changed.status.iter_mut().filter_map(|status| status.conditions.as_mut()).flatten();
        for condition in conditions.filter(|one| one.type_ == "DisruptionTarget") {
            condition.status = "False".into();
            condition.reason = None;
            condition.message = None;
            condition.last_transition_time = Some(Time(now));
        }
        match ctx.update_status(&changed).await {
            Err(error) if error.is_not_found() => Ok(Outcome::Done),
            written => written.map(|_| Outcome::Done),
        }
    }
}

/// Whether a pod that lives on is said to be going, by others than its node.
fn is_target(pod: &Pod) -> bool {
    let said = pod::condition(pod, "DisruptionTarget").is_some_and(|condition| {
        condition.status == "True" && condition.reason.as_deref() != Some("TerminationByKubelet")
    });
    said && pod.metadata.deletion_timestamp.is_none() && !pod::is_finished(pod)
}
