// Copyright 2026 Example.
// SPDX-License-Identifier: MIT

//! Captain of sea-creatures.example.com.

use kubewright::testing::Cluster;

use multigroup::kinds::sea_creatures::captain::{Captain, v1};
use multigroup::operator;

const SAMPLE: &str = include_str!("../../config/samples/sea-creatures_v1_captain.yaml");
const NAME: &str = "captain-sample";

#[kubewright::test]
async fn the_sample_is_taken_and_ready(cluster: Cluster) {
    cluster.run(operator).await;
    let _: v1::Captain = cluster.apply(SAMPLE).await;
    cluster.settle().await;
    let sample: Captain = cluster.get(NAME).await;
    assert!(kubewright::conditions::is_true(
        &sample.status.unwrap_or_default().conditions,
        "Ready"
    ));
}
