//! From an empty folder to a sample that is healed: five commands of a user, each timed, compiling apart.

use std::{
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};

use crate::{
    kubectl::{Kubectl, eventually},
    run::{cargo, run, target, workspace},
    running::Running,
};

const SAMPLE: &str = "config/samples/police_v1beta1_whitelist.yaml";
const CHILD: &str = "whitelist-sample-deployment";

/// The folder of the project, removed at its end; what cargo builds of it stays.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Does it once, and prints how long each step took.
///
/// # Errors
/// When a command fails, or the sample is not healed.
pub(super) fn project() -> Result<()> {
    run(&mut cargo(["build", "--release", "--package", "kubewright-cli"]))?;
    let folder = Folder(std::env::temp_dir().join(format!("whitelist-{}", std::process::id())));
    fs::create_dir_all(&folder.0)?;
    let sdk = workspace().join("crates/kubewright").display().to_string();
    let kubewright = |arguments: &[&str]| {
        let mut command = Command::new(target().join("release/kubewright"));
        // What is compiled once is not compiled for the next measurement.
        command.env("CARGO_TARGET_DIR", target().join("bench/project"));
        command.args(arguments).current_dir(&folder.0).stdin(Stdio::null());
        command
    };
    let init = ["init", "--domain", "foo.bar", "--project-name", "whitelist", "--sdk", &sdk];
    timed("kubewright init", || done(&mut kubewright(&init)))?;
    let create = ["create", "api", "--group", "police", "--version", "v1beta1", "--kind", "WhiteList"];
    timed("kubewright create api", || done(&mut kubewright(&create)))?;
    let mut build = cargo(["build"]);
    build.env("CARGO_TARGET_DIR", target().join("bench/project")).current_dir(&folder.0);
    timed("(what `run` compiles, with cargo)", || done(&mut build))?;
    let log = folder.0.join("run.log");
    let mut running = timed("kubewright run", || started(kubewright(&["run"]), &log))?;
    let kubectl = Kubectl::new(&folder.0.join("kubewright.kubeconfig"))?;
    let sample = folder.0.join(SAMPLE).display().to_string();
    timed("kubectl apply, until its Deployment is available", || {
        kubectl.run(&["apply", "--validate=strict", "-f", &sample])?;
        available(&kubectl, None).map(drop)
    })?;
    let first = available(&kubectl, None)?;
    timed("kubectl delete deployment, until another is available", || {
        kubectl.run(&["delete", "deployment", CHILD])?;
        available(&kubectl, Some(&first)).map(drop)
    })?;
    running.end()
}

#[expect(clippy::disallowed_methods, reason = "what a user waits for is measured")]
fn timed<T>(what: &str, work: impl FnOnce() -> Result<T>) -> Result<T> {
    let begun = Instant::now();
    let done = work().with_context(|| what.to_owned())?;
    writeln!(io::stdout(), "{what:<56}{:>9.2} s", begun.elapsed().as_secs_f64())?;
    Ok(done)
}

/// Runs it to its end; what it says is shown when it fails.
fn done(command: &mut Command) -> Result<()> {
    let output = command.output()?;
    match output.status.success() {
        true => Ok(()),
        false => bail!("{}", String::from_utf8_lossy(&output.stderr).trim()),
    }
}

/// Starts `kubewright run`, and waits until it says that the operator runs.
fn started(mut command: Command, log: &Path) -> Result<Running> {
    let mut running = Running::start(&mut command, log)?;
    while !running.log()?.contains("Ctrl-C ends it") {
        running.check()?;
        crate::kubectl::wait(Duration::from_millis(5));
    }
    Ok(running)
}

/// The uid of the sample's Deployment, once there is one that is available and not this one.
fn available(kubectl: &Kubectl, but: Option<&str>) -> Result<String> {
    let columns = "jsonpath={.metadata.uid} {.status.availableReplicas}";
    eventually("its Deployment is available", || {
        let told = kubectl.run(&["get", "deployment", CHILD, "--ignore-not-found", "-o", columns])?;
        let (uid, available) = told.trim().split_once(' ').unwrap_or_default();
        Ok((available == "1" && Some(uid) != but).then(|| uid.to_owned()))
    })
}
