//! @Kind@ of @api_group@.

use kubewright::testing::Cluster;

use @crate@::kinds::@module@::{@Kind@, @version@};
use @crate@::operator;

const SAMPLE: &str = include_str!("../../@sample@");
const NAME: &str = "@lower@-sample";

#[kubewright::test]
async fn the_sample_is_taken_and_@done@(cluster: Cluster) {
    cluster.run(operator).await;
    let _: @version@::@Kind@ = cluster.apply(SAMPLE).await;
    cluster.settle().await;
    let sample: @Kind@ = cluster.get(NAME).await;
    assert@is_done@);
}
