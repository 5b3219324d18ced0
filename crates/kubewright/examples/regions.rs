//! Each Site at home has a ConfigMap in each further cluster that it names: clusters of the kubeconfig, by the names of their contexts.
#![expect(unreachable_pub, reason = "the derive of KubeSchema repeats each struct inside a function")]

use k8s_openapi::{api::core::v1::ConfigMap, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use kube::{Client, CustomResource, KubeSchema, ResourceExt};
use kubewright::{
    Connect, Context, Controller, DeleteParams, Error, Key, Manager, Metrics, Outcome, Reconciler,
    command::Operator, rbac::Verb,
};
use serde::{Deserialize, Serialize};

/// What a site is to be.
#[derive(CustomResource, KubeSchema, Clone, Debug, Default, Serialize, Deserialize)]
#[kube(group = "example.com", version = "v1", kind = "Site", namespaced)]
pub struct SiteSpec {
    /// Its text.
    pub text: String,
    /// The clusters that it is in.
    pub regions: Vec<String>,
}

/// Keeps the ConfigMaps of each Site as they are wanted.
struct Sites;

const FINALIZER: &str = "example.com/regions";

impl Reconciler for Sites {
    async fn reconcile(&self, ctx: &Context, key: &Key) -> Result<Outcome, Error> {
        let Some(site) = ctx.get::<Site>(key) else { return Ok(Outcome::Done) };
        // No garbage collector takes what has its owner in another cluster.
        let cleanup = || async { keep(ctx, &site, &[]).await };
        ctx.guard(&*site, FINALIZER, cleanup).await?;
        if site.metadata.deletion_timestamp.is_none() {
            keep(ctx, &site, &site.spec.regions).await?;
        }
        Ok(Outcome::Done)
    }
}

/// Makes a Site be in these regions and in no others.
async fn keep(ctx: &Context, site: &Site, regions: &[String]) -> Result<(), Error> {
    let metadata =
        ObjectMeta { name: Some(site.name_any()), namespace: site.namespace(), ..ObjectMeta::default() };
    let data = Some([("text".to_owned(), site.spec.text.clone())].into());
    let map = ConfigMap { metadata, data, ..ConfigMap::default() };
    for name in ctx.clusters() {
        let Some(region) = ctx.in_cluster(&name) else { continue };
        if regions.iter().any(|region| **region == *name) {
            region.apply(&map).await?;
        } else if region.get::<ConfigMap>(&Key::of(&map)).is_some() {
            region.delete::<ConfigMap>(&Key::of(&map), DeleteParams::default()).await?;
        }
    }
    Ok(())
}

fn controller() -> Controller {
    Controller::new("site", Sites)
        .for_kind::<Site>()
        .guards::<Site>()
        .watches_in_each(|map: &ConfigMap| vec![Key::of(map)])
        .writes_in_each::<ConfigMap>([Verb::Create, Verb::Patch, Verb::Delete])
}

/// The operator, in these clusters.
pub fn operator(regions: Vec<(String, Client)>) -> Operator {
    let join = move |manager: &mut Manager| {
        for (name, client) in &regions {
            manager.add_cluster(name, client.clone());
        }
        Ok(())
    };
    Operator::new("site", "0.1.0").definition::<Site>().controller(controller).setup(join)
}

#[tokio::main]
async fn main() -> Result<std::process::ExitCode, Error> {
    let mut regions = Vec::new();
    for name in std::env::var("REGIONS").unwrap_or_default().split_whitespace() {
        let connect = Connect { context: Some(name.to_owned()), ..Connect::default() };
        regions.push((name.to_owned(), connect.client(Metrics::new().requests()).await?.0));
    }
    Ok(operator(regions).main().await)
}
