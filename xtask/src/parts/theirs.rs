//! The real kube-controller-manager, kube-scheduler and kwok on Kubewright's API server.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, Result, bail};

use super::{Credentials, Programs, kubectl, port, ready};
use crate::{kubectl::eventually, running::Running};

/// A node as kwok wants it; what it is capable of is what the conversations count on.
const NODE: &str = r#"{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "NAME", "labels": {
    "kubernetes.io/hostname": "NAME", "kubernetes.io/os": "linux", "type": "kwok"}}, "status": {
    "allocatable": {"cpu": "32", "memory": "256Gi", "pods": "110"}, "capacity": {"cpu": "32", "memory": "256Gi", "pods": "110"}}}"#;

/// An API server of ours that keeps its cluster in a folder, with nothing that acts; and its kubeconfig.
pub(super) struct Up {
    running: Running,
    pub(super) kubeconfig: PathBuf,
}

/// Starts one.
pub(super) fn up(kubewright: &Path, release: &str, folder: &Path, data: &Path) -> Result<Up> {
    let (kubeconfig, log) = (folder.join("up.kubeconfig"), folder.join("up.log"));
    let mut command = Command::new(kubewright);
    command.args(["up", "--port", "0", "--nodes", "0", "--controllers", "", "--kubernetes-version", release]);
    command.arg("--data").arg(data).arg("--kubeconfig").arg(&kubeconfig);
    let mut running = Running::start(&mut command, &log)?;
    eventually("Kubewright serves", || {
        running.check()?;
        Ok(running.log()?.contains("kubeconfig written").then_some(()))
    })?;
    Ok(Up { running, kubeconfig })
}

/// Starts all, and lets `hold` hold conversations.
pub(super) fn on_ours(
    programs: &Programs,
    kubewright: &Path,
    folder: &Path,
    hold: impl FnOnce(&Path) -> Result<()>,
) -> Result<()> {
    let Some(stages) = programs.stages() else {
        bail!("kwok's stages cannot be had: there is no Go, or not its module")
    };
    let data = folder.join("data");
    let mut api = up(kubewright, programs.release, folder, &data)?;
    let (kubeconfig, credentials) = (&api.kubeconfig, Credentials::of(&data));
    let mut manager = program(programs, "kube-controller-manager", kubeconfig, folder)?;
    manager.arg("--service-account-private-key-file").arg(credentials.file("sa.key"));
    manager.arg("--root-ca-file").arg(credentials.file("ca.crt"));
    manager.arg("--cluster-signing-cert-file").arg(credentials.file("ca.crt"));
    manager.arg("--cluster-signing-key-file").arg(credentials.file("ca.key"));
    manager.args([
        "--use-service-account-credentials=true",
        "--service-cluster-ip-range=10.0.0.0/24",
        "--controllers=*",
    ]);
    let mut manager = Running::start(&mut manager, &folder.join("kube-controller-manager.log"))?;
    let mut scheduler = program(programs, "kube-scheduler", kubeconfig, folder)?;
    let mut scheduler = Running::start(&mut scheduler, &folder.join("kube-scheduler.log"))?;
    let file = folder.join("stages.yaml");
    fs::write(&file, all_of(&stages)?)?;
    let mut kwok = Command::new(programs.path("kwok"));
    kwok.arg("--config").arg(&file).arg("--kubeconfig").arg(kubeconfig);
    kwok.args(["--manage-all-nodes", "--cidr", "10.244.0.0/16", "--node-ip", "10.254.0.1"]);
    kwok.args(["--node-lease-duration-seconds", "40", "--server-address", &format!("127.0.0.1:{}", port()?)]);
    let mut kwok = Running::start(&mut kwok, &folder.join("kwok.log"))?;
    for name in ["node-0", "node-1"] {
        create(programs, kubeconfig, &NODE.replace("NAME", name))?;
    }
    ready(programs, kubeconfig)?;
    hold(kubeconfig)?;
    for (name, running) in
        [("kube-controller-manager", &mut manager), ("kube-scheduler", &mut scheduler), ("kwok", &mut kwok)]
    {
        running.check().with_context(|| name.to_owned())?;
    }
    api.running.end()
}

/// One of the two that take the same flags.
fn program(programs: &Programs, name: &str, kubeconfig: &Path, folder: &Path) -> Result<Command> {
    let mut command = Command::new(programs.path(name));
    command.arg("--kubeconfig").arg(kubeconfig).args(["--bind-address=127.0.0.1", "--leader-elect=false"]);
    command
        .arg(format!("--secure-port={}", port()?))
        .arg("--cert-dir")
        .arg(folder.join(format!("{name}-certificates")));
    Ok(command)
}

/// The stages by which nodes and pods become ready at once, in one file.
fn all_of(stages: &Path) -> Result<String> {
    let mut all = String::new();
    for part in ["node/fast", "node/heartbeat-with-lease", "pod/fast"] {
        let mut files = Vec::new();
        for entry in fs::read_dir(stages.join(part))? {
            files.push(entry?.path());
        }
        files.sort();
        let is_stage = |path: &&PathBuf| {
            path.extension().is_some_and(|extension| extension == "yaml")
                && path.file_name().is_some_and(|name| name != "kustomization.yaml")
        };
        for file in files.iter().filter(is_stage) {
            all += "---\n";
            all += &fs::read_to_string(file)?;
        }
    }
    Ok(all)
}

fn create(programs: &Programs, kubeconfig: &Path, object: &str) -> Result<()> {
    let mut command = kubectl(programs, kubeconfig);
    let mut child = command.args(["create", "-f", "-"]).stdin(Stdio::piped()).spawn()?;
    std::io::Write::write_all(&mut child.stdin.take().context("its input is piped")?, object.as_bytes())?;
    if child.wait()?.success() { Ok(()) } else { bail!("kubectl create failed") }
}
