//! A Notice at home has a ConfigMap in each further cluster. Clusters are added to the manager by name; the reconciler asks its context for
//! each. `docs/clusters.md` explains it; `crates/kubewright/examples/regions.rs` also deletes what is not wanted any more.

use k8s_openapi::{api::core::v1::ConfigMap, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use kube::{Client, CustomResource};
use kubewright::testing::{Builder, Cluster};
use kubewright::{Context, Controller, Error, Key, Outcome, Reconciler, command::Operator, rbac::Verb};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(CustomResource, JsonSchema, Clone, Debug, Serialize, Deserialize)]
#[kube(group = "example.com", version = "v1", kind = "Notice", namespaced)]
struct NoticeSpec {}

struct Notices;

impl Reconciler for Notices {
    async fn reconcile(&self, ctx: &Context, key: &Key) -> Result<Outcome, Error> {
        if ctx.get::<Notice>(key).is_none() {
            return Ok(Outcome::Done);
        }
        let metadata = ObjectMeta::from(key);
        let map = ConfigMap { metadata, ..ConfigMap::default() };
        for cluster in ctx.clusters() {
            // It may have gone since the line above.
            let Some(there) = ctx.in_cluster(&cluster) else { continue };
            there.apply(&map).await?;
        }
        Ok(Outcome::Done)
    }
}

fn operator(east: Client) -> Operator {
    let controller = || {
        Controller::new("notice", Notices)
            .for_kind::<Notice>()
            .watches_in_each(|map: &ConfigMap| vec![Key::of(map)])
            .writes_in_each::<ConfigMap>([Verb::Create, Verb::Patch])
    };
    Operator::new("notice", "0.1.0").definition::<Notice>().controller(controller).setup(move |manager| {
        manager.add_cluster("east", east.clone());
        Ok(())
    })
}

#[kubewright::test]
async fn what_is_deleted_in_another_cluster_comes_back(home: Cluster) {
    let east = Builder::api_server().world(home.world().clone());
    let east = Cluster::of(east).await.expect("another cluster");
    home.run(operator(east.client())).await;
    home.create(&Notice::new("closed", NoticeSpec {})).await;
    home.settle().await;
    east.delete::<ConfigMap>("closed").await;
    home.settle().await;
    assert!(east.exists::<ConfigMap>("closed").await && !home.exists::<ConfigMap>("closed").await);
}
