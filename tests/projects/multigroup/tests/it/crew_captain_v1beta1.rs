// Copyright 2026 Example.
// SPDX-License-Identifier: MIT

//! Captain of crew.example.com in v1beta1.

use kubewright::testing::Cluster;

use multigroup::kinds::crew::captain as kind;
use multigroup::operator;

const SAMPLE: &str = include_str!("../../config/samples/crew_v1beta1_captain.yaml");
const NAME: &str = "captain-sample";

#[kubewright::test]
async fn what_is_written_in_v1beta1_is_kept_in_every_version(cluster: Cluster) {
    cluster.run(operator).await;
    let written: kind::v1beta1::Captain = cluster.apply(SAMPLE).await;
    cluster.settle().await;

    let stored: kind::Captain = cluster.get(NAME).await;
    kind::conversion().assert_round_trips([stored]);
    let read: kind::v1beta1::Captain = cluster.get(NAME).await;
    assert_eq!(read.spec, written.spec);
}
