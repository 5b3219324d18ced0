//! The control plane by itself, for a program that has nothing to do with this SDK: an API server, the built-in controllers and simulated
//! nodes start in the process, and a `kube::Client` reaches them without a socket. `docs/nodes.md` explains the nodes.

use std::time::Duration;

use k8s_openapi::api::{apps::v1::Deployment, core::v1::Pod};
use kube::api::{Api, DeleteParams, ListParams, PostParams};
use kubewright_cluster::Cluster;
use serde_json::json;

/// The nodes on which the pods of `app=web` are ready.
async fn nodes_of_ready_pods(pods: &Api<Pod>) -> Vec<String> {
    let pods = pods.list(&ListParams::default().labels("app=web")).await.expect("pods");
    let ready = pods.items.into_iter().filter(|pod| {
        let conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
        conditions.into_iter().any(|condition| condition.type_ == "Ready" && condition.status == "True")
    });
    ready.filter_map(|pod| pod.spec?.node_name).collect()
}

/// The clock of tokio stands still while somebody has work, and jumps to the next timer when nobody has: so cluster time takes no time.
#[tokio::test(start_paused = true)]
async fn a_deployment_gets_pods_on_simulated_nodes() {
    let cluster = Cluster::builder().nodes(3).start().await.expect("a cluster");
    let deployments: Api<Deployment> = Api::default_namespaced(cluster.client());
    let pods: Api<Pod> = Api::default_namespaced(cluster.client());
    let web = json!({
        "metadata": {"name": "web"},
        "spec": {
            "replicas": 3,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "web", "image": "nginx"}]},
            },
        },
    });
    let web: Deployment = serde_json::from_value(web).expect("a Deployment");
    deployments.create(&PostParams::default(), &web).await.expect("it is created");
    tokio::time::sleep(Duration::from_mins(1)).await;

    let mut nodes = nodes_of_ready_pods(&pods).await;
    nodes.sort();
    assert_eq!(nodes, ["node-0", "node-1", "node-2"]);

    deployments.delete("web", &DeleteParams::default()).await.expect("it is deleted");
    tokio::time::sleep(Duration::from_mins(1)).await;
    assert_eq!(nodes_of_ready_pods(&pods).await, [""; 0]);
}
