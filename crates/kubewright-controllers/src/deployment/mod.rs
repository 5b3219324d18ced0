//! The Deployment controller: one ReplicaSet for each pod template, and the way from one to the next
//! (`pkg/controller/deployment`).

mod goal;
mod plan;
mod proportion;
mod revision;
mod rolling;
mod sets;
mod status;
mod template;

use std::time::Duration;

use k8s_openapi::api::apps::v1::{Deployment, DeploymentSpec, ReplicaSet, ReplicaSetSpec};
use kube::Api;
use kube::api::DeleteParams;
use kubewright_objects::optional;
use kubewright_runtime::{Context, Controller, Error, EventType, Key, Outcome, Reconciler, owner};

use self::plan::Action;
use self::sets::Sets;
use self::status::Happened;
use crate::claims::{self, Selectors};
use crate::is_namespace_terminating;

/// So many plans one reconcile carries out before others get their turn; each is one small step of a rollout.
const STEPS: usize = 16;

/// The controller, which runs under the name of its events' source.
#[must_use]
pub(crate) fn controller() -> Controller {
    let selectors = Selectors::default();
    let adopters = selectors.clone();
    Controller::new("deployment-controller", Rollout { selectors })
        // Old ReplicaSets are cleaned up once the status that a pass wrote says that the rollout is complete.
        .for_kind::<Deployment>()
        .own_events()
        .owns::<ReplicaSet>()
        .watches(move |set: &ReplicaSet| adopters.adopters(&set.metadata))
}

struct Rollout {
    selectors: Selectors,
}

impl Reconciler for Rollout {
    async fn reconcile(&self, ctx: &Context, key: &Key) -> Result<Outcome, Error> {
        let Some(deployment) = ctx.get::<Deployment>(key) else {
            self.selectors.forget(key);
            return Ok(Outcome::Done);
        };
        let Some(spec) = optional::<DeploymentSpec>(&deployment.spec) else { return Ok(Outcome::Done) };
        self.selectors.set(key, &spec.selector);

        let mut happened = Happened::Nothing;
        for _ in 0..STEPS {
            let sets = observe(ctx, &deployment).await?;
            let actions = plan::plan(&deployment, &sets);
            if actions.is_empty() {
                let again = write_status(ctx, &deployment, &sets, &happened).await?;
                return Ok(again.map_or(Outcome::Done, Outcome::RequeueAfter));
            }
            for action in actions {
                match act(ctx, &deployment, action).await? {
                    Acted::Done => {}
                    Acted::Created(name) => happened = Happened::Created(name),
                    Acted::Collided => {
                        write_status(ctx, &deployment, &sets, &Happened::Collided).await?;
                        return Ok(Outcome::RequeueAfter(Duration::ZERO));
                    }
                    Acted::Refused(message, error) => {
                        write_status(ctx, &deployment, &sets, &Happened::NotCreated(message)).await?;
                        return Err(error);
                    }
                    Acted::Hopeless => return Ok(Outcome::Done),
                }
            }
        }
        let sets = observe(ctx, &deployment).await?;
        write_status(ctx, &deployment, &sets, &happened).await?;
        Ok(Outcome::RequeueAfter(Duration::ZERO))
    }
}

/// What came of an action.
enum Acted {
    Done,
    Created(String),
    /// Another object has the name of the new ReplicaSet.
    Collided,
    /// The new ReplicaSet was refused: what to tell the user, and why.
    Refused(String, Error),
    /// The namespace is going away.
    Hopeless,
}

async fn observe(ctx: &Context, deployment: &Deployment) -> Result<Sets, Error> {
    let sets = ctx.list::<ReplicaSet>(deployment.metadata.namespace.as_deref());
    let selector =
        optional::<DeploymentSpec>(&deployment.spec).map(|spec| spec.selector.clone()).unwrap_or_default();
    let sets = claims::claim(ctx, deployment, &selector, sets, |_| true).await?;
    Ok(Sets::of(deployment, sets))
}

async fn act(ctx: &Context, deployment: &Deployment, action: Action) -> Result<Acted, Error> {
    let key = |name| Key::new(deployment.metadata.namespace.clone(), name);
    match action {
        Action::Create(set) => create(ctx, deployment, &set).await,
        Action::Patch { name, patch, event } => {
            ctx.patch::<ReplicaSet>(&key(name), patch).await?;
            if let Some(note) = event {
                ctx.event(deployment, EventType::Normal, "ScalingReplicaSet", &note);
            }
            Ok(Acted::Done)
        }
        Action::Delete { name } => {
            ctx.delete::<ReplicaSet>(&key(name), DeleteParams::background()).await?;
            Ok(Acted::Done)
        }
    }
}

