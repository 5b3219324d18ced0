//! The program that runs on a stand, as a process of this machine.

use std::{
    collections::BTreeSet,
    ffi::OsString,
    fs::File,
    io::{Read, Seek},
    net::{Ipv4Addr, TcpListener},
    path::Path,
    process::Stdio,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use anyhow::Context;
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::Value;
use tokio::process::{Child, Command};

use super::webhooks::{CERTIFICATES, WEBHOOK_PORT, Webhooks};
use crate::{
    project::Program,
    run::webhooks::{self, leads_to_webhooks},
};

/// How long a program may take to end before it is killed.
const LAST: Duration = Duration::from_secs(5);
/// How much of what a program printed is told when it failed.
const TAIL: usize = 2000;

/// How much of it is its beginning.
const HEAD: usize = 300;

/// What stands for a free port in arguments: each time another one.
pub(crate) const PORT: &str = "{port}";

/// What stands for the path of the kubeconfig in arguments.
const KUBECONFIG: &str = "{kubeconfig}";

/// The longest word of a command that is shown.
const LONGEST_WORD: usize = 120;

/// By which variable projects of Kubebuilder serve webhooks, or none.
const ENABLED: &str = "ENABLE_WEBHOOKS";

/// How a program is started.
#[derive(Clone, Debug)]
pub(crate) struct OperatorCommand {
    words: Vec<OsString>,
    kind: Kind,
    /// Flags by which an operator of the SDK serves its webhooks.
    webhook_flags: Vec<OsString>,
    /// Variables that it gets where they are not set.
    environment: Vec<(String, String)>,
}

/// How a program is told what it has to know.
#[derive(Clone, Copy, Debug)]
enum Kind {
    /// By variables, and by what is replaced in its arguments.
    Foreign,
    /// It is an operator of the SDK: by flags.
    OfSdk { has_webhooks: bool },
}

impl OperatorCommand {
    fn new(words: Vec<OsString>, kind: Kind) -> Self {
        Self { words, kind, webhook_flags: Vec::new(), environment: Vec::new() }
    }

    /// A program with its arguments.
    pub(crate) fn foreign(program: &str, arguments: &[String]) -> Self {
        let words = std::iter::once(program.into()).chain(arguments.iter().map(Into::into));
        Self::new(words.collect(), Kind::Foreign)
    }

    /// A line that a shell reads.
    pub(crate) fn shell(line: &str) -> Self {
        Self::new(["sh", "-c", line].map(OsString::from).to_vec(), Kind::Foreign)
    }

    /// The program of a project, with the objects that it says it needs.
    pub(crate) fn of_project(program: &Program, needed: &[Value]) -> Self {
        let words = vec![program.path().as_os_str().to_owned(), "run".into()];
        Self::new(words, Kind::OfSdk { has_webhooks: needed.iter().any(leads_to_webhooks) })
    }

    /// With the port and the certificates of its webhooks; controller-runtime finds them by the folder of temporary files.
    pub(crate) fn with_webhooks(&self, webhooks: &Webhooks) -> Self {
        let certificates = webhooks.certificates().display().to_string();
        let replaced = |word: &OsString| match word.to_str() {
            Some(text) => {
                let text = text.replace(WEBHOOK_PORT, &webhooks.port().to_string());
                text.replace(CERTIFICATES, &certificates).into()
            }
            None => word.clone(),
        };
        let mut command = Self { words: self.words.iter().map(replaced).collect(), ..self.clone() };
        let folder = webhooks.folder().display().to_string();
        command.environment.extend([("TMPDIR".to_owned(), folder), (ENABLED.to_owned(), "true".to_owned())]);
        if self.serves_by_flags() {
            command.webhook_flags = vec![
                format!("--webhook-bind-address=127.0.0.1:{}", webhooks.port()).into(),
                format!("--webhook-cert-path={certificates}").into(),
                // What leads to them is there already.
                "--webhook-registration=nothing".into(),
            ];
        }
        command
    }

    /// Whether it is told where to serve its webhooks.
    pub(crate) fn has_webhook_port(&self) -> bool {
        self.serves_by_flags() || self.words.iter().any(|word| word.to_string_lossy().contains(WEBHOOK_PORT))
    }

    /// Whether it is an operator of the SDK with webhooks.
    fn serves_by_flags(&self) -> bool {
        matches!(self.kind, Kind::OfSdk { has_webhooks: true })
    }

    /// With these variables, but for those that are set for this process.
    pub(crate) fn with_environment(mut self, environment: Vec<(String, String)>) -> Self {
        self.environment = environment;
        self.environment.retain(|(name, _)| std::env::var_os(name).is_none());
        self
    }

    /// Starts it in a process group of its own, with the kubeconfig of its account.
    pub(crate) fn start(&self, kubeconfig: &Path, shows_logs: bool) -> anyhow::Result<Running> {
        let (program, arguments) = self.words.split_first().context("program: there is none")?;
        let mut command = Command::new(program);
        for argument in arguments {
            command.arg(with_ports(&with_kubeconfig(argument, kubeconfig))?);
        }
        if matches!(self.kind, Kind::OfSdk { .. }) {
            command.arg("--kubeconfig").arg(kubeconfig);
        }
        match self.webhook_flags.as_slice() {
            [] if self.serves_by_flags() => drop(command.arg(webhooks::NOWHERE)),
            flags => drop(command.args(flags)),
        }
        command.env(ENABLED, "false").envs(self.environment.iter().map(|(name, value)| (name, value)));
        command.env("KUBECONFIG", kubeconfig);
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

    /// As a person types it; words that are longer than a line, such as a class path, are cut.
    pub(crate) fn text(&self) -> String {
        let cut = |word: &OsString| {
            let word = word.to_string_lossy();
            match word.char_indices().nth(LONGEST_WORD) {
                Some((end, _)) => format!("{}...", &word[..end]),
                None => word.into_owned(),
            }
        };
        self.words.iter().map(cut).collect::<Vec<_>>().join(" ")
    }
}

/// An argument with the path of the kubeconfig where it asks for it.
fn with_kubeconfig(argument: &OsString, kubeconfig: &Path) -> OsString {
    match argument.to_str().filter(|text| text.contains(KUBECONFIG)) {
        Some(text) => text.replace(KUBECONFIG, &kubeconfig.to_string_lossy()).into(),
        None => argument.clone(),
    }
}

/// What to do about a program that did not find its control plane, or is none, by what it said.
pub(crate) fn advice(said: &str) -> &'static str {
    if said.contains("no main manifest attribute") {
        "; the jar is no program by itself: name its class behind --, such as java -cp target/classes:target/lib/* com.example.Main"
    } else {
        "; it has to find its control plane by $KUBECONFIG, or by a flag: --kubeconfig={kubeconfig}"
    }
}

/// The end of a text, and its beginning where it is longer than `most` bytes: usage follows upon what was wrong with a flag.
pub(crate) fn shortened(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let head = text.floor_char_boundary(HEAD.min(most / 2));
    let tail = text.ceil_char_boundary(text.len() - (most - head));
    format!("{}\n...\n{}", &text[..head], &text[tail..])
}

/// An argument with a port that is free now for each that it asks for.
fn with_ports(argument: &OsString) -> anyhow::Result<OsString> {
    let Some(mut text) = argument.to_str().filter(|text| text.contains(PORT)).map(str::to_owned) else {
        return Ok(argument.clone());
    };
    while text.contains(PORT) {
        // Taken for a moment. Somebody else may take it before the program does; the kernel gives the others first.
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|listener| listener.local_addr());
        text = text.replacen(PORT, &port.context("no port for the program")?.port().to_string(), 1);
    }
    Ok(text.into())
}

