//! The program that is rendered, as a process of this machine.

use std::{
    ffi::OsString,
    fs::File,
    io::{Read, Seek},
    path::Path,
    process::Stdio,
    time::Duration,
};

use anyhow::{Context, anyhow};
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::Value;
use tokio::process::{Child, Command};

use crate::{project::Program, run::webhooks};

/// How long a program may take to end before it is killed.
const LAST: Duration = Duration::from_secs(5);
/// How much of what a program printed is told when it failed.
const TAIL: usize = 2000;

/// How a program is started.
pub(super) struct OperatorCommand {
    words: Vec<OsString>,
    /// Whether it is an operator of the SDK, which takes the kubeconfig as a flag.
    is_of_sdk: bool,
}

impl OperatorCommand {
    /// A program with its arguments.
    pub(super) fn foreign(program: &str, arguments: &[String]) -> Self {
        let words = std::iter::once(program.into()).chain(arguments.iter().map(Into::into));
        Self { words: words.collect(), is_of_sdk: false }
    }

    /// A line that a shell reads.
    pub(super) fn shell(line: &str) -> Self {
        Self { words: ["sh", "-c", line].map(OsString::from).to_vec(), is_of_sdk: false }
    }

    /// The program of a project, with the objects that it says it needs.
    pub(super) fn of_project(program: &Program, needed: &[Value]) -> Self {
        let words = [program.path().as_os_str().to_owned(), "run".into()].into_iter();
        Self { words: words.chain(webhooks::off(needed)).collect(), is_of_sdk: true }
    }

    /// Starts it in a process group of its own, with the kubeconfig of its account.
    pub(super) fn start(&self, kubeconfig: &Path, shows_logs: bool) -> anyhow::Result<Running> {
        let (program, arguments) = self.words.split_first().context("program: there is none")?;
        let mut command = Command::new(program);
        command.args(arguments);
        if self.is_of_sdk {
            command.arg("--kubeconfig").arg(kubeconfig);
        }
        command.env("KUBECONFIG", kubeconfig).env("ENABLE_WEBHOOKS", "false");
        for variable in ["KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"] {
            command.env_remove(variable);
        }
        let log = if shows_logs { None } else { Some(log_file()?) };
        let output = || match &log {
            Some(file) => file.try_clone().map(Stdio::from),
            None => rustix::io::dup(std::io::stderr()).map(Stdio::from).map_err(Into::into),
        };
        command.stdin(Stdio::null()).stdout(output()?).stderr(output()?).process_group(0).kill_on_drop(true);
        let child = command.spawn();
        let child = child.with_context(|| format!("program {} cannot be run", program.display()))?;
        Ok(Running { child, log })
    }
}

/// A file for what a program prints, which is gone with its last handle.
fn log_file() -> anyhow::Result<File> {
    let path = std::env::temp_dir().join(format!("kubewright-render-{}.log", std::process::id()));
    let _ = std::fs::remove_file(&path);
    let mut options = File::options();
    options.read(true).write(true).create_new(true);
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(&path).with_context(|| format!("cannot write {}", path.display()))?;
    std::fs::remove_file(&path)?;
    Ok(file)
}

/// A program that runs; it is killed when this is dropped.
pub(super) struct Running {
    child: Child,
    log: Option<File>,
}

impl Running {
    /// Waits until it ends, and says how: it is not to.
    pub(super) async fn ended(&mut self) -> anyhow::Error {
        match self.child.wait().await {
            Ok(status) => anyhow!("program ended ({status}) before it was at rest{}", self.tail()),
            Err(error) => error.into(),
        }
    }

    /// What it printed last, on lines of its own.
    pub(super) fn tail(&mut self) -> String {
        let mut text = Vec::new();
        if let Some(log) = &mut self.log {
            let _ = log.rewind().and_then(|()| log.take(1 << 22).read_to_end(&mut text));
        }
        let text = String::from_utf8_lossy(&text);
        let text = text.trim_end();
        let mut start = text.len().saturating_sub(TAIL);
        while !text.is_char_boundary(start) {
            start += 1;
        }
        if text.is_empty() { String::new() } else { format!("; it said last:\n{}", &text[start..]) }
    }

    /// Asks it and all that it started to end, and kills them if they do not.
    pub(super) async fn stop(mut self) {
        let Some(group) = self.child.id().and_then(|id| Pid::from_raw(id.cast_signed())) else { return };
        let _ = kill_process_group(group, Signal::TERM);
        let _ = tokio::time::timeout(LAST, self.child.wait()).await;
        let _ = kill_process_group(group, Signal::KILL);
    }
}
