//! The operator on bad days: its requests fail, its watches lag, it is killed, its pods and nodes go.

use k8s_openapi::api::apps::v1::Deployment;
use kubewright::testing::Cluster;
use kubewright_whitelist::{WhiteList, operator};
use serde_json::json;

use crate::lab::sample;

const CHILD: &str = "x-deployment";

async fn is_ready(cluster: &Cluster) {
    let status = cluster.get::<WhiteList>("x").await.status.unwrap_or_default();
    assert!(status.ready, "{status:?}");
    let spec = cluster.get::<Deployment>(CHILD).await.spec.expect("a spec");
    assert_eq!(spec.replicas, Some(1));
}

#[kubewright::test(seeds = 3, faults)]
async fn a_whitelist_has_its_deployment_whatever_goes_wrong(cluster: Cluster) {
    cluster.run(operator).await;
    cluster.create(&WhiteList::new("x", sample())).await;
    cluster.settle().await;
    is_ready(&cluster).await;

    cluster.patch::<Deployment>(CHILD, json!({"spec": {"replicas": 4}})).await;
    cluster.settle().await;
    is_ready(&cluster).await;

    cluster.delete::<Deployment>(CHILD).await;
    cluster.settle().await;
    is_ready(&cluster).await;
}
