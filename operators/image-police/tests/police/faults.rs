//! What holds whatever goes wrong on the way.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kubewright::testing::Cluster;

use super::{create, deployment, deployments, names, pod, with_sample};

/// IP-05, IP-07 under faults: what is allowed is never touched, what is not goes in the end.
#[kubewright::test(seeds = 200, faults)]
async fn ip_05_only_what_is_not_listed_goes(cluster: Cluster) {
    with_sample(&cluster).await;
    create(&cluster, deployment("good", "nginx")).await;
    create(&cluster, deployment("bad", "nginx:1.15.7")).await;
    create(&cluster, pod("bare", "busybox")).await;
    cluster
        .run_until(
            |cluster| async move {
                let found = deployments(&cluster).await;
                assert!(found.contains(&"good".to_owned()));
                let pods = names::<Pod>(&cluster).await;
                found.len() == 1 && pods.iter().all(|name| name.starts_with("good"))
            },
            Duration::from_secs(600),
        )
        .await;
    cluster.advance(Duration::from_secs(120)).await;
    assert_eq!(deployments(&cluster).await, ["good"]);
    assert_eq!(names::<Pod>(&cluster).await.len(), 1);
}
