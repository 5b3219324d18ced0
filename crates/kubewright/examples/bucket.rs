//! Each Shop has a Deployment, and a bucket outside of the cluster that a finalizer guards. How it is, its conditions say.
#![expect(unreachable_pub, reason = "the derive of KubeSchema repeats each struct inside a function")]

use std::sync::Arc;

use k8s_openapi::{
    api::{
        apps::v1::{Deployment, DeploymentSpec},
        core::v1::{Container, PodSpec, PodTemplateSpec},
    },
    apimachinery::pkg::apis::meta::v1::{Condition, LabelSelector, ObjectMeta},
};
use kube::{CustomResource, KubeSchema, ResourceExt};
use kubewright::{
    Context, Controller, Error, ErrorPolicy, Guarded, Key, Outcome, Reconciler, command::Operator,
    conditions::NewCondition,
};
use serde::{Deserialize, Serialize};

/// What a shop is to be.
#[derive(CustomResource, KubeSchema, Clone, Debug, Default, Serialize, Deserialize)]
#[kube(group = "example.com", version = "v1", kind = "Shop", namespaced, status = "ShopStatus")]
pub struct ShopSpec {
    /// The name of its bucket.
    pub bucket: String,
    /// How many servers there are.
    pub replicas: i32,
}

/// How a shop is.
#[derive(KubeSchema, Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ShopStatus {
    /// The generation that the rest is about.
    pub observed_generation: Option<i64>,
    /// How it is.
    #[serde(default)]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,
}

/// A service outside of the cluster.
pub trait Buckets: Send + Sync + 'static {
    /// Makes a bucket, unless it is there.
    fn create(&self, name: &str) -> impl Future<Output = Result<(), Error>> + Send;
    /// Deletes a bucket, if it is there.
    fn delete(&self, name: &str) -> impl Future<Output = Result<(), Error>> + Send;
}

const FINALIZER: &str = "example.com/bucket";

/// Keeps each shop as it is wanted.
struct Shops<B>(Arc<B>);

impl<B: Buckets> Reconciler for Shops<B> {
    async fn reconcile(&self, ctx: &Context, key: &Key) -> Result<Outcome, Error> {
        let Some(shop) = ctx.get::<Shop>(key) else { return Ok(Outcome::Done) };
        let cleanup = || self.0.delete(&shop.spec.bucket);
        if ctx.guard(&*shop, FINALIZER, cleanup).await? == Guarded::Cleaned {
            return Ok(Outcome::Done);
        }
        self.0.create(&shop.spec.bucket).await?;
        let deployment = ctx.apply(&deployment(&shop)).owned_by(&*shop).await?;
        let status = deployment.object().status.as_ref();
        let available = status.and_then(|status| status.available_replicas).unwrap_or(0);
        let is_ready = available >= shop.spec.replicas;
        let reason = if is_ready { "Serving" } else { "Progressing" };
        let ready = NewCondition::new("Ready", is_ready.into(), reason);
        ctx.status(&*shop).condition(ready.message(format!("{available} servers"))).await?;
        Ok(Outcome::Done)
    }
}

/// The Deployment that a shop is to have.
fn deployment(shop: &Shop) -> Deployment {
    let labels = Some([("shop".to_owned(), shop.name_any())].into());
    let (name, namespace) = (Some(shop.name_any()), shop.namespace());
    let container =
        Container { name: "shop".to_owned(), image: Some("shop:1".to_owned()), ..Container::default() };
    let pod = PodSpec { containers: vec![container], ..PodSpec::default() };
    let metadata = Some(ObjectMeta { labels: labels.clone(), ..ObjectMeta::default() });
    let spec = DeploymentSpec {
        replicas: Some(shop.spec.replicas),
        selector: LabelSelector { match_labels: labels, ..LabelSelector::default() },
        template: PodTemplateSpec { metadata, spec: Some(pod) },
        ..DeploymentSpec::default()
    };
    let metadata = ObjectMeta { name, namespace, ..ObjectMeta::default() };
    Deployment { metadata, spec: Some(spec), status: None }
}

/// The operator, with these buckets.
pub fn operator<B: Buckets>(buckets: &Arc<B>) -> Operator {
    let buckets = buckets.clone();
    Operator::new("shop", "0.1.0").definition::<Shop>().controller(move || {
        Controller::new("shop", Shops(buckets.clone()))
            .for_kind::<Shop>()
            .applies::<Deployment>()
            .writes_status::<Shop>()
            .guards::<Shop>()
            // An error that lasts is told by the condition, and by an Event.
            .on_error(ErrorPolicy::default().sets_false("Ready"))
    })
}

/// Buckets that are folders of this machine.
struct Folders(std::path::PathBuf);

impl Buckets for Folders {
    async fn create(&self, name: &str) -> Result<(), Error> {
        std::fs::create_dir_all(self.0.join(name)).map_err(Error::new)
    }

    async fn delete(&self, name: &str) -> Result<(), Error> {
        match std::fs::remove_dir_all(self.0.join(name)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(Error::new(error)),
            _ => Ok(()),
        }
    }
}

#[tokio::main]
async fn main() -> std::process::ExitCode {
    operator(&Arc::new(Folders("buckets".into()))).main().await
}
