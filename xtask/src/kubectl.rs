//! kubectl, on one cluster.

use std::{
    path::{Path, PathBuf},
    process::Command,
    thread,
    time::Duration,
};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::tools;

/// How long a cluster may take for something that takes moments.
const PATIENCE: Duration = Duration::from_secs(90);
/// How long between two looks.
const PAUSE: Duration = Duration::from_millis(250);

/// Waits a while: the cluster is another program, and time is the machine's.
#[expect(clippy::disallowed_methods, reason = "another process is waited for")]
pub(crate) fn wait(time: Duration) {
    thread::sleep(time);
}

/// Looks again and again until there is something.
///
/// # Errors
/// When there is nothing for too long, or a look fails.
pub(crate) fn eventually<T>(what: &str, mut look: impl FnMut() -> Result<Option<T>>) -> Result<T> {
    let mut waited = Duration::ZERO;
    loop {
        if let Some(found) = look()? {
            return Ok(found);
        }
        if waited > PATIENCE {
            bail!("not within {PATIENCE:?}: {what}");
        }
        wait(PAUSE);
        waited += PAUSE;
    }
}

/// A kubectl with a kubeconfig.
pub(crate) struct Kubectl {
    program: PathBuf,
    kubeconfig: PathBuf,
}

/// The same in a namespace.
pub(crate) struct Inside<'a> {
    kubectl: &'a Kubectl,
    namespace: &'a str,
}

impl Kubectl {
    pub(crate) fn new(kubeconfig: &Path) -> Result<Self> {
        let program = tools::kubectl().map_err(anyhow::Error::msg)?;
        let kubeconfig = kubeconfig.canonicalize().with_context(|| kubeconfig.display().to_string())?;
        Ok(Self { program, kubeconfig })
    }

    /// Which cluster.
    pub(crate) fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// What it wrote to standard output.
    ///
    /// # Errors
    /// When it fails; with what it said.
    pub(crate) fn run(&self, arguments: &[&str]) -> Result<String> {
        let mut command = Command::new(&self.program);
        let output = command.args(arguments).env("KUBECONFIG", &self.kubeconfig).output()?;
        if !output.status.success() {
            bail!("kubectl {}: {}", arguments.join(" "), String::from_utf8_lossy(&output.stderr).trim());
        }
        Ok(String::from_utf8(output.stdout)?)
    }

    /// What it wrote to standard output, whether it succeeds or not.
    ///
    /// # Errors
    /// When it cannot be started.
    pub(crate) fn said(&self, arguments: &[&str]) -> Result<String> {
        let output =
            Command::new(&self.program).args(arguments).env("KUBECONFIG", &self.kubeconfig).output()?;
        Ok(String::from_utf8(output.stdout)?)
    }

    pub(crate) fn inside<'a>(&'a self, namespace: &'a str) -> Inside<'a> {
        Inside { kubectl: self, namespace }
    }

    /// The version of the API server.
    pub(crate) fn version(&self) -> Result<String> {
        let version: Value = serde_json::from_str(&self.run(&["get", "--raw", "/version"])?)?;
        Ok(version["gitVersion"].as_str().context("it has a version")?.to_owned())
    }

    /// The date, as the API server knows it.
    pub(crate) fn today(&self) -> Result<String> {
        let asked = ["create", "namespace", "kubewright-today", "--dry-run=server", "-o"];
        let time = self.run(&[&asked[..], &["jsonpath={.metadata.creationTimestamp}"]].concat())?;
        Ok(time.chars().take(10).collect())
    }

    /// A kubeconfig with a token of a service account.
    pub(crate) fn config_of(&self, namespace: &str, account: &str) -> Result<Value> {
        let mut config: Value = serde_json::from_str(&self.run(&[
            "config",
            "view",
            "--raw",
            "--minify",
            "--flatten",
            "-o",
            "json",
        ])?)?;
        let token = self.run(&["create", "token", account, "--namespace", namespace])?;
        let user = config["contexts"][0]["context"]["user"].clone();
        config["users"] = json!([{"name": user, "user": {"token": token.trim()}}]);
        config["contexts"][0]["context"]["namespace"] = json!(namespace);
        Ok(config)
    }
}

impl Inside<'_> {
    /// As [`Kubectl::run`].
    pub(crate) fn run(&self, arguments: &[&str]) -> Result<String> {
        self.kubectl.run(&[arguments, &["--namespace", self.namespace]].concat())
    }

    /// The objects of some resources (with commas).
    pub(crate) fn all(&self, resources: &str) -> Result<Vec<Value>> {
        let list: Value = serde_json::from_str(&self.run(&["get", resources, "-o", "json"])?)?;
        Ok(list["items"].as_array().cloned().unwrap_or_default())
    }
}