async fn create(ctx: &Context, deployment: &Deployment, set: &ReplicaSet) -> Result<Acted, Error> {
    let name = sets::name(set).to_owned();
    let Err(refusal) = ctx.create(set).await else {
        let size = sets::replicas(set);
        if size > 0 {
            let note = format!("Scaled up replica set {name} from 0 to {size}");
            ctx.event(deployment, EventType::Normal, "ScalingReplicaSet", &note);
        }
        return Ok(Acted::Created(name));
    };
    if refusal.is_already_exists() {
        return if is_ours(ctx, deployment, &name).await? { Err(refusal) } else { Ok(Acted::Collided) };
    }
    if is_namespace_terminating(&refusal) {
        return Ok(Acted::Hopeless);
    }
    let message = format!("Failed to create new replica set {name:?}: {refusal}");
    ctx.event(deployment, EventType::Warning, "ReplicaSetCreateError", &message);
    Ok(Acted::Refused(message, refusal))
}

/// Whether the stored ReplicaSet of this name is the one that was to be created; then the cache just lags behind.
async fn is_ours(ctx: &Context, deployment: &Deployment, name: &str) -> Result<bool, Error> {
    let namespace = deployment.metadata.namespace.as_deref().unwrap_or_default();
    let stored = Api::<ReplicaSet>::namespaced(ctx.client().clone(), namespace).get_opt(name).await?;
    let has = stored
        .as_ref()
        .and_then(|set| optional::<ReplicaSetSpec>(&set.spec))
        .and_then(|spec| spec.template.as_ref());
    let wanted = optional::<DeploymentSpec>(&deployment.spec).map(|spec| &spec.template);
    let same = matches!((has, wanted), (Some(has), Some(wanted)) if template::same(has, wanted));
    Ok(same && stored.is_some_and(|set| owner::is_controlled_by(&set, deployment)))
}

/// Writes status and revision, if that changes them; tells when to look again. The revision goes with the status, for
/// a write of the Deployment itself would raise its generation.
async fn write_status(
    ctx: &Context,
    deployment: &Deployment,
    sets: &Sets,
    happened: &Happened,
) -> Result<Option<Duration>, Error> {
    let (status, again) = status::status(deployment, sets, happened, ctx.world().clock.now());
    let revision = plan::wanted_revision(sets).filter(|_| deployment.metadata.deletion_timestamp.is_none());
    let has = revision::annotation(&deployment.metadata, revision::REVISION);
    let revision_stands = revision.is_none() || revision == has;
    if deployment.status.as_ref() == Some(&status) && revision_stands {
        return Ok(again);
    }
    let mut written = Deployment { status: Some(status), ..deployment.clone() };
    if let Some(revision) = revision {
        let annotations = written.metadata.annotations.get_or_insert_default();
        annotations.insert(revision::REVISION.into(), revision.to_owned());
    }
    ctx.update_status(&written).await?;
    Ok(again)
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet, ReplicaSetStatus};
    use serde_json::json;

    /// A Deployment `web` with Kubernetes' defaults that wants this many pods of `web:1`.
    pub(super) fn deployment(replicas: i32) -> Deployment {
        kubewright_objects::from_value(json!({
            "metadata": {"name": "web", "namespace": "default", "uid": "uid-web", "generation": 1},
            "spec": {
                "replicas": replicas,
                "selector": {"matchLabels": {"app": "web"}},
                "template": {
                    "metadata": {"labels": {"app": "web"}},
                    "spec": {"containers": [{"name": "c", "image": "web:1"}]},
                },
                "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}},
                "revisionHistoryLimit": 10,
                "progressDeadlineSeconds": 600,
            },
        }))
        .expect("a Deployment")
    }

    /// Sets the image of the only container.
    pub(super) fn image(deployment: &mut Deployment, image: &str) {
        let template = &mut deployment.spec.as_mut().expect("a spec").template;
        template.spec.as_mut().expect("a pod spec").containers[0].image = Some(image.into());
    }

    /// The status that the ReplicaSet controller writes for `actual` pods, `available` of them available.
    pub(super) fn observed(set: &mut ReplicaSet, actual: i32, available: i32) {
        let positive = |count: i32| (count > 0).then_some(count);
        set.status = Some(ReplicaSetStatus {
            replicas: actual,
            ready_replicas: positive(available),
            available_replicas: positive(available),
            terminating_replicas: Some(0),
            observed_generation: set.metadata.generation,
            ..ReplicaSetStatus::default()
        });
    }
}
