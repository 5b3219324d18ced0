//! Time in the test's hand.

use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::core::ObjectMeta;
use kubewright::testing::Cluster;
use serde_json::json;
use tokio::time::Instant;

const HOUR: Duration = Duration::from_hours(1);

fn config_map(name: &str) -> ConfigMap {
    ConfigMap {
        metadata: ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() },
        ..ConfigMap::default()
    }
}

/// Creates a ConfigMap after so long.
fn create_after(cluster: &Cluster, delay: Duration) {
    let cluster = cluster.clone();
    tokio::spawn(async move {
        tokio::time::sleep(delay).await;
        cluster.create(&config_map("late")).await;
    });
}

#[kubewright::test]
async fn what_is_due_at_the_end_of_an_advance_has_happened(cluster: Cluster) {
    let before = cluster.world().clock.now();
    create_after(&cluster, HOUR);
    cluster.advance(HOUR - Duration::from_millis(2)).await;
    assert!(!cluster.exists::<ConfigMap>("late").await);
    cluster.advance(Duration::from_millis(2)).await;
    assert!(cluster.exists::<ConfigMap>("late").await);
    assert!(cluster.world().clock.now().duration_since(before) >= jiff::SignedDuration::from_hours(1));
}

#[kubewright::test]
async fn a_condition_is_seen_to_hold_when_it_is_written(cluster: Cluster) {
    let start = Instant::now();
    create_after(&cluster, HOUR);
    let found = cluster
        .run_until(async |cluster: Cluster| cluster.try_get::<ConfigMap>("late").await, HOUR * 2)
        .await;
    assert_eq!(found.metadata.name.as_deref(), Some("late"));
    assert_eq!(start.elapsed().as_secs(), 3600);
    assert!(start.elapsed() < HOUR + Duration::from_millis(5), "{:?}", start.elapsed());
}

#[kubewright::test]
async fn a_condition_that_is_no_write_is_seen_soon(cluster: Cluster) {
    let start = Instant::now();
    cluster.eventually(async |_| start.elapsed() >= Duration::from_secs(30)).await;
    assert!(start.elapsed() < Duration::from_secs(31), "{:?}", start.elapsed());
}

#[kubewright::test]
async fn what_holds_all_the_while_is_looked_at_to_the_end(cluster: Cluster) {
    let start = Instant::now();
    cluster.consistently(async |cluster: Cluster| cluster.list::<ConfigMap>().await.len() < 2, HOUR).await;
    assert_eq!(start.elapsed(), HOUR);
}

#[kubewright::test]
async fn a_cluster_has_settled_when_its_deployment_is_rolled_out(cluster: Cluster) {
    let web: Deployment = kubewright_objects::from_value(json!({
        "metadata": {"name": "web"},
        "spec": {
            "replicas": 3,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "web", "image": "nginx"}]},
            },
        },
    }))
    .expect("a Deployment");
    cluster.create(&web).await;
    cluster.settle().await;
    assert_eq!(
        cluster.get::<Deployment>("web").await.status.and_then(|status| status.ready_replicas),
        Some(3)
    );
    assert!(cluster.condition::<Deployment>("web", "Available").await.is_some_and(|found| found.is_true()));
    assert_eq!(cluster.condition::<Deployment>("web", "Rainy").await, None);
}

#[kubewright::test]
async fn settling_takes_a_second_when_there_is_no_work(cluster: Cluster) {
    cluster.settle().await;
    let start = Instant::now();
    cluster.settle().await;
    assert!(start.elapsed() <= Duration::from_millis(1002), "{:?}", start.elapsed());
}

#[kubewright::test(seeds = 2)]
async fn a_stable_snapshot_is_the_same_under_every_seed(cluster: Cluster) {
    cluster.create(&config_map("a")).await;
    let text = cluster.snapshot("default").stable().to_string();
    let of_a = text.split("---\n").find(|text| text.contains("name: a\n")).expect("it is there");
    assert_eq!(
        of_a,
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  creationTimestamp: time\n  name: a\n  namespace: default\n  uid: uid-1\n"
    );
    assert!(cluster.snapshot("default").to_string().contains("resourceVersion"));
}
