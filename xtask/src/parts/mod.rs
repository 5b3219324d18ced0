//! Parts of Kubernetes in the place of ours, and ours in the place of theirs: `kubewright controllers` on the real kube-apiserver, and the
//! real kube-controller-manager, kube-scheduler and kwok on Kubewright's API server. Both have to hold the recorded conversations of
//! the controllers (`tests/golden/recorded-ctl`).

mod ours;
mod programs;
mod theirs;

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::{
    kubectl::{eventually, wait},
    run::{target, workspace},
    spec,
    times::timed,
    tools,
};

pub(crate) use programs::{Programs, RECORDED};

/// How long the conversations may take that take two minutes.
const LONGEST: Duration = Duration::from_mins(15);
const PAUSE: Duration = Duration::from_millis(250);

/// Who is in whose place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Parts {
    /// Kubewright's controllers, scheduler and simulated nodes on the real kube-apiserver.
    OursOnTheirs,
    /// The real kube-controller-manager, kube-scheduler and kwok on Kubewright's API server.
    TheirsOnOurs,
}

/// What `cargo xtask parts` is told.
#[derive(Args)]
pub(crate) struct Options {
    /// Only these versions, such as 1.36; by default all whose programs are there
    #[arg(value_name = "VERSION")]
    versions: Vec<String>,
}

/// Conversations that Kubernetes' own parts do not hold each time, on kube-apiserver neither, and the reason: they may go either way.
const RACES: &[(&str, &str)] = &[(
    "hpa-custom-scale",
    "kube-controller-manager reads discovery every 30 seconds: an autoscaler of a kind that is younger gets one event more",
)];

impl Parts {
    pub(crate) const ALL: [Self; 2] = [Self::OursOnTheirs, Self::TheirsOnOurs];

    /// What is tested, in a few words.
    pub(crate) fn describe(self) -> &'static str {
        match self {
            Self::OursOnTheirs => "Kubewright's controllers on kube-apiserver",
            Self::TheirsOnOurs => "kube-controller-manager, kube-scheduler and kwok on Kubewright",
        }
    }

    /// Starts what is needed, holds the conversations, and ends it.
    ///
    /// # Errors
    /// When something does not start, or a conversation goes otherwise and is not known to.
    pub(crate) fn hold(self, programs: &Programs, kubewright: &Path) -> Result<()> {
        let folder = target().join("parts").join(format!("{self:?}-{}", programs.release));
        if folder.exists() {
            fs::remove_dir_all(&folder)?;
        }
        fs::create_dir_all(&folder)?;
        let version = spec::minor(programs.release);
        let hold = |kubeconfig: &Path| self.replay(version, kubeconfig);
        timed(self.describe(), || match self {
            Self::OursOnTheirs => ours::on_theirs(programs, kubewright, &folder, hold),
            Self::TheirsOnOurs => theirs::on_ours(programs, kubewright, &folder, hold),
        })
    }

    fn replay(self, version: &str, kubeconfig: &Path) -> Result<()> {
        let mut told = replay(version, kubeconfig, &[])?;
        let again: Vec<String> = failed(&told).into_iter().map(str::to_owned).collect();
        if !again.is_empty() {
            // Some look after a second or two, and on a busy machine one process may not have had its turn since the other's.
            told = replay(version, kubeconfig, &again)?;
        }
        let mut failed = failed(&told);
        if self == Self::TheirsOnOurs {
            for (name, reason) in RACES {
                if failed.remove(name) {
                    eprintln!("== {name} went otherwise, as it may: {reason}");
                }
            }
        }
        if failed.is_empty() {
            return Ok(());
        }
        let names: Vec<&str> = failed.into_iter().collect();
        bail!("these conversations go otherwise: {}\n{told}", names.join(", "))
    }
}

/// The names of the conversations that went otherwise.
fn failed(told: &str) -> BTreeSet<&str> {
    told.lines().filter_map(|line| line.strip_prefix("FAIL ")).collect()
}

