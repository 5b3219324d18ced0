//! What a test that fails says.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kubewright::testing::Cluster;
use kubewright::testing::harness::{self, Faults, Seeds, Termination, Test};
use serde_json::json;

use crate::copier::{self, secret};

const TEST: Test = Test {
    package: "kubewright-testing",
    module: "it::failures",
    name: "it",
    controllers: "",
    kubernetes: None,
    nodes: 0,
    namespaces: &[],
    seeds: Seeds::One(0),
    faults: Faults::None,
};

/// What a test says that fails.
fn failure<F: Future<Output: Termination>>(test: Test, body: impl Fn(Cluster) -> F + Sync) -> String {
    let panic = catch_unwind(AssertUnwindSafe(|| harness::run(&test, body))).expect_err("it fails");
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned())).expect("a text")
}

#[test]
fn what_is_not_there_is_told_with_who_deleted_it() {
    let text = failure(TEST, async |cluster: Cluster| {
        cluster.create(&secret("a", &["key"])).await;
        cluster.patch::<Secret>("a", json!({"metadata": {"labels": {"new": "label"}}})).await;
        cluster.advance(Duration::from_hours(1)).await;
        cluster.delete::<Secret>("a").await;
        cluster.get::<Secret>("a").await;
    });
    assert!(text.starts_with("there is no Secret a\n\nSecret default/a: who wrote it\n"), "{text}");
    for line in [
        "  2026-01-01T00:00:00.000Z  create by kubernetes-admin\n      it came\n",
        "patch by kubernetes-admin\n      metadata.labels: (none) -> {\"new\":\"label\"}\n",
        "  2026-01-01T01:00:00.001Z  delete by kubernetes-admin\n      it went\n",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
}

#[test]
fn what_does_not_come_to_hold_is_told_with_what_it_looked_at() {
    let text = failure(TEST, async |cluster: Cluster| {
        cluster.run(copier::operator()).await;
        cluster.create(&secret("a", &["key"])).await;
        let has_both = async |cluster: Cluster| {
            let copy = cluster.try_get::<ConfigMap>("a").await.ok_or("there is no copy")?;
            copy.data.filter(|data| data.len() == 2).ok_or("it has not two keys")
        };
        cluster.eventually(has_both).await;
    });
    assert!(text.contains("tests/it/failures.rs:"), "{text}");
    assert!(
        text.contains("not within 60s: it has not two keys\n\nConfigMap default/a: who wrote it\n"),
        "{text}"
    );
    assert!(text.contains("patch by copier/1.0 as system:serviceaccount:copier-system:copier\n"), "{text}");
}

#[test]
fn waiting_for_what_never_comes_ends_when_an_operator_asks_without_a_pause() {
    let text = failure(Test { faults: Faults::Only(&[]), ..TEST }, async |cluster: Cluster| {
        cluster.run(copier::restless()).await;
        cluster.create(&secret("a", &["key"])).await;
        cluster.run_until(async |_| false, Duration::from_hours(10_000)).await;
    });
    assert!(text.starts_with("no hot loop: restless/1.0 asks without a pause: get secrets"), "{text}");
}

#[test]
fn what_does_not_hold_all_the_while_is_told_with_how_long_it_did() {
    let text = failure(TEST, async |cluster: Cluster| {
        let start = tokio::time::Instant::now();
        cluster.consistently(async |_| start.elapsed().as_secs() < 40, Duration::from_mins(1)).await;
    });
    assert!(text.contains("not for 60s, but for 40."), "{text}");
}

#[test]
fn a_panic_in_an_operator_fails_the_test() {
    let text = failure(TEST, async |cluster: Cluster| {
        cluster.run(copier::operator()).await;
        cluster.create(&secret("a", &["panic"])).await;
        cluster.settle().await;
    });
    let controller = "the operator copier fails again and again: controller copier, default/a: ";
    assert_eq!(text, format!("{controller}the reconcile panicked: there is a key that nobody expected"));
}

#[test]
fn a_panic_that_comes_once_fails_the_test() {
    let text = failure(TEST, async |cluster: Cluster| {
        cluster.run(copier::operator()).await;
        cluster.create(&secret("a", &["panic"])).await;
        cluster.advance(Duration::from_millis(1)).await;
        cluster.delete::<Secret>("a").await;
        cluster.settle().await;
    });
    assert!(text.starts_with("a task panicked while the test ran:\n"), "{text}");
    assert!(text.contains("there is a key that nobody expected"), "{text}");
}

#[test]
fn a_right_that_is_missing_fails_the_test_with_what_to_add() {
    let text = failure(TEST, async |cluster: Cluster| {
        cluster.run(copier::without_rights()).await;
        cluster.create(&secret("a", &["key"])).await;
        cluster.settle().await;
    });
    assert!(text.starts_with("the operator copier: these rights are missing:\n"), "{text}");
    assert!(text.contains("configmaps patch") && !text.contains("never used"), "{text}");
}

#[test]
fn an_error_that_the_body_returns_fails_the_test() {
    let text = failure(TEST, async |_| Err::<(), _>("no luck"));
    assert_eq!(text, "the test returned an error: \"no luck\"");
}

#[test]
fn a_cluster_that_does_not_come_to_rest_is_told_with_who_writes() {
    let text = failure(TEST, async |cluster: Cluster| {
        let writer = cluster.clone();
        cluster.create(&secret("a", &["key"])).await;
        tokio::spawn(async move {
            for number in 0.. {
                writer.patch::<Secret>("a", json!({"metadata": {"labels": {"n": number.to_string()}}})).await;
                tokio::time::sleep(Duration::from_millis(900)).await;
            }
        });
        cluster.settle().await;
    });
    assert!(text.starts_with("the cluster does not come to rest within 600s\n"), "{text}");
    assert!(text.contains("writes of /secrets default/a by kubernetes-admin"), "{text}");
}

#[test]
fn the_first_seed_that_fails_is_told_each_time() {
    let test = Test { seeds: Seeds::First(100), ..TEST };
    let why = || {
        failure(test, async |cluster: Cluster| {
            let uid = cluster.create(&secret("a", &["key"])).await.metadata.uid.expect("an uid");
            assert!(!uid.starts_with('a'), "{uid}");
        })
    };
    let first = why();
    assert!(first.starts_with('a'), "{first}");
    assert_eq!(first, why());
}
