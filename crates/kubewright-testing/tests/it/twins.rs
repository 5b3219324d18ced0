//! The same seed is the same run, in another process too.

use std::process::Command;
use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Pod, Secret};
use kubewright::testing::Cluster;
use kubewright::testing::harness::{Faults, Seeds, Test, run};
use serde_json::json;

use crate::mutants::{LEDGER, operator, page};

/// The variable by which this program knows that it is a twin, and of which seed.
const TWIN: &str = "KUBEWRIGHT_TWIN";
const NAME: &str = "the_same_seed_writes_the_same_bytes_in_another_process";

/// A bit of everything: workloads on nodes, tokens, certificates' keys, an operator, faults.
async fn scenario(cluster: Cluster) {
    let operator = cluster.run(|| operator(None)).replicas(2).await;
    let account = json!({"kubernetes.io/service-account.name": "default"});
    let token = json!({"metadata": {"name": "token", "annotations": account}, "type": "kubernetes.io/service-account-token"});
    cluster.create::<Secret>(&kubewright_objects::from_value(token).expect("a Secret")).await;
    let container = json!({"name": "web", "image": "web"});
    let template = json!({"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container]}});
    let selector = json!({"matchLabels": {"app": "web"}});
    let spec = json!({"replicas": 3, "selector": selector, "template": template});
    let web = json!({"metadata": {"name": "web"}, "spec": spec});
    cluster.create::<Deployment>(&kubewright_objects::from_value(web).expect("a Deployment")).await;
    cluster.create(&page("a", "one")).await;
    cluster.settle().await;
    operator.crash_leader().await;
    operator.restart().await;
    cluster.delete::<Deployment>("web").await;
    cluster.advance(Duration::from_mins(2)).await;
    cluster.settle().await;
    assert!(cluster.list::<Pod>().await.is_empty());
    print_digest(&cluster.recording().expect("all of it").digest());
}

#[expect(clippy::print_stdout, reason = "it is what the other process reads")]
fn print_digest(digest: &str) {
    println!("digest={digest}");
}

/// What a process of its own says that it has written under a seed.
fn twin(seed: u64) -> String {
    let program = std::env::current_exe().expect("this program");
    let test = format!("twins::{NAME}");
    let output =
        Command::new(program).args([&test, "--exact", "--nocapture"]).env(TWIN, seed.to_string()).output();
    let output = output.expect("it ran");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let digest = text.lines().find_map(|line| line.split("digest=").nth(1));
    digest.unwrap_or_else(|| panic!("{text}\n{}", String::from_utf8_lossy(&output.stderr))).to_owned()
}

#[test]
fn the_same_seed_writes_the_same_bytes_in_another_process() {
    if let Ok(seed) = std::env::var(TWIN) {
        let test = Test {
            package: env!("CARGO_PKG_NAME"),
            module: module_path!(),
            name: NAME,
            controllers: "*",
            kubernetes: None,
            nodes: 2,
            namespaces: &["press", LEDGER],
            seeds: Seeds::One(seed.parse().expect("a number")),
            faults: Faults::All,
        };
        return run(&test, scenario);
    }
    for seed in [7, 8] {
        assert_eq!(twin(seed), twin(seed), "seed {seed}");
    }
    assert_ne!(twin(7), twin(8));
}