/// A file for what a program prints, which is gone with its last handle.
fn log_file() -> anyhow::Result<File> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let path = std::env::temp_dir().join(format!("kubewright-{}-{number}.log", std::process::id()));
    let _ = std::fs::remove_file(&path);
    let mut options = File::options();
    options.read(true).write(true).create_new(true);
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(&path).with_context(|| format!("cannot write {}", path.display()))?;
    std::fs::remove_file(&path)?;
    Ok(file)
}

/// A program that runs; it is killed, with all that it started, when this is dropped.
pub(crate) struct Running {
    child: Child,
    log: Option<File>,
}

impl Running {
    /// Waits until it ends by itself, and says how, such as `exit status: 1`.
    pub(crate) async fn ended(&mut self) -> String {
        match self.child.wait().await {
            Ok(status) => status.to_string(),
            Err(error) => error.to_string(),
        }
    }

    /// The ports on which it and all that it started listen now; none where the machine does not say.
    pub(crate) fn ports(&self) -> Option<BTreeSet<u16>> {
        super::group::ports(self.child.id()?.cast_signed())
    }

    /// How long it and all that it started, and that lives, have computed; none where the machine does not say.
    pub(crate) fn computed(&self) -> Option<Duration> {
        super::group::computed(self.child.id()?.cast_signed())
    }

