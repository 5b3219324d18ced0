//! A day of a cluster with 5,000 pods, recorded from outside by `kubewright record`: how large it is, and what it takes.

use std::{
    fs::{self, File},
    path::Path,
    process::Command,
    time::Duration,
};

use anyhow::{Context, Result};
use k8s_openapi::api::{apps::v1::Deployment, batch::v1::CronJob, coordination::v1::Lease, core::v1::Node};
use kube::{
    Api, Client,
    api::{ListParams, Patch, PatchParams, PostParams},
};
use serde_json::json;
use tokio::time::{Instant, interval, sleep, sleep_until};

use crate::{
    crowd::wait,
    figures::{Figures, Row},
    process::{Process, Server, cpu_seconds, resident_bytes},
    workload,
};

const NODES: u32 = 50;
const DEPLOYMENTS: u32 = 50;
/// How many pods each has.
const REPLICAS: u32 = 100;
/// Each has a Job every ten minutes.
const CRON_JOBS: u32 = 20;
/// How many Deployments are rolled out anew in an hour: each of the 5,000 pods is replaced once a day.
const ROLLED_OUT: u32 = 3;
const DAY: u32 = 24;
const HOUR: Duration = Duration::from_secs(3600);
/// How often a kubelet renews its lease, and how many of these pass between two reports of its node. Simulated nodes do so once a day.
const RENEWED: Duration = Duration::from_secs(10);
const REPORTED: u32 = 30;
/// How long what has been recorded may take to be in the file.
const WRITTEN: Duration = Duration::from_secs(3);

/// Records `hours` of it, in which the cluster's clock goes `speed` times as fast as that of the machine.
///
/// # Errors
/// When a program does not start, the server refuses something, or the recorder ends before.
pub(crate) async fn measure(kubewright: &Path, folder: &Path, hours: f64, speed: u32) -> Result<Vec<Row>> {
    let (kubeconfig, file) = (folder.join("kubeconfig"), folder.join("day.kwrec"));
    let (nodes, clock) = (NODES.to_string(), format!("2030-01-01T00:00:00Z,speed={speed}"));
    let server = Server::kubewright(kubewright, kubeconfig.clone(), &["--nodes", &nodes, "--clock", &clock]);
    let (running, _) = server.start().await?;
    workload::settle(&running.client).await?;
    fill(&running.client).await?;

    let said = folder.join("said");
    let output = File::create(&said)?;
    let mut record = Command::new(kubewright);
    record.arg("record").arg("--kubeconfig").arg(&kubeconfig).arg(&file);
    record.stdout(output.try_clone()?).stderr(output);
    let recorder = Process::of(record.spawn().context("kubewright record")?);
    wait(|| async { Ok(length(&file) > 0) }).await?;
    sleep(WRITTEN).await;
    let (begun, cpu) = (length(&file), cpu_seconds(recorder.id()).context("the recorder has ended")?);
    let heartbeats = tokio::spawn(heartbeats(running.client.clone(), speed));
    let started = Instant::now();
    let end = started + HOUR.mul_f64(hours / f64::from(speed));
    // One rollout after the other, at the same distance.
    let between = HOUR.div_f64(f64::from(speed) * f64::from(ROLLED_OUT));
    let mut next = 0;
    while started + between * (next + 1) < end {
        sleep_until(started + between * (next + 1)).await;
        roll_out(&running.client, next % DEPLOYMENTS, next).await?;
        next += 1;
    }
    sleep_until(end).await;
    heartbeats.abort();
    if let Ok(failed) = heartbeats.await {
        failed?;
    }
    sleep(WRITTEN).await;
    let cpu = cpu_seconds(recorder.id()).context("the recorder has ended")? - cpu;
    let (memory, written) = (resident_bytes(recorder.id()), length(&file) - begun);
    drop(recorder);
    running.stop();
    let said = fs::read_to_string(&said)?;
    let said = said.lines().last().context("the recorder has said nothing")?;
    eprintln!("{said}");

    let whole = f64::from(DAY) / hours;
    let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    let row = |what: String, unit: &str, figure: f64| {
        let mut figures = Figures::default();
        figures.add(figure);
        Row::new(&what, unit, None, &figures, &Figures::default())
    };
    let of_it = |what: &str| format!("{what} of {hours} hours at {speed} times");
    Ok(vec![
        row("the state at the beginning".to_owned(), "MiB", mib(begun)),
        row(of_it("what is added"), "MiB", mib(written)),
        row("the same for a day".to_owned(), "MiB", mib(written) * whole),
        row(of_it("processor time of the recorder"), "s", cpu),
        row("the same for a day".to_owned(), "s", cpu * whole),
        row("resident memory of the recorder".to_owned(), "MiB", mib(memory.unwrap_or_default())),
    ])
}

