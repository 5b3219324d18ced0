//! The StatefulSet controller: pods with a number each, that keeps its name and its storage
//! (`pkg/controller/statefulset`).

mod act;
mod member;
mod ordinals;
mod plan;
mod retention;
mod revisions;
mod status;
mod storage;

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::apps::v1::{ControllerRevision, StatefulSet, StatefulSetSpec};
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use kube::Api;
use kube::api::{DeleteParams, ObjectMeta};
use kubewright_objects::{field, optional};
use kubewright_runtime::{Context, Controller, Error, Event, Key, Outcome, Predicate, Reconciler};

use self::plan::Observed;
use self::revisions::{Newest, Revisions};
use crate::claims::{self, Selectors};
use crate::{history, is_namespace_terminating};

/// The controller, which runs under the name of its events' source.
#[must_use]
pub(crate) fn controller() -> Controller {
    let selectors = Selectors::default();
    let (adopters, waiting) = (selectors.clone(), selectors.clone());
    Controller::new("statefulset-controller", Sets { selectors })
        // Old revisions go once the status that a pass wrote says that no pod is on them.
        .for_kind::<StatefulSet>()
        .own_events()
        .owns::<Pod>()
        // As upstream, what becomes of revisions leads to nothing: one that somebody deletes comes back with the next pass.
        .reads::<ControllerRevision>()
        .watches(move |pod: &Pod| adopters.adopters(&pod.metadata))
        // A pod cannot come back while the claim of its predecessor is on its way out.
        .watches(move |claim: &PersistentVolumeClaim| waiting.selecting(&claim.metadata))
        .predicate(Predicate::of(|event: &Event<'_, PersistentVolumeClaim>| {
            matches!(event, Event::Delete(_))
        }))
}

struct Sets {
    selectors: Selectors,
}

impl Reconciler for Sets {
    async fn reconcile(&self, ctx: &Context, key: &Key) -> Result<Outcome, Error> {
        let Some(set) = ctx.get::<StatefulSet>(key) else {
            self.selectors.forget(key);
            return Ok(Outcome::Done);
        };
        let Some(spec) = optional::<StatefulSetSpec>(&set.spec) else { return Ok(Outcome::Done) };
        self.selectors.set(key, &spec.selector);

        let Some(known) = known_revisions(ctx, &set).await? else { return Ok(Outcome::Done) };
        let pods = members(ctx, &set, ctx.list::<Pod>(key.namespace.as_deref())).await?;
        let Some(revisions) = settle_revisions(ctx, &set, &known).await? else { return Ok(Outcome::Done) };
        let acted = act(ctx, &set, &revisions, &pods).await;
        let again = write_status(ctx, key, &revisions).await;
        forget(ctx, &set, &known, &revisions, &pods).await?;
        match acted {
            // No pod will ever be let into this namespace again.
            Err(error) if is_namespace_terminating(&error) => Ok(Outcome::Done),
            Err(error) => Err(error),
            Ok(()) => again,
        }
    }
}

async fn members(ctx: &Context, set: &StatefulSet, pods: Vec<Arc<Pod>>) -> Result<Vec<Arc<Pod>>, Error> {
    let Some(spec) = optional::<StatefulSetSpec>(&set.spec) else { return Ok(Vec::new()) };
    let is_member = |meta: &kube::api::ObjectMeta| {
        meta.name.as_deref().is_some_and(|name| ordinals::is_member(set, name))
    };
    claims::claim_members(ctx, set, &spec.selector, pods, is_member).await
}

/// The set's revisions, sorted. Those that its selector does not match are none of its own, but stay. `None` when the set is being
/// deleted and has lost revisions: it cannot adopt them any more, and leaves its status and its pods as they are
/// (`adoptOrphanRevisions`).
async fn known_revisions(
    ctx: &Context,
    set: &StatefulSet,
) -> Result<Option<Vec<Arc<ControllerRevision>>>, Error> {
    let Some(spec) = optional::<StatefulSetSpec>(&set.spec) else { return Ok(None) };
    let all =
        claims::matching(&spec.selector, ctx.list::<ControllerRevision>(set.metadata.namespace.as_deref()));
    if set.metadata.deletion_timestamp.is_some() && all.iter().any(|one| is_orphan(&one.metadata)) {
        return Ok(None);
    }
    let mut known = claims::claim::<_, ControllerRevision>(ctx, set, &spec.selector, all, |_| true).await?;
    history::sort(&mut known);
    Ok(Some(known))
}

fn is_orphan(metadata: &ObjectMeta) -> bool {
    !metadata.owner_references.iter().flatten().any(|owner| owner.controller == Some(true))
}

/// Makes the set's template its newest revision, as long as there is the set: what is held while it is deleted in the foreground gets a new
/// one for that which the garbage collector has deleted. `None` where no revision can be created any more.
async fn settle_revisions(
    ctx: &Context,
    set: &StatefulSet,
    known: &[Arc<ControllerRevision>],
) -> Result<Option<Revisions>, Error> {
    let collisions = revisions::collisions(set);
    let (update, collisions) = match revisions::newest(set, known) {
        Newest::Stands(revision) => (revision, collisions),
        Newest::Renumber(revision, number) => {
            let renumbered = ControllerRevision { revision: field(number), ..(*revision).clone() };
            (Arc::new(ctx.update(&renumbered).await?), collisions)
        }
        Newest::Create(revision) => match create_revision(ctx, set, *revision, collisions).await {
            Err(error) if is_namespace_terminating(&error) => return Ok(None),
            created => created?,
        },
    };
    let revisions = Revisions::of(set, known, &update, collisions);
    revisions.map(Some).ok_or_else(|| Error::terminal("a revision of the set holds no pod template"))
}

