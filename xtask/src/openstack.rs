//! OpenStack's own servers (`tests/openstack`), for the tests of the SecurityGroup operator.

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::{
    run::{run, target, workspace},
    times::timed,
    tools,
};

/// Servers that run, until this is dropped.
pub(crate) struct OpenStack {
    python: PathBuf,
    /// Where Keystone is.
    pub(crate) url: String,
}

impl OpenStack {
    /// Installs the servers from PyPI, if they are not there, and starts them; or the reason why there are none.
    pub(crate) fn start() -> Result<Self, String> {
        let python = tools::python()?;
        let started = run(&mut lab(&python, "setup")).and_then(|()| up(&python));
        let url = started.map_err(|error| format!("OpenStack's servers cannot be had: {error:#}"))?;
        Ok(Self { python, url })
    }
}

impl OpenStack {
    /// What a service answers to the user demo.
    ///
    /// # Errors
    /// When it refuses.
    pub(crate) fn ask(&self, method: &str, service: &str, path: &str, body: Option<&Value>) -> Result<Value> {
        let mut command = Command::new(&self.python);
        command.arg(workspace().join("tests/openstack/ask.py")).args([method, service, path]);
        command.args(body.map(Value::to_string));
        let output = command.output().context("cannot run ask.py")?;
        if !output.status.success() {
            bail!("{method} {path}: {}", String::from_utf8_lossy(&output.stderr).trim());
        }
        Ok(serde_json::from_slice(&output.stdout)?)
    }
}

impl Drop for OpenStack {
    fn drop(&mut self) {
        if let Err(error) = run(&mut lab(&self.python, "down")) {
            eprintln!("OpenStack's servers may still run: {error:#}");
        }
    }
}

fn up(python: &Path) -> Result<String> {
    let start = || lab(python, "up").stderr(Stdio::inherit()).output();
    let output = timed("lab.py up", start).context("cannot run lab.py")?;
    if !output.status.success() {
        bail!("lab.py up failed ({})", output.status);
    }
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}

fn lab(python: &Path, what: &str) -> Command {
    let mut command = Command::new(python);
    command.arg(workspace().join("tests/openstack/lab.py")).arg(what).arg(target().join("tools/openstack"));
    command
}
