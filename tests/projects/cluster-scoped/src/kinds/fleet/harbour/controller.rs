// SPDX-License-Identifier: MIT

//! What happens with each Harbour: it has a Deployment, and whatever somebody does to that is undone.

use k8s_openapi::api::apps::v1::{Deployment, DeploymentSpec};
use k8s_openapi::api::core::v1::{Container, PodSpec, PodTemplateSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use kube::ResourceExt;
use kubewright::conditions::NewCondition;
use kubewright::rbac::Verb;
use kubewright::{
    Context, Controller, Error, ErrorPolicy, EventType, Key, Outcome, Reconciler, Written,
};

use super::Harbour;

/// Where the Deployments are: what is in no namespace itself may own what is in any.
const NAMESPACE: &str = "default";

/// When to reconcile, and with which rights.
pub fn controller() -> Controller {
    Controller::new("harbour", HarbourReconciler)
        .for_kind::<Harbour>()
        .owns::<Deployment>()
        .writes::<Deployment>([Verb::Create, Verb::Patch])
        .writes_status::<Harbour>()
        // An error that lasts is shown on the object: Ready is False with its reason, and there is an Event.
        .on_error(ErrorPolicy::default().sets_false("Ready"))
}

struct HarbourReconciler;

impl Reconciler for HarbourReconciler {
    async fn reconcile(&self, ctx: &Context, key: &Key) -> Result<Outcome, Error> {
        // What is gone needs nothing: what it owned goes with it.
        let Some(object) = ctx.get::<Harbour>(key) else {
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
        let pods = 1;
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
pub fn deployment(object: &Harbour) -> Deployment {
    let name = format!("{}-deployment", object.name_any());
    let labels = Some([("deployment".to_owned(), name.clone())].into());
    let container = Container {
        name: "nginx".to_owned(),
        image: Some("nginx".to_owned()),
        ..Container::default()
    };
    Deployment {
        metadata: ObjectMeta {
            name: Some(name),
            namespace: Some(NAMESPACE.to_owned()),
            ..ObjectMeta::default()
        },
        // An Option in the types of some versions of Kubernetes, and none in those of others.
        spec: DeploymentSpec {
            replicas: Some(1),
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
