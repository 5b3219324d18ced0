// SPDX-License-Identifier: MIT

//! Deployment of apps.

use kubewright::testing::Cluster;

use builtin::operator;

/// The cluster has no other work than this operator's: it must come to rest with it, and under its own rights.
#[kubewright::test]
async fn deployments_are_watched_and_nothing_goes_on_for_ever(cluster: Cluster) {
    let operator = cluster.run(operator).await;
    // Here: create one, and say what you expect to find after the next line.
    cluster.settle().await;
    assert!(operator.is_running());
}
