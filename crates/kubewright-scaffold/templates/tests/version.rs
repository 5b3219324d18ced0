//! @Kind@ of @api_group@ in @version@.

use kubewright::testing::Cluster;

use @crate@::kinds::@module@ as kind;
use @crate@::operator;

const SAMPLE: &str = include_str!("../../@sample@");
const NAME: &str = "@lower@-sample";

#[kubewright::test]
async fn what_is_written_in_@version@_is_kept_in_every_version(cluster: Cluster) {
    cluster.run(operator).await;
    let written: kind::@version@::@Kind@ = cluster.apply(SAMPLE).await;
    cluster.settle().await;

    let stored: kind::@Kind@ = cluster.get(NAME).await;
    kind::conversion().assert_round_trips([stored]);
    let read: kind::@version@::@Kind@ = cluster.get(NAME).await;
    assert_eq!(read.spec, written.spec);
}
