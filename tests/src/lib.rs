//! What the tests that span crates share: a `kubewright up` of their own, and kubectl on it.

pub mod browser;

use std::{
    env,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    time::Duration,
};

/// How long something may take that a running cluster does by itself. It takes milliseconds; this is for busy machines.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long between two looks.
const PAUSE: Duration = Duration::from_millis(50);

/// The program that the environment names: `cargo xtask test` says where it is.
///
/// # Panics
/// When it does not.
#[must_use]
pub fn needed(variable: &str) -> PathBuf {
    env::var_os(variable).unwrap_or_else(|| panic!("{variable} is not set: use cargo xtask test")).into()
}

/// A `kubewright up` on a free port with a kubeconfig of its own; ended when dropped.
pub struct Up {
    process: Child,
    folder: PathBuf,
    arguments: Vec<String>,
    link: Option<String>,
}

impl Up {
    /// Starts one with more `arguments` and waits until its kubeconfig is there. `test` names its folder.
    ///
    /// # Panics
    /// When it does not start, or the environment does not say where `KUBEWRIGHT` is.
    #[must_use]
    pub fn start(test: &str, arguments: &[&str]) -> Self {
        let folder = env::temp_dir().join(format!("kubewright-{test}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a temporary folder");
        let arguments: Vec<String> = arguments.iter().map(|argument| (*argument).to_owned()).collect();
        let (process, link) = spawn(&folder, &arguments);
        Self { process, folder, arguments, link }
    }

    /// Kills it (SIGKILL) and starts it again with the same arguments. With `--data data` it goes on where it was.
    ///
    /// # Panics
    /// When it does not start.
    pub fn kill_and_start_again(&mut self) {
        self.kill();
        (self.process, self.link) = spawn(&self.folder, &self.arguments);
    }

    /// Kills it (SIGKILL).
    pub fn kill(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }

    /// What opens its page, where it was started with `--ui`.
    ///
    /// # Panics
    /// When it was not.
    #[must_use]
    pub fn link(&self) -> &str {
        self.link.as_deref().expect("it was started with --ui")
    }

    /// Its kubeconfig.
    #[must_use]
    pub fn kubeconfig(&self) -> PathBuf {
        self.folder.join("kubeconfig")
    }

    /// Runs kubectl with `arguments`, which are split at spaces; gives what it wrote to standard output.
    ///
    /// # Panics
    /// When kubectl fails.
    #[must_use]
    pub fn kubectl(&self, arguments: &str) -> String {
        let output = self.try_kubectl(arguments);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "kubectl {arguments}: {errors}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Starts kubectl with `arguments` in the background, with what it writes at hand; for what lasts until it is ended.
    ///
    /// # Panics
    /// When kubectl cannot be started.
    #[must_use]
    pub fn start_kubectl(&self, arguments: &str) -> Child {
        self.command(arguments).stdout(Stdio::piped()).spawn().expect("kubectl starts")
    }

    /// Applies a manifest; gives what kubectl says of it.
    ///
    /// # Panics
    /// When kubectl fails.
    #[must_use]
    pub fn apply(&self, manifest: &str) -> String {
        let file = self.file("applied.yaml", manifest);
        self.kubectl(&format!("apply -f {file}"))
    }

    /// Runs kubectl with `arguments`, which are split at spaces.
    ///
    /// # Panics
    /// When kubectl cannot be started.
    #[must_use]
    pub fn try_kubectl(&self, arguments: &str) -> Output {
        self.command(arguments).output().expect("kubectl starts")
    }

    /// Starts kubectl with `arguments` and gives its lines as they come, until `enough` says so of one; then ends it.
    ///
    /// # Panics
    /// When kubectl cannot be started, or ends before.
    pub fn follow(&self, arguments: &str, mut enough: impl FnMut(&str) -> bool) {
        let mut process = self.command(arguments).stdout(Stdio::piped()).spawn().expect("kubectl starts");
        let output = process.stdout.take().expect("its output is piped");
        let seen = BufReader::new(output).lines().map_while(Result::ok).any(|line| enough(&line));
        let _ = process.kill();
        let _ = process.wait();
        assert!(seen, "kubectl {arguments} ended too soon");
    }

    /// Runs kubectl with `arguments` again and again until what it writes is as `wanted`, and gives that.
    ///
    /// # Panics
    /// When it is not so in half a minute.
    pub async fn eventually(&self, arguments: &str, wanted: impl Fn(&str) -> bool) -> String {
        let mut last = String::new();
        let look = async {
            loop {
                last = String::from_utf8_lossy(&self.try_kubectl(arguments).stdout).into_owned();
                if wanted(&last) {
                    break;
                }
                tokio::time::sleep(PAUSE).await;
            }
        };
        let seen = tokio::time::timeout(PATIENCE, look).await.is_ok();
        assert!(seen, "kubectl {arguments} never said what was waited for; at last it said: {last}");
        last
    }

    /// Writes `text` to a file in the folder of the test and gives its path.
    ///
    /// # Panics
    /// When it cannot be written.
    #[must_use]
    pub fn file(&self, name: &str, text: &str) -> String {
        let path = self.folder.join(name);
        std::fs::write(&path, text).expect("the folder is writable");
        path.display().to_string()
    }

    fn command(&self, arguments: &str) -> Command {
        let mut command = Command::new(needed("KUBECTL"));
        command.args(arguments.split_whitespace());
        // A cache of its own: discovery is asked of this cluster, whatever the last one on this port served.
        command.env("KUBECONFIG", self.kubeconfig()).env("KUBECACHEDIR", self.folder.join("cache"));
        command
    }
}

/// Starts `kubewright up` in `folder`, waits until its kubeconfig is there, and reads the link of its page where it has one. Samples are in a program of their own, beside the command.
fn spawn(folder: &Path, arguments: &[String]) -> (Child, Option<String>) {
    let mut program = needed("KUBEWRIGHT");
    if arguments.iter().any(|argument| argument == "--samples") {
        program.set_file_name("kubewright-samples");
    }
    let mut process = Command::new(program)
        .args(["up", "--port", "0", "--kubeconfig"])
        .arg(folder.join("kubeconfig"))
        .args(arguments)
        .current_dir(folder)
        .stdout(Stdio::piped())
        .spawn()
        .expect("kubewright up starts");
    let output = process.stdout.take().expect("its output is piped");
    let mut lines = BufReader::new(output).lines().map_while(Result::ok);
    let written = lines.any(|line| line.contains("kubeconfig"));
    assert!(written, "kubewright up ended before it wrote its kubeconfig");
    let has_page = arguments.iter().any(|argument| argument.starts_with("--ui"));
    let link =
        |line: String| line.split_whitespace().find(|word| word.contains("#token=")).map(str::to_owned);
    (process, if has_page { lines.find_map(link) } else { None })
}

impl Drop for Up {
    fn drop(&mut self) {
        self.kill();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
