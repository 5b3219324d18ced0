//! The tests of docs/testing.md and docs/faults.md, and that they are what these pages show.

use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kubewright::testing::faults::{Fault, FaultKind};
use kubewright::testing::{Cluster, Ledger};
use serde_json::json;

use crate::copier::{operator, secret};

#[kubewright::test]
async fn a_deleted_copy_comes_back(cluster: Cluster) {
    cluster.run(operator).await;
    cluster.create(&secret("login", &["password"])).await;
    cluster.settle().await;

    cluster.delete::<ConfigMap>("login").await;
    cluster.settle().await;
    assert!(cluster.exists::<ConfigMap>("login").await);
}

#[kubewright::test]
async fn an_idle_year_brings_no_writes(cluster: Cluster) {
    cluster.run(operator).await;
    cluster.create(&secret("login", &["password"])).await;
    cluster.settle().await;

    let before = cluster.history::<ConfigMap>("login").writes.len();
    cluster.advance(Duration::from_hours(24 * 365)).await;
    assert_eq!(cluster.history::<ConfigMap>("login").writes.len(), before);
}

#[kubewright::test]
async fn a_new_key_is_copied(cluster: Cluster) {
    cluster.run(operator).await;
    cluster.create(&secret("login", &["password"])).await;
    cluster.patch::<Secret>("login", json!({"stringData": {"user": "x"}})).await;

    let has_both = async |cluster: Cluster| {
        let copy = cluster.try_get::<ConfigMap>("login").await.ok_or("there is no copy")?;
        copy.data.filter(|data| data.len() == 2).ok_or("it has not both keys")
    };
    cluster.eventually(has_both).await;
    cluster.consistently(has_both, Duration::from_mins(10)).await;
}

#[kubewright::test]
async fn it_finishes_what_it_began_before_a_crash(cluster: Cluster) {
    let operator = cluster.run(operator).await;
    for writes in 0.. {
        operator.crash_after(writes);
        let name = format!("login-{writes}");
        cluster.create(&secret(&name, &["password"])).await;
        cluster.settle().await;
        if operator.is_running() {
            break; // it had no more to write
        }
        operator.restart().await;
        cluster.settle().await;
        assert!(cluster.exists::<ConfigMap>(&name).await);
    }
}

#[kubewright::test]
async fn a_restart_changes_nothing(cluster: Cluster) {
    let operator = cluster.run(operator).await;
    cluster.create(&secret("login", &["password"])).await;
    cluster.settle().await;

    let before = cluster.snapshot("default").to_string();
    operator.restart().await;
    cluster.settle().await;
    assert_eq!(cluster.snapshot("default").to_string(), before);
}

#[kubewright::test]
async fn another_replica_takes_over(cluster: Cluster) {
    let operator = cluster.run(operator).replicas(2).await;
    cluster.advance(Duration::from_secs(5)).await;
    operator.crash_leader().await;
    cluster.create(&secret("login", &["password"])).await;
    cluster.eventually(async |cluster: Cluster| cluster.exists::<ConfigMap>("login").await).await;
}

#[kubewright::test(seeds = 20, faults)]
async fn a_copy_has_the_keys_whatever_goes_wrong(cluster: Cluster) {
    cluster.run(operator).await;
    cluster.create(&secret("login", &["password"])).await;
    cluster.settle().await;
    assert!(cluster.exists::<ConfigMap>("login").await);

    cluster.delete::<ConfigMap>("login").await;
    cluster.settle().await;
    assert!(cluster.exists::<ConfigMap>("login").await);
}

#[kubewright::test]
async fn a_day_without_an_api_server_is_survived(cluster: Cluster) {
    cluster.run(operator).await;
    cluster.create(&secret("login", &["password"])).await;
    cluster.settle().await;

    let away = cluster.inject(Fault::Restart, Duration::from_hours(24));
    let meanwhile = async {
        cluster.delete::<ConfigMap>("login").await;
        cluster.advance(Duration::from_hours(1)).await;
        assert!(!cluster.exists::<ConfigMap>("login").await);
    };
    tokio::join!(away, meanwhile);
    // Its watches are tried again within the minute.
    cluster.eventually(async |cluster: Cluster| cluster.exists::<ConfigMap>("login").await).await;
}

#[kubewright::test(kubernetes = ["1.35", "1.37"], seeds = 5, faults(conflict, crash))]
async fn a_secret_is_copied(cluster: Cluster) {
    cluster.run(operator).await;
    cluster.create(&secret("login", &["password"])).await;
    cluster.settle().await;
    assert!(cluster.exists::<ConfigMap>("login").await);
}

/// Takes the place of a provider of machines.
struct Provider {
    ledger: Ledger,
}

impl Provider {
    fn order(&self, machine: &str) {
        self.ledger.once(format!("order of {machine}")); // `cluster.ledger()`
    }

    fn cancel(&self, machine: &str) {
        self.ledger.undone(&format!("order of {machine}"));
    }
}

#[kubewright::test]
async fn what_is_undone_may_be_done_again(cluster: Cluster) {
    let provider = Provider { ledger: cluster.ledger() };
    provider.order("a");
    provider.cancel("a");
    provider.order("a");
    provider.order("b");
    assert_eq!(provider.ledger.effects(), ["order of a", "order of b"]);
}

/// Without its indentation, so that a page may show a part of a function.
fn lines(text: &str) -> Vec<&str> {
    text.lines().map(str::trim).filter(|line| !line.is_empty()).collect()
}

/// The pages that show code of this file, with how many pieces at least.
const PAGES: [(&str, &str, usize); 2] = [
    ("docs/testing.md", include_str!("../../../../docs/testing.md"), 6),
    ("docs/faults.md", include_str!("../../../../docs/faults.md"), 3),
];

#[test]
fn the_guide_shows_what_is_run_here() {
    let run = [lines(include_str!("guide.rs")), lines(include_str!("copier.rs"))].concat();
    for (page, text, least) in PAGES {
        let blocks: Vec<_> =
            text.split("```rust\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
        assert!(blocks.len() >= least, "{page}: {}", blocks.len());
        for block in blocks {
            let shown = lines(block);
            let is_there = run.windows(shown.len()).any(|window| window == shown);
            assert!(is_there, "{page} shows what is not run:\n{block}");
        }
    }
}

#[test]
fn the_guide_names_every_fault() {
    let (_, page, _) = PAGES[1];
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
    assert_eq!(rows.collect::<Vec<_>>(), FaultKind::ALL.map(FaultKind::name));
}
