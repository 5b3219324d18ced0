//! The DaemonSet controller: one pod on each node that fits (`pkg/controller/daemon`).

mod backoff;
mod daemon;
mod eligibility;
mod nodes;
mod plan;
mod revisions;
mod rolling;
mod status;

use std::sync::Arc;
use std::time::Duration;

use futures::stream;
use k8s_openapi::api::apps::v1::{ControllerRevision, DaemonSet, DaemonSetSpec};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::Api;
use kube::api::DeleteParams;
use kubewright_objects::{field, optional};
use kubewright_runtime::{Context, Controller, Error, Key, Outcome, Reconciler};
use parking_lot::Mutex;
use serde_json::json;
use tokio::sync::mpsc;

use self::backoff::Backoff;
use self::plan::{Observed, PodChanges};
use self::revisions::{Current, Revisions};
use crate::claims::{self, Selectors};
use crate::{history, is_namespace_terminating, pod_control};

/// The most pods that one pass creates, and deletes.
const BURST: usize = 250;

/// The controller, which runs under the name of its events' source, and one that looks at nodes for it.
#[must_use]
pub(crate) fn controllers() -> Vec<Controller> {
    let (concerned, mut keys) = mpsc::unbounded_channel();
    let selectors = Selectors::default();
    let (of_pods, of_revisions) = (selectors.clone(), selectors.clone());
    let sets = Controller::new("daemonset-controller", Sets { selectors, failures: Mutex::default() })
        // A rollout looks at the generation that the status has observed, and pods are made and deleted so many at a time: the
        // status that a pass wrote leads to the next.
        .for_kind::<DaemonSet>()
        .own_events()
        .owns::<Pod>()
        .owns::<ControllerRevision>()
        .watches(move |pod: &Pod| of_pods.adopters(&pod.metadata))
        .watches(move |revision: &ControllerRevision| of_revisions.adopters(&revision.metadata))
        .reads::<Node>()
        .source(stream::poll_fn(move |context| keys.poll_recv(context)));
    vec![sets, nodes::controller(concerned)]
}

struct Sets {
    selectors: Selectors,
    failures: Mutex<Backoff>,
}

impl Reconciler for Sets {
    async fn reconcile(&self, ctx: &Context, key: &Key) -> Result<Outcome, Error> {
        let Some(set) = ctx.get::<DaemonSet>(key) else {
            self.selectors.forget(key);
            return Ok(Outcome::Done);
        };
        let Some(spec) = optional::<DaemonSetSpec>(&set.spec) else { return Ok(Outcome::Done) };
        self.selectors.set(key, &spec.selector);
        // Its revisions may be gone already, so nothing can be said of its pods any more.
        if set.metadata.deletion_timestamp.is_some() {
            return Ok(Outcome::Done);
        }

        let pods = ctx.list::<Pod>(key.namespace.as_deref());
        let pods = claims::claim(ctx, &*set, &spec.selector, pods, |_| true).await?;
        let Settled::Known { hash, old } = settle_revisions(ctx, &set, &pods).await? else {
            return Ok(Outcome::RequeueAfter(Duration::ZERO));
        };
        let (acted, again) = self.act(ctx, &set, &hash, &pods).await;
        let available = write_status(ctx, key, &hash, &self.failures).await;
        acted?;
        for revision in revisions::forgotten(&set, &old, &pods) {
            ctx.delete::<ControllerRevision>(&Key::of(revision), DeleteParams::default()).await?;
        }
        let next = [again, available?].into_iter().flatten().min();
        Ok(next.map_or(Outcome::Done, Outcome::RequeueAfter))
    }
}

