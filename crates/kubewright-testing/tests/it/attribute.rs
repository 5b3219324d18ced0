//! `#[kubewright::test]`.

use k8s_openapi::api::core::v1::{Namespace, Node};
use kubewright::testing::{Cluster, KubernetesVersion};

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

async fn minor(cluster: &Cluster) -> String {
    cluster.client().apiserver_version().await.expect("an answer").minor
}

#[kubewright::test(kubernetes = "1.35")]
async fn a_test_has_the_version_of_kubernetes_that_it_names(cluster: Cluster) {
    assert_eq!(minor(&cluster).await, "35");
}

#[kubewright::test(kubernetes = ["1.35", "1.37"], seeds = 2)]
async fn each_version_of_a_list_has_a_test(cluster: Cluster) {
    let name = std::thread::current().name().map(str::to_owned);
    // The bodies of several seeds run on threads of their own.
    let (minor, name) = (minor(&cluster).await, name.unwrap_or_default());
    assert!(
        ["35", "37"].contains(&minor.as_str()) && (name.is_empty() || name.ends_with(&minor)),
        "{minor} {name}"
    );
}

#[test]
fn each_version_can_be_chosen() {
    let chosen = [a_version_v1_35 as fn(), a_version_v1_36 as fn(), a_version_v1_37 as fn()];
    assert_eq!(
        chosen.len(),
        KubernetesVersion::ALL.len(),
        "add it to kubewright-derive/src/kubernetes.rs, and here"
    );
}

#[kubewright::test(kubernetes = ["1.35", "1.36", "1.37"], controllers = "", nodes = 0)]
async fn a_version(cluster: Cluster) {
    assert!(!minor(&cluster).await.is_empty());
}
