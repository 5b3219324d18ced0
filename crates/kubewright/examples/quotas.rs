//! Each Namespace with the label `example.com/pods` has a ResourceQuota of so many pods: for this SDK; and for kube's own `Controller`, as
//! it is, and in a manager of this SDK. `docs/coming-from.md` sets the same for controller-runtime beside it.

use std::sync::Arc;

use futures::StreamExt;
use k8s_openapi::{
    api::core::v1::{Namespace, ResourceQuota, ResourceQuotaSpec},
    apimachinery::pkg::{api::resource::Quantity, apis::meta::v1::ObjectMeta},
};
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{DeleteParams, Patch, PatchParams},
    runtime::{controller::Action, watcher},
};
use kubewright::{
    Context, Controller, Desired, Error, Key, Manager, Outcome, Reconciler, command::Operator, kube_rs,
    rbac::Verb,
};

fn quota(namespace: &str, pods: &str) -> ResourceQuota {
    let metadata =
        ObjectMeta { name: Some("team".into()), namespace: Some(namespace.into()), ..ObjectMeta::default() };
    let hard = Some([("pods".into(), Quantity(pods.into()))].into());
    let spec = Some(ResourceQuotaSpec { hard, ..ResourceQuotaSpec::default() });
    ResourceQuota { metadata, spec, status: None }
}

struct Quotas;

impl Reconciler for Quotas {
    async fn reconcile(&self, ctx: &Context, key: &Key) -> Result<Outcome, Error> {
        let Some(namespace) = ctx.get::<Namespace>(key) else { return Ok(Outcome::Done) };
        let pods = namespace.labels().get("example.com/pods");
        let quota = pods.map(|pods| quota(&key.name, pods));
        ctx.apply_all(&*namespace, Desired::new().with_all(quota)).await?;
        Ok(Outcome::Done)
    }
}

fn controller() -> Controller {
    Controller::new("quotas", Quotas).for_kind::<Namespace>().applies::<ResourceQuota>()
}

async fn reconcile(namespace: Arc<Namespace>, client: Arc<Client>) -> Result<Action, kube::Error> {
    let name = namespace.name_any();
    let quotas: Api<ResourceQuota> = Api::namespaced((*client).clone(), &name);
    let Some(pods) = namespace.labels().get("example.com/pods") else {
        return match quotas.delete("team", &DeleteParams::default()).await {
            Err(kube::Error::Api(status)) if !status.is_not_found() => Err(kube::Error::Api(status)),
            _ => Ok(Action::await_change()),
        };
    };
    let mut quota = quota(&name, pods);
    quota.metadata.owner_references = namespace.controller_owner_ref(&()).map(|owner| vec![owner]);
    quotas.patch("team", &PatchParams::apply("quotas").force(), &Patch::Apply(&quota)).await?;
    Ok(Action::await_change())
}

fn error_policy(_: Arc<Namespace>, _: &kube::Error, _: Arc<Client>) -> Action {
    Action::requeue(std::time::Duration::from_secs(5))
}

/// kube's controller by itself: without leader election, metrics, health and rights, which it leaves to others.
pub(crate) async fn run_by_kube(client: Client) {
    kube::runtime::Controller::new(Api::<Namespace>::all(client.clone()), watcher::Config::default())
        .owns(Api::<ResourceQuota>::all(client.clone()), watcher::Config::default())
        .run(reconcile, error_policy, Arc::new(client))
        .for_each(|_| std::future::ready(()))
        .await;
}

/// The same functions in a manager, beside controllers of this SDK.
fn ported(manager: &Manager) -> Controller {
    let client = Arc::new(manager.client().clone());
    Controller::new("quotas", kube_rs::reconciler(reconcile, error_policy, client))
        .for_kind::<Namespace>()
        .owns::<ResourceQuota>()
        .all_own_events()
        .writes::<ResourceQuota>([Verb::Create, Verb::Patch, Verb::Delete])
}

/// The operator.
pub(crate) fn operator() -> Operator {
    Operator::new("quotas", "0.1.0").controller(controller)
}

/// The operator of kube's functions.
pub(crate) fn ported_operator() -> Operator {
    Operator::new("quotas", "0.1.0").controller_in(ported)
}

#[tokio::main]
async fn main() -> std::process::ExitCode {
    match std::env::var("KUBE_RS").as_deref() {
        Ok("controller") => {
            run_by_kube(Client::try_default().await.expect("a kubeconfig")).await;
            std::process::ExitCode::SUCCESS
        }
        Ok(_) => ported_operator().main().await,
        Err(_) => operator().main().await,
    }
}
