//! The kubewright command as a user runs it: exit codes, what it says, what it leaves behind.

use std::{
    fs,
    io::{BufRead, BufReader, Read},
    net::TcpListener,
    path::PathBuf,
    process::{Child, ChildStdout, Command, Output, Stdio},
    time::Duration,
};

#[cfg(target_os = "linux")]
#[path = "command/build.rs"]
mod build;
#[path = "command/image.rs"]
mod image;
#[path = "command/scaffold.rs"]
mod scaffold;

/// A folder of its own for one test, removed at its end.
struct Folder(PathBuf);

impl Folder {
    fn new(test: &str) -> Self {
        let path = std::env::temp_dir().join(format!("kubewright-command-{test}-{}", std::process::id()));
        fs::create_dir_all(&path).expect("a temporary folder");
        Self(path)
    }

    fn up(&self, arguments: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kubewright"));
        command.arg("up").args(arguments.split_whitespace()).current_dir(&self.0).env_remove("RUST_LOG");
        command
    }

    fn run(&self, arguments: &str) -> Output {
        self.up(arguments).output().expect("kubewright runs")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Asserts that the command was refused with `code` and one line that has all of `words`.
fn assert_refused(output: &Output, code: i32, words: &[&str]) {
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{errors}");
    assert_eq!(errors.lines().count(), 1, "{errors}");
    assert!(errors.starts_with("error: "), "{errors}");
    for word in words {
        assert!(errors.contains(word), "{word} is missing: {errors}");
    }
}

#[test]
fn a_port_in_use_is_told_with_the_remedy() {
    let folder = Folder::new("port");
    let taken = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = taken.local_addr().expect("bound").port();
    let output = folder.run(&format!("--port {port}"));
    assert_refused(&output, 1, &[&format!("127.0.0.1:{port}"), "listens there already", "--port"]);
    assert_eq!(fs::read_dir(&folder.0).expect("a folder").count(), 0, "no kubeconfig is left");
}

#[test]
fn a_kubeconfig_that_cannot_be_written_is_told_with_the_remedy() {
    let folder = Folder::new("unwritable");
    assert_refused(&folder.run("--port 0 --kubeconfig none/config"), 1, &["none/config", "--kubeconfig"]);
}

#[test]
fn somebody_elses_kubeconfig_is_not_overwritten() {
    let folder = Folder::new("foreign");
    fs::write(folder.0.join("config"), "apiVersion: v1\nkind: Config\n").expect("written");
    assert_refused(&folder.run("--port 0 --kubeconfig config"), 1, &["was not written by kubewright"]);
    assert_eq!(fs::read_to_string(folder.0.join("config")).expect("there"), "apiVersion: v1\nkind: Config\n");
}

#[test]
fn a_second_one_in_a_folder_leaves_the_first_its_kubeconfig() {
    let folder = Folder::new("second");
    let kubeconfig = folder.0.join("kubewright.kubeconfig");
    let read = || fs::read_to_string(&kubeconfig).expect("written");
    let (mut running, _output) = Running::start(folder.up("--port 0"), "kubeconfig written");
    let first = read();
    let refused = folder.run("--port 0");
    let server = first.lines().find_map(|line| line.trim().strip_prefix("server: ")).expect("a server");
    assert_refused(&refused, 1, &["kubewright.kubeconfig", &format!("runs at {server}"), "--kubeconfig"]);
    assert_eq!(read(), first);
    assert!(folder.run("--port 0 --kubeconfig other --exit-when-ready").status.success());

    // One that was killed is no longer in the way, and one that ends well takes its file with it.
    running.0.kill().expect("it runs");
    running.0.wait().expect("it ends");
    assert_eq!(read(), first);
    let output = folder.run("--port 0 --exit-when-ready");
    assert!(output.status.success() && !kubeconfig.exists());
    assert!(!String::from_utf8_lossy(&output.stdout).contains("sample"), "there were none");
}

#[test]
fn what_the_system_says_is_told_once() {
    let folder = Folder::new("once");
    fs::write(folder.0.join("file"), "").expect("written");
    let output = folder.run("--port 0 --data file/data");
    assert_refused(&output, 1, &["--data: ", "file/data", "Not a directory"]);
    assert_eq!(String::from_utf8_lossy(&output.stderr).matches("Not a directory").count(), 1);
}

#[test]
fn an_unknown_controller_is_told_with_the_known_ones() {
    let folder = Folder::new("controller");
    assert_refused(
        &folder.run("--port 0 --controllers=*,-deploymint"),
        1,
        &["deploymint", "deployment", "replicaset"],
    );
}

#[test]
fn unknown_flags_and_impossible_numbers_are_usage_errors() {
    let folder = Folder::new("usage");
    assert_refused(&folder.run("--sample"), 2, &["--sample", "--samples"]);
    assert_refused(&folder.run("--samples"), 1, &["--samples", "cargo run --release -- up --samples"]);
    assert_refused(&folder.run("--nodes -1"), 2, &["-1", "0..=1000"]);
    assert_refused(&folder.run("--port 70000"), 2, &["70000", "0..=65535"]);
}

/// A running `up`; killed when dropped.
struct Running(Child);

impl Running {
    /// Starts one and reads what it says until `line` comes.
    fn start(mut command: Command, line: &str) -> (Self, BufReader<ChildStdout>) {
        let mut child = command.stdout(Stdio::piped()).spawn().expect("kubewright runs");
        let mut output = BufReader::new(child.stdout.take().expect("piped"));
        let running = Self(child);
        let mut stdout = String::new();
        while output.read_line(&mut stdout).expect("text") > 0 {
            if stdout.contains(line) {
                return (running, output);
            }
        }
        panic!("{line} is missing: {stdout}");
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn each_command_has_a_manual_page() {
    let folder = Folder::new("man");
    let output = Command::new(env!("CARGO_BIN_EXE_kubewright"))
        .args(["man", "pages/man1"])
        .current_dir(&folder.0)
        .output();
    let output = output.expect("kubewright runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let page = |name: &str| fs::read_to_string(folder.0.join("pages/man1").join(name)).expect("a page");
    assert!(page("kubewright.1").contains("kubewright\\-up(1)"));
    assert!(page("kubewright-up.1").contains("exit\\-with\\-stdin"));
    fs::write(folder.0.join("file"), "").expect("written");
    let output =
        Command::new(env!("CARGO_BIN_EXE_kubewright")).args(["man", "file"]).current_dir(&folder.0).output();
    assert_refused(&output.expect("kubewright runs"), 1, &["cannot write manual pages into file"]);
}

#[test]
fn it_ends_with_its_standard_input_where_that_is_asked_for() {
    let folder = Folder::new("stdin");
    let mut command = folder.up("--port 0 --exit-with-stdin");
    command.stdin(Stdio::piped());
    let (mut running, mut output) = Running::start(command, "kubeconfig written");
    assert!(running.0.try_wait().expect("a child").is_none());
    drop(running.0.stdin.take());
    output.read_to_string(&mut String::new()).expect("it ends");
    assert_eq!(running.0.wait().expect("it ends").code(), Some(0));
    assert!(!folder.0.join("kubewright.kubeconfig").exists());
    let closed = folder.up("--port 0 --exit-with-stdin --quiet").stdin(Stdio::null()).output().expect("runs");
    assert!(closed.status.success(), "{}", String::from_utf8_lossy(&closed.stderr));
}

#[cfg(unix)]
#[test]
fn a_signal_ends_it_with_zero() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new("signal");
    for signal in ["-TERM", "-INT"] {
        let (mut running, mut output) = Running::start(folder.up("--port 0"), "kubeconfig written");
        let mode =
            fs::metadata(folder.0.join("kubewright.kubeconfig")).expect("written").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let (pid, asked) = (running.0.id().to_string(), tokio::time::Instant::now());
        assert!(Command::new("kill").args([signal, &pid]).status().expect("kill runs").success());
        output.read_to_string(&mut String::new()).expect("it ends");
        assert_eq!(running.0.wait().expect("it ends").code(), Some(0), "{signal}");
        assert!(asked.elapsed() < Duration::from_secs(10), "it took {:?}", asked.elapsed());
    }
}

#[test]
fn data_that_another_process_has_is_told_with_its_process() {
    let folder = Folder::new("busy");
    let (running, _output) = Running::start(folder.up("--port 0 --data kept"), "kubeconfig written");
    let refused = folder.run("--port 0 --kubeconfig other --data kept");
    assert_refused(&refused, 1, &["--data", "kept/store", "in use", &running.0.id().to_string()]);
}

#[test]
fn data_that_is_damaged_is_told_with_the_file() {
    let folder = Folder::new("damaged");
    // It ends by itself: what was written last is known to have been acknowledged then.
    let kept = folder.run("--port 0 --data kept --exit-when-ready");
    assert!(kept.status.success(), "{}", String::from_utf8_lossy(&kept.stderr));
    let log = folder.0.join("kept/store/log-00000000000000000000");
    let whole = fs::read(&log).expect("a log");
    let mut damaged = whole.clone();
    damaged[whole.len() / 2] ^= 4;
    fs::write(&log, &damaged).expect("written");
    let refused = folder.run("--port 0 --data kept");
    assert_refused(&refused, 1, &["--data", "log-00000000000000000000 is damaged at byte"]);
    assert_eq!(fs::read(&log).expect("a log"), damaged, "it is left as it was");

    fs::write(&log, whole).expect("written");
    let key = folder.0.join("kept/credentials/ca.key");
    fs::write(&key, "no key").expect("written");
    assert_refused(&folder.run("--port 0 --data kept"), 1, &["credentials/ca", "is damaged"]);
}

#[test]
fn data_that_was_cut_off_is_told_even_when_it_is_to_be_quiet() {
    let folder = Folder::new("cut");
    drop(Running::start(folder.up("--port 0 --data kept"), "kubeconfig written"));
    let log = folder.0.join("kept/store/log-00000000000000000000");
    let whole = fs::read(&log).expect("a log");
    fs::write(&log, &whole[..whole.len() - 100]).expect("written");
    let refused = folder.run("--port 0 --data kept --quiet --exit-when-ready");
    assert_refused(
        &refused,
        1,
        &["log-00000000000000000000 ends at revision", "were acknowledged", "removing kept/store/"],
    );

    // What was never acknowledged: the beginning of a write.
    fs::write(&log, [&whole[..], b"begun"].concat()).expect("written");
    let output = folder.run("--port 0 --data kept --quiet --exit-when-ready");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    assert_eq!(errors.lines().count(), 1, "{errors}");
    assert!(errors.contains("the last write was cut off and is dropped"), "{errors}");
}

#[test]
fn a_folder_of_others_is_not_taken_for_data() {
    let folder = Folder::new("notes");
    fs::create_dir(folder.0.join("notes")).expect("made");
    fs::write(folder.0.join("notes/today.txt"), "milk").expect("written");
    assert_refused(&folder.run("--port 0 --data notes"), 1, &["--data", "notes is not empty"]);
    assert_eq!(fs::read_dir(folder.0.join("notes")).expect("a folder").count(), 1);
}

#[test]
fn version_names_both_versions() {
    let output =
        Command::new(env!("CARGO_BIN_EXE_kubewright")).arg("version").output().expect("kubewright runs");
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert_eq!(stdout, format!("kubewright {} (Kubernetes API v1.37)\n", env!("CARGO_PKG_VERSION")));
}
