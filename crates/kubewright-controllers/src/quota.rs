//! The resource quota controller: counts what a namespace uses (`pkg/controller/resourcequota`).
//!
//! What comes is charged by admission; this counts a new or changed quota, and again when something goes. It does not
//! look at changes of the status: between a charge and the object that was charged for, a count would be too low.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures::stream;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod, ResourceQuota, Service};
use kube::core::{DynamicObject, PartialObjectMeta};
use kubewright_apiserver::quota::{self, GroupResource};
use kubewright_runtime::{
    Change, Context, Controller, Error, Event, Informer, Key, Object, Outcome, Predicate, Reconciler,
};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use crate::discovery::Catalog;
use crate::pod;

/// All is counted again this often (`--resource-quota-sync-period`): charges for what was then not created go.
const RESYNC: Duration = Duration::from_secs(300);
/// How soon a resource that nobody serves yet is looked for again.
const DISCOVERY: Duration = Duration::from_secs(30);

type Meta = PartialObjectMeta<DynamicObject>;
/// The quotas by namespace.
type Quotas = Arc<Mutex<BTreeMap<String, BTreeSet<Key>>>>;

/// The controller.
#[must_use]
pub(crate) fn controller() -> Controller {
    let (keys, mut received) = unbounded_channel();
    let quotas = Quotas::default();
    let of = |quotas: &Quotas| {
        let quotas = Arc::clone(quotas);
        move |namespace: Option<&String>| keys_in(&quotas, namespace)
    };
    let (of_pod, of_service, of_claim) = (of(&quotas), of(&quotas), of(&quotas));
    let counter = Counter { quotas, informers: Mutex::default(), keys };
    Controller::new("resourcequota-controller", counter)
        .for_kind::<ResourceQuota>()
        .predicate(Predicate::of(|event: &Event<'_, ResourceQuota>| match event {
            Event::Update { old, new } => old.spec != new.spec,
            _ => true,
        }))
        .watches(move |pod: &Pod| of_pod(pod.metadata.namespace.as_ref()))
        .predicate(Predicate::of(|event: &Event<'_, Pod>| frees(event, pod_frees)))
        .watches(move |service: &Service| of_service(service.metadata.namespace.as_ref()))
        .predicate(Predicate::of(|event: &Event<'_, Service>| frees(event, |old, new| old.spec != new.spec)))
        .watches(move |claim: &PersistentVolumeClaim| of_claim(claim.metadata.namespace.as_ref()))
        .predicate(Predicate::of(|event: &Event<'_, PersistentVolumeClaim>| {
            frees(event, |old, new| old.status != new.status)
        }))
        .source(stream::poll_fn(move |cx| received.poll_recv(cx)))
}

/// Whether an event may lower what is used: something went, or changed in this way.
fn frees<K>(event: &Event<'_, K>, changed: impl Fn(&K, &K) -> bool) -> bool {
    match event {
        Event::Create(_) => false,
        Event::Update { old, new } => changed(old, new),
        Event::Delete(_) | Event::Generic(_) => true,
    }
}

fn pod_frees(old: &Pod, new: &Pod) -> bool {
    pod::is_finished(old) != pod::is_finished(new) || old.spec != new.spec
}

fn keys_in(quotas: &Quotas, namespace: Option<&String>) -> Vec<Key> {
    let quotas = quotas.lock();
    namespace.and_then(|namespace| quotas.get(namespace)).into_iter().flatten().cloned().collect()
}

struct Counter {
    quotas: Quotas,
    /// Of the resources that are counted by number only.
    informers: Mutex<BTreeMap<GroupResource, Informer<Meta>>>,
    keys: UnboundedSender<Key>,
}

impl Reconciler for Counter {
    async fn reconcile(&self, ctx: &Context, key: &Key) -> Result<Outcome, Error> {
        let namespace = key.namespace.clone().unwrap_or_default();
        let Some(quota) = ctx.get::<ResourceQuota>(key) else {
            if let Some(keys) = self.quotas.lock().get_mut(&namespace) {
                keys.remove(key);
            }
            return Ok(Outcome::Done);
        };
        self.quotas.lock().entry(namespace.clone()).or_default().insert(key.clone());
        let (objects, complete) = self.observe(ctx, &quota, &namespace).await?;
        if let Some(counted) = plan(&quota, &objects, ctx.world().clock.now())? {
            ctx.update_status(&counted).await?;
        }
        Ok(Outcome::RequeueAfter(if complete { RESYNC } else { DISCOVERY }))
    }
}

impl Counter {
    /// The objects that a quota counts, and whether all of their resources are served.
    async fn observe(
        &self,
        ctx: &Context,
        quota: &ResourceQuota,
        namespace: &str,
    ) -> Result<(BTreeMap<GroupResource, Vec<Value>>, bool), Error> {
        let hard = json!(quota.spec.as_ref().and_then(|spec| spec.hard.as_ref()));
        let mut objects = BTreeMap::new();
        let mut complete = true;
        for resource in quota::counted(&hard) {
            let values = match (resource.0.as_str(), resource.1.as_str()) {
                ("", "pods") => values(&ctx.list::<Pod>(Some(namespace))),
                ("", "services") => values(&ctx.list::<Service>(Some(namespace))),
                ("", "persistentvolumeclaims") => values(&ctx.list::<PersistentVolumeClaim>(Some(namespace))),
                _ => match self.informer(ctx, &resource).await? {
                    Some(informer) => vec![Value::Null; informer.list(Some(namespace)).len()],
                    None => {
                        complete = false;
                        continue;
                    }
                },
            };
            objects.insert(resource, values);
        }
        Ok((objects, complete))
    }

    /// What watches a resource; `None` while nobody serves it.
    async fn informer(
        &self,
        ctx: &Context,
        resource: &GroupResource,
    ) -> Result<Option<Informer<Meta>>, Error> {
        if let Some(known) = self.informers.lock().get(resource).cloned() {
            return Ok(Some(known));
        }
        let catalog = Catalog::fetch(ctx.client()).await?;
        let Some(served) = catalog.find_plural(&resource.0, &resource.1) else { return Ok(None) };
        let informer = ctx.cache().watch::<Meta>(&served.resource);
        let (quotas, keys) = (Arc::clone(&self.quotas), self.keys.clone());
        informer.subscribe(move |change| {
            if let Change::Deleted(gone) = change {
                for key in keys_in(&quotas, gone.metadata.namespace.as_ref()) {
                    // Nobody receives any more when the manager stops.
                    let _ = keys.send(key);
                }
            }
        });
        informer.synced().await;
        self.informers.lock().insert(resource.clone(), informer.clone());
        Ok(Some(informer))
    }
}

fn values<K: Object>(objects: &[Arc<K>]) -> Vec<Value> {
    objects.iter().map(|object| json!(**object)).collect()
}

/// The quota with its status as it should be, when it is not.
fn plan(
    quota: &ResourceQuota,
    objects: &BTreeMap<GroupResource, Vec<Value>>,
    now: jiff::Timestamp,
) -> Result<Option<ResourceQuota>, Error> {
    let status = quota::status(&json!(quota), objects, now);
    let before = json!(quota.status);
    if before["hard"] == status["hard"] && before["used"] == status["used"] {
        return Ok(None);
    }
    let status = serde_json::from_value(status).map_err(|error| Error::terminal(error.to_string()))?;
    Ok(Some(ResourceQuota { status: Some(status), ..quota.clone() }))
}

#[cfg(test)]
mod tests {
    use kubewright_world::SIMULATION_START as NOW;

    use super::*;

    fn quota(status: &Value) -> ResourceQuota {
        serde_json::from_value(json!({"metadata": {"name": "q", "namespace": "shop"},
            "spec": {"hard": {"pods": "2", "requests.cpu": "1", "count/deployments.apps": "3"}}, "status": status}))
        .expect("a quota")
    }

    #[test]
    fn what_is_there_is_counted_once() {
        let pod =
            json!({"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "100m"}}}]}});
        let ended = json!({"spec": pod["spec"], "status": {"phase": "Failed"}});
        let objects = BTreeMap::from([
            ((String::new(), "pods".to_owned()), vec![pod.clone(), pod, ended]),
            (("apps".to_owned(), "deployments".to_owned()), vec![Value::Null; 2]),
        ]);
        let counted = plan(&quota(&json!({})), &objects, NOW).expect("a status").expect("another");
        let status = json!(counted.status);
        assert_eq!(
            status["used"],
            json!({"pods": "2", "requests.cpu": "200m", "count/deployments.apps": "2"})
        );
        assert_eq!(status["hard"], json!({"pods": "2", "requests.cpu": "1", "count/deployments.apps": "3"}));
        assert_eq!(plan(&counted, &objects, NOW).expect("a status"), None);
    }

    #[test]
    fn what_cannot_be_counted_now_stays_as_it_was() {
        let before = json!({"hard": {"pods": "1"}, "used": {"count/deployments.apps": "1", "gone": "4"}});
        let counted = plan(&quota(&before), &BTreeMap::new(), NOW).expect("a status").expect("another");
        assert_eq!(json!(counted.status)["used"], json!({"count/deployments.apps": "1"}));
    }
}