impl Sets {
    /// Takes the next step; tells when to look at failed pods again.
    async fn act(
        &self,
        ctx: &Context,
        set: &DaemonSet,
        hash: &str,
        pods: &[Arc<Pod>],
    ) -> (Result<(), Error>, Option<Duration>) {
        let (nodes, pods) = (ctx.list::<Node>(None), daemon::by_node(pods));
        let now = ctx.world().clock.now();
        let step = {
            let mut failures = self.failures.lock();
            let step =
                plan::plan(&Observed { set, nodes: &nodes, pods: &pods, hash, failures: &failures, now });
            step.retried.iter().for_each(|place| failures.tried(place.clone(), now));
            step
        };
        for note in &step.notes {
            ctx.event(set, note.kind, note.reason, &note.text);
        }
        (carry_out(ctx, set, hash, &step).await, step.again)
    }
}

async fn carry_out(ctx: &Context, set: &DaemonSet, hash: &str, step: &PodChanges) -> Result<(), Error> {
    let template = daemon::template(set, hash);
    let pod = |node: &String| pod_control::from_template(set, daemon::for_node(template.clone(), node));
    let new = step.create.iter().take(BURST).map(pod).collect();
    let created = pod_control::create(ctx, set, new).await;
    let surplus = &step.delete[..step.delete.len().min(BURST)];
    let deleted = pod_control::delete(ctx, set, surplus).await;
    created.and(deleted)
}

/// What came of looking after the revisions.
enum Settled {
    /// The hash of the current one, and those before.
    Known { hash: String, old: Vec<Arc<ControllerRevision>> },
    /// The name of the current one was taken; it will have another.
    Collided,
}

/// Makes the set's template its newest revision, and sees to it that there is only one of it.
async fn settle_revisions(ctx: &Context, set: &DaemonSet, pods: &[Arc<Pod>]) -> Result<Settled, Error> {
    let Revisions { current, old } = revisions::construct_history(set, known_revisions(ctx, set).await?);
    let current = match current {
        Current::Create(new) => match create_revision(ctx, set, &new).await? {
            Some(created) => Arc::new(created),
            None => return Ok(Settled::Collided),
        },
        Current::There { revision, renumber, duplicates } => {
            if !duplicates.is_empty() {
                merge(ctx, &revision, &duplicates, pods).await?;
            }
            if let Some(number) = renumber {
                ctx.update(&ControllerRevision { revision: field(number), ..(*revision).clone() }).await?;
            }
            revision
        }
    };
    let hash = revisions::hash_of(&current).unwrap_or_default().to_owned();
    Ok(Settled::Known { hash, old })
}

/// The set's revisions; one without the hash label gets its name as such.
async fn known_revisions(ctx: &Context, set: &DaemonSet) -> Result<Vec<Arc<ControllerRevision>>, Error> {
    let selector = optional::<DaemonSetSpec>(&set.spec).map(|spec| spec.selector.clone()).unwrap_or_default();
    let all = ctx.list::<ControllerRevision>(set.metadata.namespace.as_deref());
    let mut known = claims::claim(ctx, set, &selector, all, |_| true).await?;
    for revision in &mut known {
        if revisions::hash_of(revision).is_none() {
            let mut labelled = (**revision).clone();
            let name = history::name(revision).to_owned();
            labelled.metadata.labels.get_or_insert_default().insert(history::POD_LABEL.into(), name);
            *revision = Arc::new(ctx.update(&labelled).await?);
        }
    }
    Ok(known)
}

/// Creates the revision; `None` when another one has its name, which is counted so that the next name is another.
async fn create_revision(
    ctx: &Context,
    set: &DaemonSet,
    revision: &ControllerRevision,
) -> Result<Option<ControllerRevision>, Error> {
    let refused = match ctx.create(revision).await {
        Err(error) if error.is_already_exists() => error,
        Err(error) if is_namespace_terminating(&error) => return Err(Error::terminal(error)),
        created => return created.map(Some),
    };
    let namespace = set.metadata.namespace.as_deref().unwrap_or_default();
    let stored = Api::<ControllerRevision>::namespaced(ctx.client().clone(), namespace);
    let Some(stored) = stored.get_opt(history::name(revision)).await? else { return Err(refused) };
    if history::data(&stored) == history::data(revision) {
        return Ok(Some(stored));
    }
    let mut counted = set.clone();
    let collisions = counted.status.get_or_insert_default().collision_count.get_or_insert_default();
    *collisions = collisions.saturating_add(1);
    ctx.update_status(&counted).await?;
    Ok(None)
}

