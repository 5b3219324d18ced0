//! The shell that a reader has open while following a page.

use std::{
    env,
    ffi::OsString,
    fs::{self, File},
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, Command as Process, Stdio},
    thread,
    time::{Duration, Instant},
};

use super::page::Command;

/// How long a page may wait in all for what a cluster does in its own time.
const PATIENCE: Duration = Duration::from_secs(300);
/// How long between two looks.
const PAUSE: Duration = Duration::from_millis(200);
/// Where a command leaves the folder and the variables that the next one starts with.
const STATE: &str = ".shell";

/// A folder, variables, and what runs in the background; ended, with all that it started, when dropped.
pub(crate) struct Shell {
    home: PathBuf,
    path: OsString,
    background: Vec<Child>,
    patient_until: Instant,
}

impl Shell {
    /// A shell in this folder, with these programs on its path.
    pub(crate) fn new(home: &Path, programs: &[PathBuf]) -> Self {
        let folders = programs.iter().filter_map(|program| program.parent()).map(Path::to_owned);
        let path = env::var_os("PATH").unwrap_or_default();
        let path = env::join_paths(folders.chain(env::split_paths(&path))).expect("the path can be extended");
        Self { home: home.to_owned(), path, background: Vec::new(), patient_until: Instant::now() + PATIENCE }
    }

    /// Writes a file of the page's, in the folder that the shell is in.
    pub(crate) fn write(&self, name: &str, text: &str) {
        let folder = fs::read_to_string(self.home.join(STATE).with_extension("folder"));
        let file = folder.map_or_else(|_| self.home.clone(), |folder| folder.trim_end().into()).join(name);
        fs::create_dir_all(file.parent().expect("a file is in a folder")).expect("a folder");
        fs::write(file, text).expect("the file is written");
    }

    /// Runs a command and gives what it says. One that ends in `&` is left running when it has said as many lines as the page
    /// expects.
    pub(crate) fn run(&mut self, command: &Command) -> String {
        match command.text.strip_suffix(" &") {
            Some(text) => self.start(text, command.expected.lines().count()),
            None => {
                let output = self.bash(&command.text).output().expect("bash starts");
                let mut told = String::from_utf8_lossy(&output.stdout).into_owned();
                if !output.status.success() {
                    told = format!("? {}\n{told}", output.status.code().unwrap_or(-1));
                }
                told
            }
        }
    }

    /// Whether the page may wait any longer; waits a moment.
    pub(crate) fn has_time_left(&self) -> bool {
        thread::sleep(PAUSE);
        Instant::now() < self.patient_until
    }

    fn start(&mut self, text: &str, lines: usize) -> String {
        let log = self.home.join(format!("{STATE}.{}", self.background.len()));
        let file = File::create(&log).expect("a log");
        let child = self.bash(text).stdout(file).process_group(0).spawn().expect("bash starts");
        self.background.push(child);
        loop {
            let told = fs::read_to_string(&log).expect("the log is there");
            if told.lines().count() >= lines || !self.has_time_left() {
                return told.lines().take(lines).map(|line| format!("{line}\n")).collect();
            }
        }
    }

    /// A bash that goes on where the last one ended, and says everything on its standard output.
    fn bash(&self, text: &str) -> Process {
        let state = self.home.join(STATE).display().to_string();
        let mut bash = Process::new("bash");
        bash.arg("-c").arg(format!(
            "exec 2>&1; [ -f {state} ] && source {state} && cd \"$(cat {state}.folder)\"; \
             trap 'declare -px > {state}; pwd > {state}.folder' EXIT; {text}"
        ));
        bash.current_dir(&self.home).env("PATH", &self.path).stdin(Stdio::null());
        // What the reader's home would be changed in is the page's own; cargo stays as it is.
        let home = PathBuf::from(env::var_os("HOME").unwrap_or_default());
        for (variable, folder) in [("CARGO_HOME", ".cargo"), ("RUSTUP_HOME", ".rustup")] {
            bash.env(variable, env::var_os(variable).unwrap_or_else(|| home.join(folder).into()));
        }
        bash.env("HOME", &self.home).env_remove("KUBECONFIG");
        bash
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        for child in &mut self.background {
            // The group that it leads: bash and what bash started.
            let group = format!("-{}", child.id());
            let _ = Process::new("kill").args(["-TERM", "--", &group]).status();
            let _ = child.wait();
        }
    }
}
