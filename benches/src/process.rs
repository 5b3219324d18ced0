//! Servers that are started as processes.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

use anyhow::{Context, Result, bail};
use k8s_openapi::api::core::v1::Namespace;
use kube::{Api, Client, Config, api::ListParams, config::KubeConfigOptions, config::Kubeconfig};
use tokio::time::{Instant, sleep, timeout};

/// A server that does not answer in this time never will.
const PATIENCE: Duration = Duration::from_secs(120);
/// How long between two tries to reach it.
const PAUSE: Duration = Duration::from_millis(1);

/// How a server is started and reached.
pub(crate) struct Server {
    /// The program and its arguments; `None` when the server runs already.
    command: Option<Vec<String>>,
    kubeconfig: PathBuf,
    /// Whether the server writes the kubeconfig, so that an old one is to be removed before.
    writes_kubeconfig: bool,
}

impl Server {
    /// `kubewright up`, with more arguments.
    pub(crate) fn kubewright(program: &Path, kubeconfig: PathBuf, more: &[&str]) -> Self {
        let (program, path) = (program.display().to_string(), kubeconfig.display().to_string());
        let fixed = [&program, "up", "--quiet", "--port", "0", "--kubeconfig", &path];
        let command = fixed.iter().chain(more).map(|word| (*word).to_owned()).collect();
        Self { command: Some(command), kubeconfig, writes_kubeconfig: true }
    }

    pub(crate) fn reference(command: Option<&str>, kubeconfig: PathBuf) -> Self {
        let command = command.map(|text| vec!["sh".to_owned(), "-c".to_owned(), format!("exec {text}")]);
        Self { command, kubeconfig, writes_kubeconfig: false }
    }

    pub(crate) fn is_started_here(&self) -> bool {
        self.command.is_some()
    }

    /// Starts the server; gives it with the time from exec to its first authenticated answer.
    ///
    /// # Errors
    /// When it cannot be started or does not answer.
    pub(crate) async fn start(&self) -> Result<(Running, Duration)> {
        if self.writes_kubeconfig {
            let _ = fs::remove_file(&self.kubeconfig);
        }
        let started = Instant::now();
        let process = self.command.as_ref().map(|command| exec(command)).transpose()?;
        let Ok(client) = timeout(PATIENCE, self.first_answer()).await else {
            bail!("no answer in {} s", PATIENCE.as_secs());
        };
        Ok((Running { process, client }, started.elapsed()))
    }

    async fn first_answer(&self) -> Client {
        loop {
            if let Ok(client) = self.client().await
                && Api::<Namespace>::all(client.clone()).list(&ListParams::default()).await.is_ok()
            {
                return client;
            }
            sleep(PAUSE).await;
        }
    }

    async fn client(&self) -> Result<Client> {
        Ok(Client::try_from(config(&self.kubeconfig).await?)?)
    }
}

/// How a server is reached, as its kubeconfig says.
///
/// # Errors
/// When it cannot be read.
pub(crate) async fn config(kubeconfig: &Path) -> Result<Config> {
    let kubeconfig = Kubeconfig::read_from(kubeconfig)?;
    Ok(Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?)
}

fn exec(command: &[String]) -> Result<Process> {
    let (program, arguments) = command.split_first().context("a command has a program")?;
    let child = Command::new(program).args(arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    Ok(Process(child.with_context(|| format!("cannot start {program}"))?))
}

/// A server that answers.
pub(crate) struct Running {
    pub(crate) client: Client,
    process: Option<Process>,
}

impl Running {
    /// The resident memory of the server's processes, where this can be known.
    pub(crate) fn resident_bytes(&self) -> Option<u64> {
        resident_bytes(self.process.as_ref()?.0.id())
    }

    /// Ends it, if it was started here.
    pub(crate) fn stop(self) {
        drop(self.process);
    }
}

/// A process that is asked to end, and waited for, when dropped.
pub(crate) struct Process(Child);

impl Process {
    /// This one, from now on.
    pub(crate) fn of(child: Child) -> Self {
        Self(child)
    }

    pub(crate) fn id(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let asked = Command::new("kill").args(["-TERM", &self.0.id().to_string()]).status();
        if !asked.is_ok_and(|status| status.success()) {
            let _ = self.0.kill();
        }
        let _ = self.0.wait();
    }
}

/// How many seconds of a processor a process that runs has taken, from Linux' `/proc` (`proc_pid_stat(5)`: `utime`, `stime`, in hundredths).
pub(crate) fn cpu_seconds(pid: u32) -> Option<f64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name of the program stands in parentheses, and may have any.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = |field: usize| fields.get(field)?.parse::<u32>().ok();
    Some(f64::from(ticks(11)? + ticks(12)?) / 100.0)
}

/// The resident memory of the process `root` and of all its descendants, from Linux' `/proc`.
pub(crate) fn resident_bytes(root: u32) -> Option<u64> {
    let mut parents = BTreeMap::new();
    for entry in fs::read_dir("/proc").ok()?.flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        let Ok(status) = fs::read_to_string(entry.path().join("status")) else { continue };
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            line.split_whitespace().next()?.parse::<u64>().ok()
        };
        parents.insert(pid, (field("PPid:").unwrap_or(0), field("VmRSS:").unwrap_or(0)));
    }
    let is_ours = |pid: &u32| {
        let mut pid = *pid;
        // A chain of parents is no longer than there are processes.
        for _ in 0..parents.len() {
            if pid == root {
                return true;
            }
            match parents.get(&pid) {
                Some((parent, _)) => pid = u32::try_from(*parent).unwrap_or(0),
                None => return false,
            }
        }
        false
    };
    let kibibytes: u64 = parents.iter().filter(|(pid, _)| is_ours(pid)).map(|(_, (_, rss))| rss).sum();
    (kibibytes > 0).then_some(kibibytes * 1024)
}

#[cfg(test)]
mod tests {
    #[cfg(target_os = "linux")]
    #[test]
    fn this_process_uses_memory() {
        let bytes = super::resident_bytes(std::process::id()).expect("there is a /proc");
        assert!((1 << 20..1 << 34).contains(&bytes), "{bytes}");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_process_that_works_takes_processor_time() {
        let before = super::cpu_seconds(std::process::id()).expect("there is a /proc");
        let mut sum = 0_u64;
        while super::cpu_seconds(std::process::id()).expect("there is a /proc") < before + 0.02 {
            sum = std::hint::black_box(sum.wrapping_add(1));
        }
    }
}
