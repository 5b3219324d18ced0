//! `up --samples` as a user runs it.

use std::{
    fs,
    path::PathBuf,
    process::{Command, Output},
};

/// A folder of its own for one test, removed at its end.
struct Folder(PathBuf);

impl Folder {
    fn new(test: &str) -> Self {
        let path = std::env::temp_dir().join(format!("kubewright-samples-{test}-{}", std::process::id()));
        fs::create_dir_all(&path).expect("a temporary folder");
        Self(path)
    }

    /// Runs `up --port 0 --samples --exit-when-ready` with further arguments.
    fn run(&self, arguments: &str) -> Output {
        Command::new(env!("CARGO_BIN_EXE_kubewright-samples"))
            .args(["up", "--port", "0", "--samples", "--exit-when-ready"])
            .args(arguments.split_whitespace())
            .current_dir(&self.0)
            .env_remove("RUST_LOG")
            .output()
            .expect("kubewright-samples runs")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The name of the pod of the WhiteList, where a line says that it is ready.
fn ready_pod(line: &str) -> Option<String> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let is_its = |word: &&&str| word.starts_with("pod/whitelist-sample-deployment-");
    words.get(1).filter(is_its).filter(|_| words.last() == Some(&"ready")).map(|&name| name.to_owned())
}

/// The token in the kubeconfig of a folder.
fn token(folder: &Folder) -> String {
    let kubeconfig = fs::read_to_string(folder.0.join("kubewright.kubeconfig")).expect("written");
    kubeconfig.lines().find(|line| line.contains("token:")).expect("a token").to_owned()
}

#[test]
fn the_samples_converge_and_each_step_is_told() {
    let folder = Folder::new("samples");
    let output = folder.run("");
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{stdout}{}", String::from_utf8_lossy(&output.stderr));
    let lines: Vec<String> =
        stdout.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    let mut from = 0;
    for line in [
        "API server ready at https://127.0.0.1:",
        "kubeconfig written to kubewright.kubeconfig",
        "export KUBECONFIG=/",
        "node-0 is simulated: its pods do not run, whatever their status says; kubewright up --runtime process runs them",
        "operator whitelist runs as system:serviceaccount:whitelist-system:whitelist",
        "whitelist/whitelist-sample created",
        "every sample has converged",
    ] {
        let next = lines[from..].iter().position(|said| said.contains(line));
        from += next.unwrap_or_else(|| panic!("{line} is missing, or too early: {stdout}"));
    }
    for line in ["deployment/whitelist-sample-deployment created", "whitelist/whitelist-sample ready"] {
        assert!(lines.iter().any(|said| said.contains(line)), "{line} is missing: {stdout}");
    }
    assert!(!stdout.contains('\u{1b}'), "what is piped has no colours: {stdout}");
    assert!(!folder.0.join("kubewright.kubeconfig").exists(), "it leads nowhere any more");
    // WL-05
    let log = String::from_utf8_lossy(&output.stderr);
    assert!(log.contains("Creating Deployment default/whitelist-sample-deployment"), "{log}");
}

#[test]
fn quiet_says_nothing() {
    let folder = Folder::new("quiet");
    let output = folder.run("--quiet");
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}

#[test]
fn a_sample_that_does_not_converge_is_told_with_its_condition() {
    let folder = Folder::new("stuck");
    let output = folder.run("--quiet --timeout 1 --controllers=*,-deployment");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{errors}");
    assert_eq!(errors.lines().count(), 1, "{errors}");
    for word in ["not converged within 1 s", "whitelist default/whitelist-sample", "Available is False"] {
        assert!(errors.starts_with("error: ") && errors.contains(word), "{word} is missing: {errors}");
    }
}

#[test]
fn the_same_seed_gives_the_same_names() {
    let folder = Folder::new("seed");
    let pods = |seed: &str| -> Vec<String> {
        let output = folder.run(&format!("--seed {seed}"));
        let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
        stdout.lines().filter_map(ready_pod).collect()
    };
    let first = pods("7");
    assert_eq!(first.len(), 1, "{first:?}");
    assert_eq!(first, pods("7"));
}

#[test]
fn a_cluster_with_data_goes_on_where_it_was() {
    let folder = Folder::new("data");
    let first = folder.run("--data kept");
    let stdout = String::from_utf8_lossy(&first.stdout).into_owned();
    assert!(first.status.success(), "{stdout}{}", String::from_utf8_lossy(&first.stderr));
    let pod = |stdout: &str| stdout.lines().find_map(ready_pod).expect("a pod");
    let (before, name) = (token(&folder), pod(&stdout));

    let again = folder.run("--data kept");
    let stdout = String::from_utf8_lossy(&again.stdout).into_owned();
    assert!(again.status.success(), "{stdout}{}", String::from_utf8_lossy(&again.stderr));
    assert_eq!(pod(&stdout), name, "it is the pod of the first run");
    assert_eq!(token(&folder), before);
}
