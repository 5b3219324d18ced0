//! Long times: a year at `@hourly`, and a lease of two weeks that runs out.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
    time::Duration,
};

use k8s_openapi::api::batch::v1::Job;
use kube::{Client, core::PartialObjectMeta};
use kubewright::{
    Context, Controller, Error, Key, Leadership, Manager, Outcome, Reconciler,
    command::{Installation, Run},
    testing::Cluster,
};
use kubewright_crontab::operator;
use serde_json::json;
use tokio::task::JoinHandle;

use super::lab::{crontab, jobs, status, time};

const HOUR: Duration = Duration::from_hours(1);
const DAY: Duration = Duration::from_hours(24);
/// Where the operator lives.
const HOME: &str = "crontab-system";

/// 8,760 runs, each with its Job, in seconds. No more happens in this cluster than what the operator does (it replaces the
/// Job of the hour before), so that is what the time is spent on.
#[kubewright::test(controllers = "", nodes = 0)]
async fn a_year_at_every_hour_has_a_job_for_each(cluster: Cluster) {
    cluster.run(operator).await;
    let seen = Seen::default();
    let mut manager = Manager::in_process(client(&cluster), cluster.world().clone());
    let jobs = |job: &PartialObjectMeta<Job>| vec![Key::of(job)];
    manager.add(Controller::new("seen", seen.clone()).watches_metadata(jobs));
    tokio::spawn(manager.run(cluster.shutdown().clone()));

    cluster.create(&crontab("backup", json!({"concurrencyPolicy": "Replace"}))).await;
    cluster.advance(365 * DAY).await;
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

/// Who has a lease of two weeks and is killed is followed when these are over, not before; the run that was missed
/// meanwhile is made up for, once.
#[kubewright::test(controllers = "", nodes = 0)]
async fn a_lease_of_two_weeks_runs_out_and_the_other_replica_takes_over(cluster: Cluster) {
    operator().prepare(&cluster.client(), &Installation::default()).await.expect("it is installed");
    let (_, first) = replica(&cluster, "first");
    cluster.settle().await;
    let (second, _) = replica(&cluster, "second");
    cluster.create(&crontab("backup", json!({"schedule": "@monthly"}))).await;
    cluster.create(&crontab("weekly", json!({"schedule": "@weekly"}))).await;
    cluster.settle().await;
    assert!(!second.is_leader());

    first.abort();
    cluster.advance(14 * DAY - HOUR).await;
    assert!(!second.is_leader(), "the lease is not over");
    assert_eq!(jobs(&cluster, "weekly").await, Vec::<String>::new());
    // It looks every hour or two.
    cluster.advance(4 * HOUR).await;
    assert!(second.is_leader());
    assert_eq!(jobs(&cluster, "weekly").await.len(), 1, "of two that were missed the last");
    let last = status(&cluster, "weekly").await.last_schedule_time;
    assert_eq!(last.map(|last| last.0), Some(time("2026-01-11T00:00:00Z")));
    assert_eq!(jobs(&cluster, "backup").await, Vec::<String>::new());
}

/// A replica that wants the lease; killed when its task is aborted.
fn replica(cluster: &Cluster, name: &str) -> (Leadership, JoinHandle<Result<(), Error>>) {
    let run = Run {
        leader_elect: true,
        leader_elect_resource_namespace: Some(HOME.to_owned()),
        leader_elect_lease_duration: 14 * DAY,
        leader_elect_renew_deadline: 7 * DAY,
        leader_elect_retry_period: HOUR,
        ..Run::default()
    };
    let manager = Manager::in_process(client(cluster), cluster.world().clone());
    let manager = operator().manager(manager, &run).unwrap_or_else(|error| panic!("{name}: {error}"));
    let leadership = manager.leadership().expect("it elects");
    (leadership, tokio::spawn(manager.run(cluster.shutdown().clone())))
}

/// A client as operators have it: its watches last.
fn client(cluster: &Cluster) -> Client {
    cluster.client_of_operator(HOME, "crontab", "crontab").expect("a program's name")
}
