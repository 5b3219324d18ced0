//! @Kind@ of @api_group@ in @version@.

use kubewright::testing::Cluster;

use @crate@::{kinds::@group_module@::@kind_module@, operator};

const SAMPLE: &str = include_str!("../../config/samples/@sample@");
const NAME: &str = "@lower@-sample";

#[kubewright::test]
async fn what_is_written_in_@version@_is_kept_in_every_version(cluster: Cluster) {
    cluster.run(operator).await;
    let written = cluster.apply::<@kind_module@::@version@::@Kind@>(SAMPLE).await;
    cluster.settle().await;

    let stored = cluster.get::<@kind_module@::@Kind@>(NAME).await;
    @kind_module@::conversion().assert_round_trips([stored]);
    let read = cluster.get::<@kind_module@::@version@::@Kind@>(NAME).await;
    assert_eq!(read.spec, written.spec);
}
