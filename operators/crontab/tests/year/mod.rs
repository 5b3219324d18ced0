//! A year of a CronTab at `@hourly`.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
    time::Duration,
};

use k8s_openapi::api::batch::v1::Job;
use kubewright::{Context, Controller, Error, Key, Manager, Outcome, Reconciler, testing::Cluster};
use kubewright_crontab::operator;
use serde_json::json;

use super::lab::{crontab, status, time};

/// 8,760 runs, each with its Job, in seconds. No more happens in this cluster than what the operator does (it replaces the
/// Job of the hour before), so that is what the time is spent on.
#[kubewright::test(controllers = "", nodes = 0)]
#[ignore = "takes minutes where it is not optimised: cargo test --release -p kubewright-crontab -- --ignored year"]
async fn a_year_at_every_hour_has_a_job_for_each(cluster: Cluster) {
    cluster.run(operator).await;
    let seen = Seen::default();
    let mut manager = Manager::in_process(cluster.client(), cluster.world().clone());
    manager.add(Controller::new("seen", seen.clone()).for_kind::<Job>());
    tokio::spawn(manager.run(cluster.shutdown().clone()));

    cluster.create(&crontab("backup", json!({"concurrencyPolicy": "Replace"}))).await;
    cluster.advance(Duration::from_secs(365 * 24 * 3600)).await;
    let last = status(&cluster, "backup").await.last_schedule_time;
    assert_eq!(last.map(|last| last.0), Some(time("2027-01-01T00:00:00Z")));
    assert_eq!(seen.0.lock().expect("no panic before").len(), 365 * 24);
}

/// Writes down which Jobs there were.
#[derive(Clone, Default)]
struct Seen(Arc<Mutex<BTreeSet<String>>>);

impl Reconciler for Seen {
    async fn reconcile(&self, _: &Context, key: &Key) -> Result<Outcome, Error> {
        self.0.lock().expect("no panic before").insert(key.name.clone());
        Ok(Outcome::Done)
    }
}
