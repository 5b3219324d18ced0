//! The Python client (`kubernetes` on PyPI) on `kubewright up`.

use std::{path::Path, process::Command};

use kubewright_tests::{Up, needed};

#[test]
#[ignore = "needs Python and its Kubernetes client: cargo xtask test"]
fn the_python_client_creates_watches_applies_and_deletes() {
    let up = Up::start("python", &[]);
    let output = Command::new(needed("PYTHON_WITH_CLIENT"))
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("clients/round.py"))
        .env("KUBECONFIG", up.kubeconfig())
        .output()
        .expect("Python starts");
    let told = String::from_utf8_lossy(&output.stdout);
    let problems = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}\n{problems}");
    assert!(told.ends_with("done\n"), "{told}\n{problems}");
}
