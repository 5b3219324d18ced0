//! The program itself, as a suite starts it.

use std::process::{Command, Output};

fn run(arguments: &[&str], variables: &[(&str, &str)]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kubewright-envtest"));
    command.args(arguments).envs(variables.iter().copied()).output().expect("the program starts")
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("text")
}

#[test]
fn asked_for_controllers_it_names_the_program_that_has_them() {
    let ended = run(&["kube-apiserver"], &[("KUBEWRIGHT_CONTROLLERS", "garbagecollector")]);
    assert_eq!(ended.status.code(), Some(1));
    let error = text(&ended.stderr);
    assert!(error.starts_with("Error: KUBEWRIGHT_CONTROLLERS: this program has no controllers"), "{error}");
    assert!(error.contains("`kubewright`"), "{error}");
}

#[test]
fn it_answers_for_both_programs_what_their_version_is() {
    for (program, begin) in [("kube-apiserver", "Kubernetes v1."), ("etcd", "etcd Version: ")] {
        let ended = run(&[program, "--version"], &[]);
        assert!(ended.status.success(), "{program}");
        assert!(text(&ended.stdout).starts_with(begin), "{program}: {}", text(&ended.stdout));
    }
}

#[test]
fn without_a_word_it_says_what_it_can_do() {
    let ended = run(&[], &[]);
    assert_eq!(ended.status.code(), Some(2));
    assert!(text(&ended.stderr).contains("install"), "{}", text(&ended.stderr));
}

#[test]
fn each_version_is_a_folder_of_links_that_answers_as_that_version() {
    let dir = std::env::temp_dir().join(format!("kubewright-envtest-versions-{}", std::process::id()));
    let envtest = |arguments: &[&str]| {
        let ended = run(&[arguments, &["--dir", dir.to_str().expect("text")]].concat(), &[]);
        let told = (text(&ended.stdout).to_owned(), text(&ended.stderr).to_owned());
        (ended.status.code(), told.0, told.1)
    };
    let used = |version: &str, more: &[&str]| envtest(&[&["use", version, "-p", "path"], more].concat());

    let (code, _, error) = used("1.35", &["-i"]);
    assert_eq!(code, Some(1));
    assert!(error.contains(r#"no Kubernetes version "1.35" is installed; none is"#), "{error}");
    assert_eq!(envtest(&["install", "--version", "1.35.0"]).0, Some(0));
    let (_, older, _) = used("1.35.x", &["-i"]);
    assert!(older.contains("/k8s/1.35.0-"), "{older}");
    let (code, newest, _) = used(">=1.35 <1.36!", &[]);
    assert_eq!(code, Some(0), "a newer one is laid out where the newest is asked for");

    for (folder, release) in [(&older, "v1.35.4"), (&newest, "v1.35.4")] {
        let program = std::path::Path::new(folder).join("kube-apiserver");
        let ended = Command::new(program).arg("--version").output().expect("the link leads to the program");
        assert_eq!(text(&ended.stdout), format!("Kubernetes {release}+kubewright\n"));
    }

    let (_, listed, _) = envtest(&["list", "1.35"]);
    let states: Vec<_> =
        listed.lines().map(|line| line.split_whitespace().take(2).collect::<Vec<_>>()).collect();
    assert_eq!(states, [["(installed)", "v1.35.4"], ["(installed)", "v1.35.0"], ["(available)", "v1.35.4"]]);
    let (_, removed, _) = envtest(&["cleanup", "<1.35.4"]);
    assert!(removed.starts_with("removed 1.35.0 (") && removed.lines().count() == 1, "{removed}");
    assert!(!std::path::Path::new(&older).exists() && std::path::Path::new(&newest).exists());
    assert_eq!(envtest(&["cleanup"]).1.lines().count(), 1);
    let _ = std::fs::remove_dir_all(&dir);

    for (arguments, told) in [
        (["install", "--version", "1.30"], "is not supported; supported are 1.35, 1.36, 1.37"),
        (["use", "1.36.3.1", "-i"], "is no version: write 1.35.4, 1.35, 1.35.x"),
    ] {
        let (code, _, error) = envtest(&arguments);
        assert!(code != Some(0) && error.contains(told), "{error}");
    }
}