    /// How it has ended by itself; none while it runs.
    pub(crate) fn has_ended(&mut self) -> Option<String> {
        self.child.try_wait().ok().flatten().map(|status| status.to_string())
    }

    /// What it has printed so far; at most the first four megabytes.
    pub(crate) fn said(&mut self) -> String {
        let mut text = Vec::new();
        if let Some(log) = &mut self.log {
            let _ = log.rewind().and_then(|()| log.take(1 << 22).read_to_end(&mut text));
        }
        String::from_utf8_lossy(&text).trim_end().to_owned()
    }

    /// What it printed last, on lines of its own.
    pub(crate) fn tail(&mut self) -> String {
        let text = self.said();
        if text.is_empty() { String::new() } else { format!("; it said last:\n{}", shortened(&text, TAIL)) }
    }

    /// Its process group; none where it has ended.
    pub(crate) fn group(&self) -> Option<Pid> {
        self.child.id().and_then(|id| Pid::from_raw(id.cast_signed()))
    }

    /// Kills it and all that it started, at once.
    pub(crate) async fn kill(&mut self) {
        let Some(group) = self.group() else { return };
        let _ = kill_process_group(group, Signal::KILL);
        let _ = self.child.wait().await;
    }

    /// Asks it and all that it started to end, and kills them if they do not.
    pub(crate) async fn stop(mut self) {
        let Some(group) = self.group() else { return };
        let _ = kill_process_group(group, Signal::TERM);
        let _ = tokio::time::timeout(LAST, self.child.wait()).await;
        let _ = kill_process_group(group, Signal::KILL);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // A terminal's signals do not reach its group: nobody else ends what it started.
        if let Some(group) = self.group() {
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_long_text_the_beginning_and_the_end_are_told() {
        let text = format!("flag provided but not defined{}the last line", "usage\n".repeat(500));
        let told = shortened(&text, 1000);
        assert!(
            told.starts_with("flag provided") && told.ends_with("the last line") && told.len() <= 1010,
            "{told}"
        );
        assert_eq!(shortened("short", 1000), "short");
    }

    #[test]
    fn the_kubeconfig_stands_where_an_argument_asks_for_it_and_long_words_are_cut() {
        let argument = with_kubeconfig(&"--kubeconfig={kubeconfig}".into(), Path::new("/tmp/k"));
        assert_eq!(argument, "--kubeconfig=/tmp/k");
        let command = OperatorCommand::foreign("java", &["-cp".to_owned(), "x".repeat(9000)]);
        assert!(command.text().len() < 200);
    }
}