/// Creates the revision, under another name for as long as its name is taken by another one
/// (`CreateControllerRevision`); tells how many collisions there were so far.
async fn create_revision(
    ctx: &Context,
    set: &StatefulSet,
    mut revision: ControllerRevision,
    mut collisions: i32,
) -> Result<(Arc<ControllerRevision>, i32), Error> {
    let namespace = set.metadata.namespace.as_deref().unwrap_or_default();
    loop {
        match ctx.create(&revision).await {
            Err(error) if error.is_already_exists() => {}
            created => return Ok((Arc::new(created?), collisions)),
        }
        let stored = Api::<ControllerRevision>::namespaced(ctx.client().clone(), namespace);
        let stored = stored.get(history::name(&revision)).await?;
        if history::data(&stored) == history::data(&revision) {
            return Ok((Arc::new(stored), collisions));
        }
        collisions = collisions.saturating_add(1);
        revision.metadata.name = revisions::new(set, history::number(&revision), collisions).metadata.name;
    }
}

async fn act(
    ctx: &Context,
    set: &StatefulSet,
    revisions: &Revisions,
    pods: &[Arc<Pod>],
) -> Result<(), Error> {
    let all = ctx.list::<PersistentVolumeClaim>(set.metadata.namespace.as_deref());
    let claims: BTreeMap<_, _> =
        all.into_iter().filter_map(|claim| Some((claim.metadata.name.clone()?, claim))).collect();
    let now = ctx.world().clock.now();
    for stage in plan::plan(&Observed { set, revisions, pods, claims: &claims, now }) {
        act::stage(ctx, set, &stage).await?;
    }
    Ok(())
}

/// Writes the status as it is after pods were made or deleted, if that changes it; tells when to look again.
async fn write_status(ctx: &Context, key: &Key, revisions: &Revisions) -> Result<Outcome, Error> {
    let Some(set) = ctx.get::<StatefulSet>(key) else { return Ok(Outcome::Done) };
    let Some(spec) = optional::<StatefulSetSpec>(&set.spec) else { return Ok(Outcome::Done) };
    let pods = ctx.owned_by::<Pod>(set.metadata.uid.as_deref().unwrap_or_default());
    let pods = claims::kept(&*set, &spec.selector, pods);
    let (status, again) = status::status(&set, revisions, &pods, ctx.world().clock.now());
    if set.status.as_ref() != Some(&status) {
        ctx.update_status(&StatefulSet { status: Some(status), ..(*set).clone() }).await?;
    }
    Ok(again.map_or(Outcome::Done, Outcome::RequeueAfter))
}

async fn forget(
    ctx: &Context,
    set: &StatefulSet,
    known: &[Arc<ControllerRevision>],
    revisions: &Revisions,
    pods: &[Arc<Pod>],
) -> Result<(), Error> {
    for revision in revisions::forgotten(set, known, revisions, pods) {
        ctx.delete::<ControllerRevision>(&Key::of(revision), DeleteParams::default()).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use k8s_openapi::api::apps::v1::StatefulSet;
    use k8s_openapi::api::core::v1::Pod;
    use serde_json::{Value, json};

    use super::member;
    use super::revisions::Revision;

    /// A StatefulSet `web` with Kubernetes' defaults that wants this many pods of `web:1`.
    pub(super) fn stateful_set(replicas: i32) -> StatefulSet {
        kubewright_objects::from_value(json!({
            "metadata": {"name": "web", "namespace": "default", "uid": "uid-web", "generation": 1},
            "spec": {
                "replicas": replicas,
                "selector": {"matchLabels": {"app": "web"}},
                "serviceName": "peers",
                "template": {
                    "metadata": {"labels": {"app": "web"}},
                    "spec": {"containers": [{"name": "c", "image": "web:1"}]},
                },
                "podManagementPolicy": "OrderedReady",
                "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}},
                "revisionHistoryLimit": 10,
            },
        }))
        .expect("a StatefulSet")
    }

    /// The set with a claim template `data` and this retention policy.
    pub(super) fn with_claims(mut set: StatefulSet, policy: &Value) -> StatefulSet {
        let template = json!([{"metadata": {"name": "data", "labels": {"tier": "disk"}}, "status": {"phase": "Pending"},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}]);
        let spec = set.spec.as_mut().expect("a spec");
        spec.volume_claim_templates = kubewright_objects::from_value(template).expect("templates");
        spec.persistent_volume_claim_retention_policy =
            kubewright_objects::from_value(policy).expect("a policy");
        set
    }

    /// Sets the image of the only container.
    pub(super) fn image(set: &mut StatefulSet, image: &str) {
        let template = &mut set.spec.as_mut().expect("a spec").template;
        template.spec.as_mut().expect("a pod spec").containers[0].image = Some(image.into());
    }

    /// A revision `name` whose template has this image.
    pub(super) fn revision_of(name: &str, container_image: &str) -> Revision {
        let mut set = stateful_set(1);
        image(&mut set, container_image);
        Revision { name: name.into(), template: set.spec.expect("a spec").template }
    }

    /// The running pod `ordinal`, of this revision, ready since `ready` when given.
    pub(super) fn member_pod(ordinal: i32, revision: &str, ready: Option<Timestamp>) -> Pod {
        let mut pod = member::new(&stateful_set(1), &revision_of(revision, "web:1"), ordinal);
        let status = crate::pod::tests::pod("p", "Running", ready).status;
        pod.metadata.uid = Some(format!("uid-web-{ordinal}"));
        pod.status = status;
        pod
    }
}
