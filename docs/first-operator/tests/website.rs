//! The first test of the guide, and whether the guide says what is here.

use k8s_openapi::api::{apps::v1::Deployment, core::v1::ConfigMap};
use kubewright::testing::Cluster;
use website_operator::{
    operator,
    types::{Website, WebsiteSpec},
};

mod guide;

fn home() -> Website {
    let spec = WebsiteSpec { page: "<h1>Hello</h1>".to_owned(), replicas: 2 };
    Website::new("home", spec)
}

#[kubewright::test]
async fn a_website_is_served_and_says_so(cluster: Cluster) {
    let _operator = cluster.run(operator).await;
    cluster.create(&home()).await;
    cluster.settle().await;

    let servers = cluster.get::<Deployment>("home").await;
    assert_eq!(servers.spec.and_then(|spec| spec.replicas), Some(2));
    let website = cluster.get::<Website>("home").await;
    assert_eq!(website.status.map(|status| status.ready), Some(2));
}

#[kubewright::test]
async fn what_somebody_breaks_is_put_right(cluster: Cluster) {
    let _operator = cluster.run(operator).await;
    cluster.create(&home()).await;
    cluster.settle().await;

    cluster.delete::<ConfigMap>("home").await;
    cluster.settle().await;
    assert!(cluster.exists::<ConfigMap>("home").await);
}

#[kubewright::test]
async fn with_the_website_goes_what_it_owned(cluster: Cluster) {
    let _operator = cluster.run(operator).await;
    cluster.create(&home()).await;
    cluster.settle().await;

    cluster.delete::<Website>("home").await;
    cluster.settle().await;
    assert!(!cluster.exists::<Deployment>("home").await);
}
