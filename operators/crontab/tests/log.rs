//! What the operator logs. A test program of its own: which log lines are wanted is a fact of the whole process, which
//! tests on other threads would change.

#[allow(dead_code, reason = "the lab serves the other tests too")]
mod lab;

use std::{
    io::{self, Write},
    sync::{Arc, Mutex},
};

use kubewright::testing::Cluster;
use kubewright_crontab::{CronTab, operator};
use lab::{backup, until};
use serde_json::json;

/// CT-02, CT-04, CT-05, CT-06, CT-09: the seed's lines, in its words.
#[kubewright::test]
async fn ct_02_ct_04_ct_05_ct_06_ct_09_the_log_tells_what_the_seeds_told(cluster: Cluster) {
    let log = Log::default();
    let subscriber = tracing_subscriber::fmt().with_writer(log.clone()).with_ansi(false).finish();
    let _guard = tracing::subscriber::set_default(subscriber);
    cluster.run(operator).await;
    cluster.settle().await;
    cluster.create(&backup()).await;
    cluster.settle().await;
    cluster.patch::<CronTab>("backup", json!({"spec": {"suspend": false, "schedule": "@hourly"}})).await;
    cluster.patch::<CronTab>("backup", json!({"metadata": {"annotations": {"note": "touched"}}})).await;
    until(&cluster, "2026-01-01T01:10:00Z").await;
    cluster.delete::<CronTab>("backup").await;
    cluster.settle().await;
    let text = String::from_utf8(log.0.lock().expect("no panic before").clone()).expect("text");
    let told: Vec<&str> = text
        .lines()
        .filter_map(|line| line.split_once("kubewright_crontab").and_then(|(_, said)| said.split_once(": ")))
        .map(|(_, said)| said)
        .collect();
    assert_eq!(
        told,
        [
            "Watching for crontab objects...",
            "Added crontab: backup",
            "Updating crontab backup",
            "Creating job backup-29453820 for crontab backup",
            "Removed crontab: backup",
        ],
        "{text}"
    );
}

/// Collects what is logged.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("no panic before").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl tracing_subscriber::fmt::MakeWriter<'_> for Log {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        self.clone()
    }
}
