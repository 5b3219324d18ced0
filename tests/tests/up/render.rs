//! `kubewright render --golden` on an operator in Go (`tests/envtest-go/press`), and on our own.

use std::path::PathBuf;
use std::process::{Command, Output};

use kubewright_tests::needed;

#[test]
#[ignore = "needs Go and the built command: cargo xtask test"]
fn golden_files_of_samples_are_written_and_a_program_that_makes_something_else_fails() {
    let folder = std::env::temp_dir().join(format!("kubewright-golden-press-{}", std::process::id()));
    let config = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("envtest-go/press/config");
    let render = |options: &[&str], program: &[&str]| -> Output {
        let mut command = Command::new(needed("KUBEWRIGHT"));
        command.arg("render").arg("-f").arg(config.join("samples")).arg("--manifests").arg(&config);
        command.arg("--golden").arg(&folder).args(options).arg("--").arg(needed("PRESS")).args(program);
        command.output().expect("it runs")
    };
    let said = |output: &Output| String::from_utf8_lossy(&output.stdout).into_owned();

    let missing = render(&[], &[]);
    assert!(
        missing.status.code() == Some(1) && said(&missing).contains("page.yaml: is missing"),
        "{missing:?}"
    );
    let written = render(&["--write"], &[]);
    let golden = std::fs::read_to_string(folder.join("page.yaml"));
    let same = render(&[], &[]);
    let bug = render(&[], &["--bug", "missing-owner"]);
    let _ = std::fs::remove_dir_all(&folder);

    assert!(written.status.success(), "{written:?}");
    let golden = golden.expect("it is written");
    assert!(golden.contains("# configmaps/hello-page -n default"), "{golden}");
    assert!(same.status.success() && same.stdout.is_empty(), "{same:?}");
    assert_eq!(bug.status.code(), Some(1), "{bug:?}");
    let told = said(&bug);
    assert!(told.contains("page.yaml: differs") && told.contains("-  ownerReferences:"), "{told}");
}

/// Our operators that make something of their samples at once: their folders, and their programs.
const OPERATORS: [(&str, &str); 3] =
    [("app-service", "app-service"), ("memcached", "memcached-operator"), ("whitelist", "whitelist")];

/// Written by `kubewright render --golden golden --write` in the folder of each.
#[test]
#[ignore = "needs the built command: cargo xtask test"]
fn our_operators_make_of_their_samples_what_their_golden_files_say() {
    let kubewright = needed("KUBEWRIGHT");
    let operators = PathBuf::from(env!("CARGO_MANIFEST_DIR")).with_file_name("operators");
    for (folder, program) in OPERATORS {
        let (folder, program) = (operators.join(folder), kubewright.with_file_name(program));
        let manifests = std::env::temp_dir()
            .join(format!("{}-{}.yaml", folder.display(), std::process::id()).replace('/', "-"));
        let printed = Command::new(&program).arg("manifests").output().expect("its manifests");
        std::fs::write(&manifests, printed.stdout).expect("a temporary file");
        let mut render = Command::new(&kubewright);
        render.arg("render").arg("-f").arg(folder.join("config/samples")).arg("--manifests").arg(&manifests);
        let same = render.arg("--golden").arg(folder.join("golden")).arg("--").arg(&program).output();
        let _ = std::fs::remove_file(&manifests);
        let same = same.expect("it runs");
        let told = String::from_utf8_lossy(&same.stdout);
        assert!(
            same.status.success(),
            "{}: {told}{}",
            folder.display(),
            String::from_utf8_lossy(&same.stderr)
        );
    }
}
