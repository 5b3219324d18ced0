//! What the operator logs.

use kubewright::testing::{Cluster, Log};
use kubewright_crontab::{CronTab, operator};
use serde_json::json;

use super::lab::{backup, until};

/// CT-02, CT-04, CT-05, CT-06, CT-09: the seed's lines, in its words.
#[kubewright::test]
async fn ct_02_ct_04_ct_05_ct_06_ct_09_the_log_tells_what_the_seeds_told(cluster: Cluster) {
    let log = Log::keep();
    cluster.run(operator).await;
    cluster.settle().await;
    cluster.create(&backup()).await;
    cluster.settle().await;
    cluster.patch::<CronTab>("backup", json!({"spec": {"suspend": false, "schedule": "@hourly"}})).await;
    cluster.patch::<CronTab>("backup", json!({"metadata": {"annotations": {"note": "touched"}}})).await;
    until(&cluster, "2026-01-01T01:10:00Z").await;
    cluster.delete::<CronTab>("backup").await;
    cluster.settle().await;
    assert_eq!(
        log.of("kubewright_crontab"),
        [
            "Watching for crontab objects...",
            "Added crontab: backup",
            "Updating crontab backup",
            "Creating job backup-29453820 for crontab backup",
            "Removed crontab: backup",
        ],
        "{}",
        log.text()
    );
}
