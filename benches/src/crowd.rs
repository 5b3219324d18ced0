//! kwok's own gates: 5,000 nodes that become Ready, 10,000 pods that become Running, and their end.

use std::path::Path;
use std::time::Duration;

use anyhow::{Result, bail};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{DeleteParams, ListParams, PostParams};
use kube::{Api, Client};
use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use crate::figures::{Figures, Row};
use crate::process::Server;
use crate::workload;

const NODES: usize = 5_000;
const PODS: usize = 10_000;
/// How many pods are created at the same time.
const CREATORS: usize = 16;
/// kwok asks a real control plane for a minute.
const PATIENCE: Duration = Duration::from_secs(300);
const PAUSE: Duration = Duration::from_millis(100);

/// Measures it once, on a server of its own.
///
/// # Errors
/// When the server does not start, refuses something, or takes longer than five minutes.
pub(crate) async fn measure(kubewright: &Path, kubeconfig: &Path) -> Result<Vec<Row>> {
    let count = NODES.to_string();
    let server = Server::kubewright(kubewright, kubeconfig.to_owned(), &["--nodes", &count]);
    let started = Instant::now();
    let (running, _) = server.start().await?;
    let nodes = Api::<Node>::all(running.client.clone());
    wait(|| async {
        Ok(nodes.list(&ListParams::default()).await?.iter().filter(|node| is_ready(node)).count() == NODES)
    })
    .await?;
    let ready = started.elapsed();

    workload::settle(&running.client).await?;
    let pods = Api::<Pod>::default_namespaced(running.client.clone());
    let started = Instant::now();
    create(&running.client, PODS).await?;
    let created = started.elapsed();
    let waiting = ListParams::default().fields("status.phase!=Running").limit(1);
    wait(|| async { Ok(pods.list(&waiting).await?.items.is_empty()) }).await?;
    let run = started.elapsed();
    let memory = running.resident_bytes();

    let started = Instant::now();
    pods.delete_collection(&DeleteParams::default(), &ListParams::default()).await?;
    wait(|| async { Ok(pods.list(&ListParams::default().limit(1)).await?.items.is_empty()) }).await?;
    let ended = started.elapsed();
    running.stop();

    let one = |figure: f64| {
        let mut figures = Figures::default();
        figures.add(figure);
        figures
    };
    let row = |what: &str, unit: &str, goal: Option<f64>, figure: f64| {
        Row::new(what, unit, goal, &one(figure), &Figures::default())
    };
    let mut rows = vec![
        row("exec to 5,000 nodes Ready", "s", Some(60.0), ready.as_secs_f64()),
        row("10,000 pods created", "s", None, created.as_secs_f64()),
        row("10,000 pods created and Running", "s", Some(6.0), run.as_secs_f64()),
        row("10,000 pods deleted", "s", Some(60.0), ended.as_secs_f64()),
    ];
    if let Some(bytes) = memory {
        rows.push(row("resident memory with them", "MiB", Some(500.0), bytes as f64 / f64::from(1 << 20)));
    }
    Ok(rows)
}

fn is_ready(node: &Node) -> bool {
    let conditions = node.status.as_ref().and_then(|status| status.conditions.as_deref()).unwrap_or_default();
    conditions.iter().any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

/// Creates so many Pods.
pub(crate) async fn create(client: &Client, count: usize) -> Result<()> {
    let mut creators = JoinSet::new();
    for creator in 0..CREATORS {
        let pods = Api::<Pod>::default_namespaced(client.clone());
        creators.spawn(async move {
            for index in (creator..count).step_by(CREATORS) {
                let pod = json!({"metadata": {"name": format!("pod-{index}"), "labels": {"app": "crowd"}},
                    "spec": {"containers": [{"name": "c", "image": "web:1"}]}});
                pods.create(&PostParams::default(), &kubewright_objects::from_value(pod)?).await?;
            }
            anyhow::Ok(())
        });
    }
    while let Some(done) = creators.join_next().await {
        done??;
    }
    Ok(())
}

/// Waits until something is so.
pub(crate) async fn wait<F: Future<Output = Result<bool>>>(mut is_done: impl FnMut() -> F) -> Result<()> {
    let started = Instant::now();
    while !is_done().await? {
        if started.elapsed() > PATIENCE {
            bail!("not done after {} s", PATIENCE.as_secs());
        }
        sleep(PAUSE).await;
    }
    Ok(())
}
