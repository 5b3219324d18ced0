//! Programs that start, and those that do not.

use std::path::PathBuf;

use kubewright_kubelet::container::{Runtime, StartError};

use crate::support::Bench;

pub(crate) async fn a_program_runs_and_its_exit_code_is_told() {
    let bench = Bench::new().await;
    println!("{:?}", bench.runtime.isolation());
    let mut spec = bench.script("echo $GREETING from $(pwd); echo oops >&2; exit 7");
    spec.environment.insert("GREETING".to_owned(), "hello".to_owned());
    spec.working_directory = PathBuf::from("/usr");
    let (exit, log) = bench.run(spec).await;
    assert_eq!((exit.code, exit.signal, exit.out_of_memory), (7, None, false));
    let mut lines: Vec<&str> = log.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["hello from /usr", "oops"]);
}

pub(crate) async fn what_cannot_be_started_is_told_in_the_words_of_runc() {
    let bench = Bench::new().await;
    let before = "failed to create containerd task: failed to create shim task: OCI runtime create failed: runc create \
        failed: unable to start container process: error during container init: ";
    for (program, reason) in [
        ("nope", r#"exec: "nope": executable file not found in $PATH"#),
        ("/nope", r#"exec: "/nope": stat /nope: no such file or directory"#),
        ("/etc/passwd", r#"exec: "/etc/passwd": permission denied"#),
        ("/etc", r#"exec: "/etc": is a directory"#),
    ] {
        let refusal = bench.refusal(bench.spec(&[program])).await;
        assert_eq!(refusal, StartError::Run(format!("{before}{reason}")));
    }
}
