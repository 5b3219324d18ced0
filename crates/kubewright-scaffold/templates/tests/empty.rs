//! @Kind@ of @api_group@.

use kubewright::testing::Cluster;

use @crate@::{kinds::@module@::@Kind@, operator};

const SAMPLE: &str = include_str!("../../config/samples/@sample@");
const NAME: &str = "@lower@-sample";

#[kubewright::test]
async fn the_sample_is_taken_and_@done@(cluster: Cluster) {
    cluster.run(operator).await;
    cluster.apply::<@Kind@>(SAMPLE).await;
    cluster.settle().await;
    let sample = cluster.get::<@Kind@>(NAME).await;
    assert@is_done@);
}
