//! Observe, plan, act.

use std::{collections::BTreeMap, time::Duration};

use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{Pod, Service},
    policy::v1::PodDisruptionBudget,
};
use kubewright::{
    Context, Controller, Desired, Error, EventType, Index, Key, Outcome, Reconciler, Written, probes::Probes,
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
        .applies::<Deployment>()
        .applies::<Service>()
        .applies::<PodDisruptionBudget>()
        .watches(|pod: &Pod| key_of_pod(pod).into_iter().collect())
        .labelled(kube::core::Expression::Equal("app".to_owned(), "memcached".to_owned()))
        .indexed(&pods)
        .source(answers)
        .writes_status::<Memcached>()
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
        let mut plan = plan(&observed)?;
        if plan.ask.is_empty() {
            self.stats.forget(key);
        } else {
            self.stats.observe(key, plan.ask.clone());
        }
        if let Some(wanted) = plan.wanted.take() {
            act(ctx, &observed.memcached, wanted).await?;
        }
        report(ctx, &observed, &plan).await?;
        Ok(if plan.conflict.is_some() { Outcome::RequeueAfter(LOOK_AGAIN) } else { Outcome::Done })
    }
}

/// Makes its objects be as they are wanted, and tells of it.
async fn act(ctx: &Context, memcached: &Memcached, wanted: Wanted) -> Result<(), Error> {
    let Wanted { deployment, service, budget } = wanted;
    let desired = Desired::new().with(deployment).with(service).with_all(budget);
    for change in ctx.apply_all(memcached, desired).await? {
        ctx.event(memcached, EventType::Normal, change.reason(), &change.to_string());
    }
    Ok(())
}

/// Writes the status if it is another than there is, and tells of a conflict once.
async fn report(ctx: &Context, observed: &Observed, plan: &Plan) -> Result<(), Error> {
    let written = ctx.status(&*observed.memcached).set(|status| *status = plan.status.clone()).await?;
    if let (Some(conflict), Written::Updated { .. }) = (&plan.conflict, &written) {
        ctx.event(&*observed.memcached, EventType::Warning, "Conflict", conflict);
    }
    Ok(())
}
