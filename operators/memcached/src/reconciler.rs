//! Observe, plan, act.

use std::{collections::BTreeMap, time::Duration};

use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{Pod, Service},
    policy::v1::PodDisruptionBudget,
};
use kube::api::DeleteParams;
use kubewright::{
    Context, Controller, Ensured, Error, EventType, Index, Key, Object, Outcome, Reconciler, owner,
    probes::Probes, rbac::Verb,
};

use crate::{
    Memcached,
    plan::{Observed, Plan, Wanted, plan},
};

/// Who asks the pods of a Memcached, whose addresses are given by name.
pub type Stats = Probes<BTreeMap<String, String>>;

/// The label of its pods that names the Memcached.
const OF: &str = "memcached_cr";
/// How long until an object that is somebody else's is looked at again: its deletion tells this operator nothing.
const LOOK_AGAIN: Duration = Duration::from_secs(30);

/// The Memcached controller, which asks pods by `stats`.
#[must_use]
pub fn controller(stats: Stats) -> Controller {
    let pods = Index::new("by-memcached", |pod: &Pod| key_of_pod(pod).iter().map(Key::to_string).collect());
    let answers = stats.keys();
    Controller::new("memcached", MemcachedReconciler { stats, pods: pods.clone() })
        .for_kind::<Memcached>()
        .owns::<Deployment>()
        .owns::<Service>()
        .owns::<PodDisruptionBudget>()
        .watches(|pod: &Pod| key_of_pod(pod).into_iter().collect())
        .labelled(kube::core::Expression::Equal("app".to_owned(), "memcached".to_owned()))
        .indexed(&pods)
        .source(answers)
        .writes::<Deployment>([Verb::Create, Verb::Patch])
        .writes::<Service>([Verb::Create, Verb::Patch])
        .writes::<PodDisruptionBudget>([Verb::Create, Verb::Patch, Verb::Delete])
        .writes_subresource::<Memcached>("status", [Verb::Patch])
}

fn key_of_pod(pod: &Pod) -> Option<Key> {
    let name = pod.metadata.labels.as_ref()?.get(OF)?;
    Some(Key::namespaced(pod.metadata.namespace.clone()?, name.clone()))
}

/// Keeps the objects of each Memcached as they are meant to be.
#[derive(Debug)]
pub struct MemcachedReconciler {
    stats: Stats,
    pods: Index<Pod>,
}

impl Reconciler for MemcachedReconciler {
    async fn reconcile(&self, ctx: &Context, key: &Key) -> Result<Outcome, Error> {
        let Some(memcached) = ctx.get::<Memcached>(key) else {
            tracing::info!(%key, "Memcached resource not found. Ignoring since object must be deleted");
            self.stats.forget(key);
            return Ok(Outcome::Done); // its objects go with it: the garbage collector's work
        };
        if memcached.metadata.deletion_timestamp.is_some() {
            return Ok(Outcome::Done);
        }
        let observed = Observed {
            deployment: ctx.get(key),
            service: ctx.get(key),
            budget: ctx.get(key),
            pods: self.pods.get(&key.to_string()),
            report: self.stats.report(key),
            now: ctx.world().clock.now(),
            memcached,
        };
        let plan = plan(&observed)?;
        if plan.ask.is_empty() {
            self.stats.forget(key);
        } else {
            self.stats.observe(key, plan.ask.clone());
        }
        if let Some(wanted) = &plan.wanted {
            act(ctx, key, &observed, wanted).await?;
        }
        report(ctx, &observed, &plan).await?;
        Ok(if plan.conflict.is_some() { Outcome::RequeueAfter(LOOK_AGAIN) } else { Outcome::Done })
    }
}

async fn act(ctx: &Context, key: &Key, observed: &Observed, wanted: &Wanted) -> Result<(), Error> {
    keep(ctx, &observed.memcached, &wanted.deployment).await?;
    keep(ctx, &observed.memcached, &wanted.service).await?;
    match (&wanted.budget, &observed.budget) {
        (Some(budget), _) => keep(ctx, &observed.memcached, budget).await,
        (None, Some(found)) if owner::is_controlled_by(&**found, &*observed.memcached) => {
            ctx.delete::<PodDisruptionBudget>(key, DeleteParams::default()).await.map(drop)
        }
        (None, _) => Ok(()),
    }
}

/// Makes an object be as it is wanted, and tells of it.
async fn keep<K: Object>(ctx: &Context, memcached: &Memcached, wanted: &K) -> Result<(), Error> {
    let kind = K::kind(&());
    match ctx.ensure(wanted, None).await? {
        Ensured::Unchanged(_) => {}
        Ensured::Created(object) => {
            let name = Key::of(&*object).name;
            ctx.event(memcached, EventType::Normal, "Created", &format!("Created {kind} {name}")).await;
        }
        Ensured::Updated { object, changed } => {
            let note = format!("Updated {kind} {}: {changed}", Key::of(&*object).name);
            ctx.event(memcached, EventType::Normal, "Updated", &note).await;
        }
    }
    Ok(())
}

/// Writes the status if it is another than there is, and tells of a conflict once.
async fn report(ctx: &Context, observed: &Observed, plan: &Plan) -> Result<(), Error> {
    let mut updated = (*observed.memcached).clone();
    updated.status = Some(plan.status.clone());
    let written = ctx.ensure_status(&updated).await?;
    if let (Some(conflict), Ensured::Updated { .. }) = (&plan.conflict, &written) {
        ctx.event(&*observed.memcached, EventType::Warning, "Conflict", conflict).await;
    }
    Ok(())
}