/// Moves the pods to one of several equal revisions, and deletes the others.
async fn merge(
    ctx: &Context,
    kept: &ControllerRevision,
    duplicates: &[Arc<ControllerRevision>],
    pods: &[Arc<Pod>],
) -> Result<(), Error> {
    let hash = revisions::hash_of(kept).unwrap_or_default();
    for pod in pods.iter().filter(|pod| crate::pod::label(pod, history::POD_LABEL) != Some(hash)) {
        let patch = json!({"metadata": {"labels": {(history::POD_LABEL): hash}}});
        ctx.patch::<Pod>(&Key::of(&**pod), patch).await?;
    }
    for duplicate in duplicates {
        ctx.delete::<ControllerRevision>(&Key::of(&**duplicate), DeleteParams::default()).await?;
    }
    Ok(())
}

/// Writes the status as it is after pods were made or deleted, if that changes it; tells when to look again.
async fn write_status(
    ctx: &Context,
    key: &Key,
    hash: &str,
    failures: &Mutex<Backoff>,
) -> Result<Option<Duration>, Error> {
    let Some(set) = ctx.get::<DaemonSet>(key) else { return Ok(None) };
    let Some(spec) = optional::<DaemonSetSpec>(&set.spec) else { return Ok(None) };
    let pods = ctx.owned_by::<Pod>(set.metadata.uid.as_deref().unwrap_or_default());
    let pods = daemon::by_node(&claims::kept(&*set, &spec.selector, pods));
    let (nodes, now) = (ctx.list::<Node>(None), ctx.world().clock.now());
    let (status, again) = status::status(&Observed {
        set: &set,
        nodes: &nodes,
        pods: &pods,
        hash,
        failures: &failures.lock(),
        now,
    });
    if set.status.as_ref() != Some(&status) {
        ctx.update_status(&DaemonSet { status: Some(status), ..(*set).clone() }).await?;
    }
    Ok(again)
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use k8s_openapi::api::apps::v1::DaemonSet;
    use k8s_openapi::api::core::v1::{Node, Pod};
    use serde_json::json;

    use crate::history;

    /// A DaemonSet `web` with Kubernetes' defaults.
    pub(super) fn daemon_set() -> DaemonSet {
        kubewright_objects::from_value(json!({
            "metadata": {"name": "web", "namespace": "default", "uid": "uid-web", "generation": 1,
                "annotations": {"deprecated.daemonset.template.generation": "1"}},
            "spec": {
                "selector": {"matchLabels": {"app": "web"}},
                "template": {
                    "metadata": {"labels": {"app": "web"}},
                    "spec": {"containers": [{"name": "c", "image": "web:1"}]},
                },
                "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0}},
                "revisionHistoryLimit": 10,
            },
        }))
        .expect("a DaemonSet")
    }

    /// A node.
    pub(super) fn node(name: &str) -> Node {
        kubewright_objects::from_value(json!({"metadata": {"name": name}})).expect("a node")
    }

    /// A node with a taint that nothing tolerates.
    pub(super) fn tainted(name: &str, effect: &str) -> Node {
        let taints = json!([{"key": "broken", "effect": effect}]);
        kubewright_objects::from_value(json!({"metadata": {"name": name}, "spec": {"taints": taints}}))
            .expect("a node")
    }

    /// The running pod of a node, of this revision, ready since `ready` when given.
    pub(super) fn pod_on(node: &str, hash: &str, ready: Option<Timestamp>) -> Pod {
        let mut pod = crate::pod::tests::pod(&format!("web-{node}-{hash}"), "Running", ready);
        pod.spec.get_or_insert_default().node_name = Some(node.into());
        pod.metadata.labels.get_or_insert_default().insert(history::POD_LABEL.into(), hash.into());
        pod
    }
}
