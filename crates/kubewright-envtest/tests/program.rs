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
