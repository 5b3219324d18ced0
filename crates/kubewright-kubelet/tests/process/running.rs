//! Programs that start, and those that do not.

use std::fs;
use std::path::PathBuf;

use kubewright_kubelet::container::log::Options;
use kubewright_kubelet::container::{Runtime, StartError};
use rustix::process::geteuid;

use crate::support::{Bench, read};

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

pub(crate) async fn kernel_parameters_are_the_containers_own() {
    let bench = Bench::new().await;
    let file = "/proc/sys/kernel/shm_rmid_forced";
    let before = fs::read_to_string(file).unwrap_or_default();
    let mut spec = bench.script(&format!("cat {file}"));
    spec.sysctls.insert("kernel.shm_rmid_forced".to_owned(), "1".to_owned());
    if bench.has("ipc") {
        // Users and their rights differ by kernel: who may not, hears so.
        match bench.runtime.start(spec.clone()).await {
            Ok(container) => {
                assert_eq!(container.exited().await.code, 0);
                assert_eq!(read(&spec.log, Options::default()).await, "1\n");
            }
            Err(error) => {
                assert!(!geteuid().is_root(), "{error}");
                assert!(error.to_string().ends_with(&format!("open {file}: permission denied")), "{error}");
            }
        }
        assert_eq!(fs::read_to_string(file).unwrap_or_default(), before);
    }
    spec.sysctls.insert("vm.swappiness".to_owned(), "1".to_owned());
    let refused = bench.refusal(spec).await.to_string();
    assert!(refused.ends_with("is not in a separate kernel namespace"), "{refused}");
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
