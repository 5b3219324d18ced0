//! What acts in a cluster goes on after a reset.

use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::Api;
use kube::api::{DeleteParams, ListParams};
use kubewright_cluster::Cluster;
use serde_json::json;

use crate::support::World;

async fn nodes(world: &World) -> Vec<String> {
    let nodes =
        Api::<Node>::all(world.client.clone()).list(&ListParams::default()).await.expect("a list").items;
    let is_ready = |node: &Node| {
        let conditions = node.status.iter().flat_map(|status| status.conditions.iter().flatten());
        conditions.into_iter().any(|one| one.type_ == "Ready" && one.status == "True")
    };
    nodes.iter().filter(|node| is_ready(node)).filter_map(|node| node.metadata.name.clone()).collect()
}

async fn a_deployment_runs(world: &World) {
    world
        .create::<Deployment>(json!({
            "metadata": {"name": "web"},
            "spec": {
                "replicas": 2,
                "selector": {"matchLabels": {"app": "web"}},
                "template": {
                    "metadata": {"labels": {"app": "web"}},
                    "spec": {"containers": [{"name": "web", "image": "nginx"}]},
                },
            },
        }))
        .await;
    world.settle().await;
    let pods = world.all::<Pod>().await;
    let phases: Vec<_> = pods.iter().filter_map(|pod| pod.status.as_ref()?.phase.as_deref()).collect();
    assert_eq!(phases, ["Running", "Running"]);
}

#[tokio::test(start_paused = true)]
async fn the_nodes_of_the_start_are_back_and_run_pods() {
    let world = World::at_rest(Cluster::builder().admin(true).nodes(2)).await;
    let admin = world.cluster.admin().expect("it was asked for").clone();
    assert_eq!(nodes(&world).await, ["node-0", "node-1"]);
    for _ in 0..3 {
        a_deployment_runs(&world).await;
        let all = Api::<Node>::all(world.client.clone());
        // One that somebody deleted is back too; and one that somebody made is not.
        all.delete("node-1", &DeleteParams::default()).await.expect("deleted");
        let other = json!({"metadata": {"name": "other"}});
        let other = kubewright_objects::from_value(other).expect("a node");
        all.create(&kube::api::PostParams::default(), &other).await.expect("created");
        world.settle().await;
        assert_eq!(nodes(&world).await, ["node-0", "other"]);
        admin.reset().await.expect("reset");
        world.settle().await;
        assert_eq!(nodes(&world).await, ["node-0", "node-1"]);
        assert_eq!(world.names::<Pod>().await, [] as [String; 0]);
        // Nor does the time that passes change that.
        tokio::time::sleep(Duration::from_secs(600)).await;
        assert_eq!(nodes(&world).await, ["node-0", "node-1"]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_reset_at_once_after_the_start_loses_no_node() {
    let cluster = Cluster::builder().admin(true).nodes(3).start().await.expect("a cluster");
    let client = cluster.client();
    let world = World { cluster, client };
    world.cluster.admin().expect("it was asked for").reset().await.expect("reset");
    world.settle().await;
    assert_eq!(nodes(&world).await, ["node-0", "node-1", "node-2"]);
    a_deployment_runs(&world).await;
}
