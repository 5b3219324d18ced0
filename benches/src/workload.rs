//! What is measured on a server that runs.

use std::time::Duration;

use anyhow::{Context, Result};
use k8s_openapi::api::{apps::v1::Deployment, core::v1::ServiceAccount};
use kube::{
    Api, Client,
    api::{DeleteParams, PostParams},
    runtime::wait::await_condition,
};
use kubewright_cluster::Cluster;
use serde_json::json;
use tokio::time::{Instant, sleep, timeout};

use crate::figures::Figures;

const PATIENCE: Duration = Duration::from_secs(60);
/// How long a server is left alone before its memory is read.
const REST: Duration = Duration::from_secs(1);

/// How long `Cluster::start()` takes in this process, in milliseconds.
///
/// # Errors
/// When it fails.
pub(crate) async fn cluster_starts(runs: u16) -> Result<Figures> {
    let mut figures = Figures::default();
    for _ in 0..runs {
        let started = Instant::now();
        let cluster = Cluster::start().await.context("Cluster::start()")?;
        figures.add(started.elapsed().as_secs_f64() * 1e3);
        drop(cluster);
    }
    Ok(figures)
}

/// Waits until the controllers have done what they do at start.
///
/// # Errors
/// When they do not.
pub(crate) async fn settle(client: &Client) -> Result<()> {
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), "default");
    let there = await_condition(accounts, "default", |account: Option<&ServiceAccount>| account.is_some());
    timeout(PATIENCE, there).await.context("there is no default service account")??;
    sleep(REST).await;
    Ok(())
}

/// How long it takes from creating the Deployment `name` with one pod until it is available. It is deleted then.
///
/// # Errors
/// When it is refused or does not become available.
pub(crate) async fn deployment_available(client: &Client, name: &str) -> Result<Duration> {
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), "default");
    let deployment = kubewright_objects::from_value(json!({
        "metadata": {"name": name},
        "spec": {
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "web", "image": "nginx"}]},
            },
        },
    }))?;
    let started = Instant::now();
    deployments.create(&PostParams::default(), &deployment).await?;
    let available = await_condition(deployments.clone(), name, is_available);
    timeout(PATIENCE, available).await.context("the Deployment is not available")??;
    let took = started.elapsed();
    deployments.delete(name, &DeleteParams::foreground()).await?;
    Ok(took)
}

fn is_available(deployment: Option<&Deployment>) -> bool {
    let status = deployment.and_then(|deployment| deployment.status.as_ref());
    let conditions = status.and_then(|status| status.conditions.as_ref()).into_iter().flatten();
    conditions.into_iter().any(|condition| condition.type_ == "Available" && condition.status == "True")
}
