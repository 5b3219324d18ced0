//! What happens with each @Kind@: it has a Deployment, and whatever somebody does to that is undone.

use k8s_openapi::api::apps::v1::{Deployment, DeploymentSpec};
use k8s_openapi::api::core::v1::{@imports@};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use kube::ResourceExt;
use kubewright::conditions::NewCondition;
use kubewright::rbac::Verb;
use kubewright::{
    Context, Controller, Error, ErrorPolicy, EventType, Key, Outcome, Reconciler, Written,
};

use super::@Kind@;
@constants@
/// When to reconcile, and with which rights.
pub fn controller() -> Controller {
    Controller::new("@controller@", @Kind@Reconciler)
        .for_kind::<@Kind@>()
        .owns::<Deployment>()
        .writes::<Deployment>([Verb::Create, Verb::Patch])
        .writes_status::<@Kind@>()
        // An error that lasts is shown on the object: Ready is False with its reason, and there is an Event.
        .on_error(ErrorPolicy::default().sets_false("Ready"))
}

struct @Kind@Reconciler;

impl Reconciler for @Kind@Reconciler {
    async fn reconcile(&self, ctx: &Context, key: &Key) -> Result<Outcome, Error> {
        // What is gone needs nothing: what it owned goes with it.
        let Some(object) = ctx.get::<@Kind@>(key) else {
            return Ok(Outcome::Done);
        };

        // Creates it, or puts right what somebody changed; asks for nothing when nothing differs.
        let wanted = deployment(&object);
        let deployment = ctx.apply(&wanted).owned_by(&*object).await?;
        match &deployment {
            Written::Created(created) => {
                let note = format!("Created the Deployment {}", created.name_any());
                tracing::info!("{note}");
                ctx.event(&*object, EventType::Normal, "Created", &note);
            }
            Written::Updated { changed, .. } => tracing::info!("Changed the Deployment: {changed}"),
            Written::Unchanged(_) => {}
        }

        let status = deployment.object().status.as_ref();
        let ready = status.and_then(|status| status.ready_replicas).unwrap_or(0);
        let pods = @replicas@;
        let is_ready = ready >= pods;
        let reason = if is_ready { "PodsReady" } else { "Progressing" };
        let condition = NewCondition::new("Ready", is_ready.into(), reason)
            .message(format!("{ready} of {pods} pods are ready"));
        // With the generation that it is about; asks for nothing when the status says so already.
        ctx.status(&*object).condition(condition).await?;
        Ok(Outcome::Done)
    }
}

/// The Deployment that there should be. It asks nobody: the same object gives the same Deployment. What is left out here
/// is left to others.
pub fn deployment(object: &@Kind@) -> Deployment {
    let name = format!("{}-deployment", object.name_any());
    let labels = Some([("deployment".to_owned(), name.clone())].into());
    let container = Container {
@container@        ..Container::default()
    };
    Deployment {
        metadata: ObjectMeta {
            name: Some(name),
            namespace: @namespace@,
            ..ObjectMeta::default()
        },
        // An Option in the types of some versions of Kubernetes, and none in those of others.
        spec: DeploymentSpec {
            replicas: Some(@replicas@),
            selector: LabelSelector {
                match_labels: labels.clone(),
                ..LabelSelector::default()
            },
            template: PodTemplateSpec {
                metadata: Some(ObjectMeta {
                    labels,
                    ..ObjectMeta::default()
                }),
                spec: Some(PodSpec {
                    containers: vec![container],
                    ..PodSpec::default()
                }),
            },
            ..DeploymentSpec::default()
        }
        .into(),
        ..Deployment::default()
    }
}
