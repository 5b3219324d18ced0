//! The shell that a reader has open while following a page.

use std::{
    env,
    ffi::OsString,
    fs::{self, File},
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, Command as Process, Stdio},
    time::Duration,
};

use tokio::time::{Instant, sleep};

use super::{is_as_expected, page::Command};

/// How long a page may wait for one thing: what a cluster does in its own time, or what a command compiles before it runs.
const PATIENCE: Duration = Duration::from_secs(900);
/// How long between two looks.
const PAUSE: Duration = Duration::from_millis(200);
/// Where a command leaves the folder and the variables that the next one starts with.
const STATE: &str = ".shell";

/// A folder, variables, and what runs in the background; ended, with all that it started, when dropped.
pub(crate) struct Shell {
    home: PathBuf,
    path: OsString,
    built: PathBuf,
    lock: PathBuf,
    background: Vec<Child>,
}

impl Shell {
    /// A shell in this folder, with these programs on its path, in which cargo builds into the folder `built`, with the versions
    /// of dependencies that the file `lock` says.
    pub(crate) fn new(home: &Path, programs: &[PathBuf], built: PathBuf, lock: PathBuf) -> Self {
        let folders = programs.iter().filter_map(|program| program.parent()).map(Path::to_owned);
        let path = env::var_os("PATH").unwrap_or_default();
        let path = env::join_paths(folders.chain(env::split_paths(&path))).expect("the path can be extended");
        Self { home: home.to_owned(), path, built, lock, background: Vec::new() }
    }

    /// Writes a file of the page's, in the folder that the shell is in.
    pub(crate) fn write(&self, name: &str, text: &str) {
        let file = self.folder().join(name);
        fs::create_dir_all(file.parent().expect("a file is in a folder")).expect("a folder");
        fs::write(file, text).expect("the file is written");
    }

    /// The folder that the shell is in.
    fn folder(&self) -> PathBuf {
        let folder = fs::read_to_string(self.home.join(STATE).with_extension("folder"));
        folder.map_or_else(|_| self.home.clone(), |folder| folder.trim_end().into())
    }

    /// A project that is new has the versions that the workspace is tested with, and not those of today.
    fn lock_versions(&self) {
        let folder = self.folder();
        if folder.join("Cargo.toml").is_file() && !folder.join("Cargo.lock").exists() {
            fs::copy(&self.lock, folder.join("Cargo.lock")).expect("the versions are copied");
        }
    }

    /// Runs a command and gives what it says. One that ends in `&` is left running when it has said the last line that the page
    /// expects; `kill %1` ends the first of these.
    pub(crate) async fn run(&mut self, command: &Command) -> String {
        self.lock_versions();
        if let Some(text) = command.text.strip_suffix(" &") {
            return self.start(text, &command.expected).await;
        }
        if let Some(number) = command.text.strip_prefix("kill %") {
            let number: usize = number.parse().expect("the number of a job");
            end(&mut self.background[number - 1]);
            return String::new();
        }
        let state = self.home.join(STATE).display().to_string();
        let keep = format!("trap 'declare -px > {state}; pwd > {state}.folder' EXIT");
        let output = self.bash(&format!("{keep}; {}", command.text)).output().expect("bash starts");
        let told = String::from_utf8_lossy(&output.stdout);
        match output.status.code() {
            Some(0) => told.into_owned(),
            code => format!("? {}\n{told}", code.unwrap_or(-1)),
        }
    }

    async fn start(&mut self, text: &str, expected: &str) -> String {
        let log = self.home.join(format!("{STATE}.{}", self.background.len()));
        let file = File::create(&log).expect("a log");
        let child =
            self.bash(&format!("exec {text}")).stdout(file).process_group(0).spawn().expect("bash starts");
        self.background.push(child);
        let last = expected.lines().last().unwrap_or_default();
        let patience = Patience::default();
        loop {
            let told = fs::read_to_string(&log).expect("the log is there");
            let mut end = 0;
            for line in told.split_inclusive('\n') {
                end += line.len();
                if is_as_expected(line.trim_end(), last) {
                    return told[..end].to_owned();
                }
            }
            if !patience.is_left_after_a_pause().await {
                return told;
            }
        }
    }

    /// A bash that goes on where the last one ended, and says everything on its standard output.
    fn bash(&self, text: &str) -> Process {
        let state = self.home.join(STATE).display().to_string();
        let resume = format!("[ -f {state} ] && source {state} && cd \"$(cat {state}.folder)\"");
        let mut bash = Process::new("bash");
        bash.arg("-c").arg(format!("exec 2>&1; {resume}; {text}"));
        bash.current_dir(&self.home).env("PATH", &self.path).stdin(Stdio::null());
        // What the reader's home would be changed in is the page's own; cargo stays as it is.
        let home = PathBuf::from(env::var_os("HOME").unwrap_or_default());
        for (variable, folder) in [("CARGO_HOME", ".cargo"), ("RUSTUP_HOME", ".rustup")] {
            bash.env(variable, env::var_os(variable).unwrap_or_else(|| home.join(folder).into()));
        }
        bash.env("CARGO_TARGET_DIR", &self.built);
        bash.env("HOME", &self.home).env_remove("KUBECONFIG");
        bash
    }
}

/// What is left of the time that one thing may take.
pub(crate) struct Patience(Instant);

impl Default for Patience {
    fn default() -> Self {
        Self(Instant::now() + PATIENCE)
    }
}

impl Patience {
    /// Waits a moment, and tells whether to look again.
    pub(crate) async fn is_left_after_a_pause(&self) -> bool {
        sleep(PAUSE).await;
        Instant::now() < self.0
    }
}

/// Ends a group of processes: what was started, and what that started.
fn end(leader: &mut Child) {
    if let Ok(None) = leader.try_wait() {
        let group = format!("-{}", leader.id());
        let _ = Process::new("kill").args(["-TERM", "--", &group]).status();
        let _ = leader.wait();
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        self.background.iter_mut().for_each(end);
    }
}