/// Holds the conversations of these names, or all, as that version does; what is told of them.
#[expect(clippy::disallowed_methods, reason = "another process is waited for")]
fn replay(version: &str, kubeconfig: &Path, only: &[String]) -> Result<String> {
    let golden = workspace().join("tests/golden");
    let python = tools::python().map_err(anyhow::Error::msg)?;
    let mut command = Command::new(python);
    command.arg(golden.join("golden.py")).args(["replay", "--jobs", "4", "--kubeconfig"]).arg(kubeconfig);
    command.arg("--variant").arg(golden.join(format!("recorded-ctl-{version}")));
    let recorded = golden.join("recorded-ctl");
    for area in fs::read_dir(&recorded)? {
        for file in fs::read_dir(area?.path())? {
            let file = file?.path();
            let name = file.file_stem().unwrap_or_default().to_string_lossy();
            if only.is_empty() || only.iter().any(|one| *one == name) {
                command.arg(&file);
            }
        }
    }
    command.stdin(Stdio::null());
    let log = kubeconfig.with_file_name("replay.log");
    command.stdout(fs::File::create(&log)?).stderr(fs::File::create(log.with_extension("err"))?);
    let mut replay = command.spawn().context("cannot run golden.py")?;
    let begun = Instant::now();
    while replay.try_wait()?.is_none() {
        if begun.elapsed() > LONGEST {
            replay.kill()?;
            replay.wait()?;
            bail!("not all conversations were held within {LONGEST:?}: {}", log.display());
        }
        wait(PAUSE);
    }
    let told = fs::read_to_string(&log)?;
    if !told.lines().last().is_some_and(|last| last.contains(" passed, ")) {
        bail!("golden.py ended early: {told}\n{}", fs::read_to_string(log.with_extension("err"))?);
    }
    Ok(told)
}

/// kubectl with a kubeconfig.
fn kubectl(programs: &Programs, kubeconfig: &Path) -> Command {
    let mut command = Command::new(programs.path("kubectl"));
    command.arg("--kubeconfig").arg(kubeconfig).arg("--request-timeout=10s");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

/// Waits until namespaces have their accounts and both nodes are ready.
fn ready(programs: &Programs, kubeconfig: &Path) -> Result<()> {
    let asked =
        |words: &[&str]| Ok(kubectl(programs, kubeconfig).args(words).status()?.success().then_some(()));
    eventually("the default service account is there", || {
        asked(&["-n", "default", "get", "serviceaccount", "default"])
    })?;
    eventually("both nodes are ready", || {
        asked(&["wait", "--for=condition=Ready", "node/node-0", "node/node-1", "--timeout=5s"])
    })
}

/// A port of loopback that nobody listens on.
fn port() -> Result<u16> {
    Ok(std::net::TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port())
}

/// The credentials of a cluster that `kubewright up --data` keeps in a folder.
struct Credentials(PathBuf);

impl Credentials {
    fn of(data: &Path) -> Self {
        Self(data.join("credentials"))
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

/// `cargo xtask parts`: both ways, with the command of the debug build.
///
/// # Errors
/// When the programs are not there, or one of the ways fails.
pub(crate) fn parts(options: &Options) -> Result<()> {
    let asked = |release: &&str| {
        options.versions.is_empty() || options.versions.iter().any(|version| version == spec::minor(release))
    };
    let releases: Vec<&'static str> = spec::RELEASES.into_iter().filter(|release| asked(release)).collect();
    let (mut all, mut missing) = (Vec::new(), Vec::new());
    for release in releases {
        match Programs::find(release) {
            Ok(programs) => all.push(programs),
            Err(reason) => missing.push(reason),
        }
    }
    if all.is_empty() || (!options.versions.is_empty() && !missing.is_empty()) {
        bail!("{}", missing.join("\n"));
    }
    let kubewright = target().join("debug/kubewright");
    let mut failed = Vec::new();
    for programs in &all {
        for parts in Parts::ALL {
            let what = format!("{}, v{}", parts.describe(), programs.release);
            match parts.hold(programs, &kubewright) {
                Ok(()) => eprintln!("== {what}: all conversations go as recorded"),
                Err(error) => failed.push(format!("{what}: {error:#}")),
            }
        }
    }
    if failed.is_empty() { Ok(()) } else { bail!("{}", failed.join("\n")) }
}
