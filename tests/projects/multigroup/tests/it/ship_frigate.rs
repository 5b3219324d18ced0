// Copyright 2026 Example.
// SPDX-License-Identifier: MIT

//! Frigate of ship.example.com.

use kubewright::testing::Cluster;

use multigroup::kinds::ship::frigate::{Frigate, v1};
use multigroup::operator;

const SAMPLE: &str = include_str!("../../config/samples/ship_v1_frigate.yaml");
const NAME: &str = "frigate-sample";

#[kubewright::test]
async fn the_sample_is_taken_and_kept(cluster: Cluster) {
    cluster.run(operator).await;
    let _: v1::Frigate = cluster.apply(SAMPLE).await;
    cluster.settle().await;
    let sample: Frigate = cluster.get(NAME).await;
    assert_eq!(sample.spec.foo.as_deref(), Some("bar"));
}
