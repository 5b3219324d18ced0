//! `#[kubewright::test]`.

use k8s_openapi::api::core::v1::{Namespace, Node};
use kubewright::testing::Cluster;

#[kubewright::test]
async fn a_test_may_do_without_the_cluster() {
    tokio::time::sleep(std::time::Duration::from_secs(3600)).await;
}

#[kubewright::test(nodes = 3, controllers = "", namespaces = ["a", "b"])]
async fn a_test_has_what_its_attribute_says(cluster: Cluster) -> Result<(), kube::Error> {
    assert_eq!(cluster.namespace(), "a");
    assert!(cluster.exists::<Namespace>("a").await && cluster.exists::<Namespace>("b").await);
    cluster.settle().await;
    assert_eq!(cluster.list::<Node>().await.len(), 0, "no controller, no node");
    Ok(())
}