/// Makes the Deployments and CronJobs, and waits for their pods.
async fn fill(client: &Client) -> Result<()> {
    let deployments = Api::<Deployment>::default_namespaced(client.clone());
    for number in 0..DEPLOYMENTS {
        let name = format!("web-{number}");
        let deployment = json!({"metadata": {"name": name}, "spec": {
            "replicas": REPLICAS, "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": {"containers": [
                {"name": "web", "image": "registry.example/shop/web:1.27.3", "ports": [{"containerPort": 8080}],
                 "env": [{"name": "LOG_LEVEL", "value": "info"}], "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}},
                 "readinessProbe": {"httpGet": {"path": "/healthz", "port": 8080}}}]}}}});
        deployments.create(&PostParams::default(), &kubewright_objects::from_value(deployment)?).await?;
    }
    let jobs = Api::<CronJob>::default_namespaced(client.clone());
    for number in 0..CRON_JOBS {
        let job = json!({"metadata": {"name": format!("report-{number}")}, "spec": {
            "schedule": format!("{}-59/10 * * * *", number % 10), "jobTemplate": {"spec": {"template": {"spec": {
                "restartPolicy": "Never",
                "containers": [{"name": "report", "image": "busybox:1.36", "command": ["sleep", "20"]}]}}}}}});
        jobs.create(&PostParams::default(), &kubewright_objects::from_value(job)?).await?;
    }
    wait(|| async {
        let all = deployments.list(&ListParams::default()).await?;
        Ok(all.iter().all(|one| {
            one.status.as_ref().and_then(|status| status.available_replicas) == Some(REPLICAS as i32)
        }))
    })
    .await
}

/// Changes the template of a Deployment, so that its pods are replaced.
async fn roll_out(client: &Client, number: u32, version: u32) -> Result<()> {
    let deployments = Api::<Deployment>::default_namespaced(client.clone());
    let patch =
        json!({"spec": {"template": {"metadata": {"annotations": {"version": version.to_string()}}}}});
    deployments.patch(&format!("web-{number}"), &PatchParams::default(), &Patch::Merge(patch)).await?;
    Ok(())
}

/// What kubelets write of their nodes, one after the other, until it is ended.
async fn heartbeats(client: Client, speed: u32) -> Result<()> {
    let leases = Api::<Lease>::namespaced(client.clone(), "kube-node-lease");
    let nodes = Api::<Node>::all(client);
    let mut tick = interval(RENEWED / (speed * NODES));
    for beat in 0.. {
        tick.tick().await;
        let (round, node) = (beat / NODES, format!("node-{}", beat % NODES));
        // Another time with each; it is not compared with any clock.
        let time = |fraction: &str| {
            format!(
                "2030-01-01T{:02}:{:02}:{:02}{fraction}Z",
                round / 360 % 24,
                round / 6 % 60,
                round % 6 * 10
            )
        };
        let renewed = json!({"spec": {"renewTime": time(".123456")}});
        leases.patch(&node, &PatchParams::default(), &Patch::Merge(renewed)).await?;
        if (round + beat % NODES).is_multiple_of(REPORTED) {
            let reported =
                json!({"status": {"conditions": [{"type": "Ready", "lastHeartbeatTime": time("")}]}});
            nodes.patch_status(&node, &PatchParams::default(), &Patch::Strategic(reported)).await?;
        }
    }
    Ok(())
}

fn length(file: &Path) -> u64 {
    fs::metadata(file).map_or(0, |file| file.len())
}
