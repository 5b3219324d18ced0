// SPDX-License-Identifier: MIT

//! Harbour of fleet.example.com.

use k8s_openapi::api::apps::v1::Deployment;
use kube::ResourceExt;
use kubewright::conditions;
use kubewright::testing::Cluster;

use cluster_scoped::kinds::fleet::harbour::{Harbour, v1};
use cluster_scoped::operator;

const SAMPLE: &str = include_str!("../../config/samples/fleet_v1_harbour.yaml");
const NAME: &str = "harbour-sample";
const DEPLOYMENT: &str = "harbour-sample-deployment";

/// The sample, once nobody has any more to do for it.
async fn applied(cluster: &Cluster) -> Harbour {
    cluster.run(operator).await;
    let _: v1::Harbour = cluster.apply(SAMPLE).await;
    cluster.settle().await;
    cluster.get(NAME).await
}

#[kubewright::test]
async fn the_sample_has_its_deployment_and_is_ready(cluster: Cluster) {
    let sample = applied(&cluster).await;
    let deployment = cluster.get::<Deployment>(DEPLOYMENT).await;
    assert_eq!(deployment.owner_references()[0].name, NAME);
    let status = sample.status.clone().unwrap_or_default();
    assert!(conditions::is_true(&status.conditions, "Ready"));
    assert_eq!(status.observed_generation, sample.metadata.generation);
    let events = cluster.events_of(&sample).await;
    assert_eq!(events[0].reason.as_deref(), Some("Created"));
}

#[kubewright::test]
async fn a_deleted_deployment_comes_back(cluster: Cluster) {
    applied(&cluster).await;
    let first = cluster.get::<Deployment>(DEPLOYMENT).await;
    cluster.delete::<Deployment>(DEPLOYMENT).await;
    cluster.settle().await;
    let second = cluster.get::<Deployment>(DEPLOYMENT).await;
    assert_ne!(first.uid(), second.uid());
}

#[kubewright::test]
async fn the_deployment_goes_with_its_owner(cluster: Cluster) {
    applied(&cluster).await;
    cluster.delete::<Harbour>(NAME).await;
    cluster.settle().await;
    assert!(!cluster.exists::<Deployment>(DEPLOYMENT).await);
}

/// Each seed is a plan of faults: writes that are refused or not answered, watches that are late, crashes between two writes.
#[kubewright::test(
    seeds = 20,
    faults(conflict, error, timeout, stale_watch, expire_watch, crash)
)]
async fn whatever_goes_wrong_it_is_as_wanted_in_the_end(cluster: Cluster) {
    let sample = applied(&cluster).await;
    let status = sample.status.unwrap_or_default();
    assert!(conditions::is_true(&status.conditions, "Ready"));
    cluster.delete::<Deployment>(DEPLOYMENT).await;
    cluster.settle().await;
    assert!(cluster.exists::<Deployment>(DEPLOYMENT).await);
    cluster.delete::<Harbour>(NAME).await;
    cluster.settle().await;
    assert!(!cluster.exists::<Harbour>(NAME).await);
}
