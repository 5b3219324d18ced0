//! What the operator logs.

use kubewright::testing::{Cluster, Log};
use kubewright_whitelist::{WhiteList, WhiteListSpec, operator};

#[kubewright::test]
async fn wl_05_the_log_says_what_is_created(cluster: Cluster) {
    let log = Log::keep();
    cluster.run(operator).await;
    cluster.create(&WhiteList::new("whitelist-sample", WhiteListSpec::default())).await;
    cluster.settle().await;
    let told = log.of("kubewright_whitelist");
    assert_eq!(told, ["Creating Deployment default/whitelist-sample-deployment"]);
}
