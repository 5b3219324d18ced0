//! What programs take that cache all Pods: one after the other, beside one `kubewright up` on whose simulated nodes the Pods run.

use std::{
    fs,
    io::{BufRead, BufReader, Write, stdout},
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

use anyhow::{Context, Result, bail};
use k8s_openapi::api::core::v1::Pod;
use kube::{Api, api::ListParams};
use tokio::time::{Instant, sleep};

use crate::{
    crowd,
    process::{Process, Server},
    workload,
};

/// How many Pods a simulated node takes (the kubelet's default).
const PODS_OF_A_NODE: usize = 110;
/// How long a program has from its start until it has reconciled each Pod.
const PATIENCE: Duration = Duration::from_secs(300);
/// How long it is left alone before its memory is read: what it took to list is given back by then.
const REST: Duration = Duration::from_secs(30);

/// Runs each command with `--pods --expect NUMBER`, which says `expected` when it has reconciled so many Pods, and prints what it takes then.
///
/// # Errors
/// When a server or a program does not start, or takes longer than five minutes.
pub(crate) async fn measure(
    kubewright: &Path,
    kubeconfig: &Path,
    pods: usize,
    commands: &[String],
) -> Result<()> {
    let nodes = (pods / PODS_OF_A_NODE + 1).to_string();
    let server = Server::kubewright(kubewright, kubeconfig.to_owned(), &["--nodes", &nodes]);
    let (running, _) = server.start().await?;
    workload::settle(&running.client).await?;
    crowd::create(&running.client, pods).await?;
    let all = Api::<Pod>::default_namespaced(running.client.clone());
    let waiting = ListParams::default().fields("status.phase!=Running").limit(1);
    crowd::wait(|| async { Ok(all.list(&waiting).await?.items.is_empty()) }).await?;
    let mut out = stdout();
    writeln!(out, "{:<10}{:>12}{:>14}  with {pods} Pods", "start", "resident", "anonymous")?;
    for command in commands {
        let (took, resident, anonymous) = of_program(command, kubeconfig, pods).await?;
        let mib = |kibibytes: u64| kibibytes as f64 / 1024.0;
        writeln!(
            out,
            "{:<10}{:>12}{:>14}  {command}",
            format!("{:.2} s", took.as_secs_f64()),
            format!("{:.1} MiB", mib(resident)),
            format!("{:.1} MiB", mib(anonymous)),
        )?;
    }
    running.stop();
    Ok(())
}

#[expect(clippy::disallowed_methods, reason = "another process is waited for, in real time")]
async fn of_program(command: &str, kubeconfig: &Path, pods: usize) -> Result<(Duration, u64, u64)> {
    let started = Instant::now();
    let mut child = Command::new(command)
        .args(["--pods", "--expect", &pods.to_string()])
        .env("KUBECONFIG", kubeconfig)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .with_context(|| format!("cannot start {command}"))?;
    let said = child.stdout.take().context("its output is a pipe")?;
    let process = Process::of(child);
    let expected = tokio::task::spawn_blocking(move || {
        BufReader::new(said).lines().any(|line| line.is_ok_and(|line| line == "expected"))
    });
    match tokio::time::timeout(PATIENCE, expected).await {
        Ok(Ok(true)) => {}
        _ => bail!("{command} has not reconciled each Pod within {PATIENCE:?}"),
    }
    let took = started.elapsed();
    sleep(REST).await;
    let status = fs::read_to_string(format!("/proc/{}/status", process.id()))?;
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        let number = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
        number.with_context(|| format!("/proc tells no {name}"))
    };
    Ok((took, field("VmRSS:")?, field("RssAnon:")?))
}
