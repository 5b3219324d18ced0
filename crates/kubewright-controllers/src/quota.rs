//! The resource quota controller: counts what a namespace uses (`pkg/controller/resourcequota`).
//!
//! What comes is charged by admission; this counts a new or changed quota, and again when something goes. It does not
//! look at changes of the status: between a charge and the object that was charged for, a count would be too low.
//!
//! It counts what the API server has, and not what the caches know: each of these is behind by a time of its own, and what one
//! of them does not know yet would be missing from the quota for five minutes. First the quota is read, then what it counts,
//! then its status is swapped: whatever was charged or made before is part of the count, and a charge that comes later makes
//! the swap fail. The caches only tell when to count.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures::stream;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod, PodSpec, ResourceQuota, Service};
use kube::Api;
use kube::api::ListParams;
use kube::core::{ApiResource, DynamicObject, PartialObjectMeta};
use kubewright_quota::{self as quota, GroupResource};
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
/// What a count has changed is looked at again after so long (`--request-timeout`): writes that were admitted before, and were
/// not there yet, are over by then.
const SECOND_LOOK: Duration = Duration::from_secs(60);
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
    let counter = Counter { quotas, followed: Mutex::default(), keys };
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
    // That it gets a node frees nothing.
    let wanted = |pod: &Pod| pod.spec.clone().map(|spec| PodSpec { node_name: None, ..spec });
    pod::is_finished(old) != pod::is_finished(new) || old.spec != new.spec && wanted(old) != wanted(new)
}

fn keys_in(quotas: &Quotas, namespace: Option<&String>) -> Vec<Key> {
    let quotas = quotas.lock();
    namespace.and_then(|namespace| quotas.get(namespace)).into_iter().flatten().cloned().collect()
}

struct Counter {
    quotas: Quotas,
    /// The resources that are counted by number only, and what tells of what goes.
    followed: Mutex<BTreeMap<GroupResource, Followed>>,
    keys: UnboundedSender<Key>,
}

struct Followed {
    counted: Counted,
    /// It watches as long as it is kept.
    _informer: Option<Informer<Meta>>,
}

/// Where the objects of a resource are.
#[derive(Clone)]
enum Counted {
    /// In namespaces, listed like this.
    InNamespaces(ApiResource),
    /// Not in namespaces: no namespace has any.
    Elsewhere,
}

impl Reconciler for Counter {
    async fn reconcile(&self, ctx: &Context, key: &Key) -> Result<Outcome, Error> {
        let namespace = key.namespace.clone().unwrap_or_default();
        if ctx.get::<ResourceQuota>(key).is_none() {
            if let Some(keys) = self.quotas.lock().get_mut(&namespace) {
                keys.remove(key);
            }
            return Ok(Outcome::Done);
        }
        self.quotas.lock().entry(namespace.clone()).or_default().insert(key.clone());
        let Some(quota) = newest(ctx, &namespace, &key.name).await? else { return Ok(Outcome::Done) };
        let (objects, complete) = self.observe(ctx, &quota, &namespace).await?;
        let counted = plan(&quota, &objects, ctx.world().clock.now())?;
        if let Some(counted) = &counted {
            ctx.update_status(counted).await?;
        }
        Ok(Outcome::RequeueAfter(match (complete, counted) {
            (false, _) => DISCOVERY,
            (true, Some(_)) => SECOND_LOOK,
            (true, None) => RESYNC,
        }))
    }
}

/// A quota as the API server has it; `None` when it is gone.
async fn newest(ctx: &Context, namespace: &str, name: &str) -> Result<Option<ResourceQuota>, Error> {
    // The controller may list quotas, not get one.
    let named = ListParams::default().fields(&format!("metadata.name={name}"));
    let quotas = Api::<ResourceQuota>::namespaced(ctx.client().clone(), namespace);
    Ok(quotas.list(&named).await?.items.pop())
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
                ("", "pods") => whole::<Pod>(ctx, namespace).await?,
                ("", "services") => whole::<Service>(ctx, namespace).await?,
                ("", "persistentvolumeclaims") => whole::<PersistentVolumeClaim>(ctx, namespace).await?,
                _ => match self.number(ctx, &resource, namespace).await? {
                    Some(number) => vec![Value::Null; number],
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

    /// How many objects of a resource there are in a namespace; `None` while nobody serves it.
    async fn number(
        &self,
        ctx: &Context,
        resource: &GroupResource,
        namespace: &str,
    ) -> Result<Option<usize>, Error> {
        // What goes from here on is told of, and counted again.
        let served = match self.follow(ctx, resource).await? {
            None => return Ok(None),
            Some(Counted::Elsewhere) => return Ok(Some(0)),
            Some(Counted::InNamespaces(served)) => served,
        };
        let found = objects(ctx, &served, namespace).list_metadata(&ListParams::default()).await;
        match found.map_err(Error::from) {
            Ok(found) => Ok(Some(found.items.len())),
            // The kind went away, or is served in another version now. (What nobody serves is refused in plain text.)
            Err(error) if error.status().is_some_and(|status| status.code == 404) => {
                self.followed.lock().remove(resource);
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Counts again from now on when an object of a resource goes; the resource as it is served, `None` while nobody does.
    async fn follow(&self, ctx: &Context, resource: &GroupResource) -> Result<Option<Counted>, Error> {
        if let Some(known) = self.followed.lock().get(resource) {
            return Ok(Some(known.counted.clone()));
        }
        let catalog = Catalog::fetch(ctx.client()).await?;
        let Some(served) = catalog.find_plural(&resource.0, &resource.1) else { return Ok(None) };
        if !served.namespaced {
            let followed = Followed { counted: Counted::Elsewhere, _informer: None };
            self.followed.lock().insert(resource.clone(), followed);
            return Ok(Some(Counted::Elsewhere));
        }
        let served = served.resource.clone();
        let informer = ctx.cache().watch::<Meta>(&served);
        let (quotas, keys) = (Arc::clone(&self.quotas), self.keys.clone());
        informer.subscribe(move |change| {
            if let Change::Deleted(gone) = change {
                for key in keys_in(&quotas, gone.metadata.namespace.as_ref()) {
                    // Nobody receives any more when the manager stops.
                    let _ = keys.send(key);
                }
            }
        });
        // Who has not seen an object cannot tell that it goes.
        informer.synced().await;
        let counted = Counted::InNamespaces(served);
        let followed = Followed { counted: counted.clone(), _informer: Some(informer) };
        self.followed.lock().insert(resource.clone(), followed);
        Ok(Some(counted))
    }
}

/// The objects of a kind in a namespace.
async fn whole<K: Object>(ctx: &Context, namespace: &str) -> Result<Vec<Value>, Error> {
    let api = objects(ctx, &ApiResource::erase::<K>(&()), namespace);
    let found = api.list(&ListParams::default()).await?;
    Ok(found.items.iter().map(|object| json!(object)).collect())
}

fn objects(ctx: &Context, resource: &ApiResource, namespace: &str) -> Api<DynamicObject> {
    Api::namespaced_with(ctx.client().clone(), namespace, resource)
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
    let status =
        kubewright_objects::from_value(status).map_err(|error| Error::terminal(error.to_string()))?;
    Ok(Some(ResourceQuota { status: Some(status), ..quota.clone() }))
}

#[cfg(test)]
mod tests {
    use kubewright_world::SIMULATION_START as NOW;

    use super::*;

    fn quota(status: &Value) -> ResourceQuota {
        kubewright_objects::from_value(json!({"metadata": {"name": "q", "namespace": "shop"},
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
