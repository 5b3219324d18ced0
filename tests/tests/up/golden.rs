//! Conversations recorded from a real kube-apiserver v1.36.3, held again with `kubewright up`.

use std::{collections::BTreeSet, path::Path, process::Command};

use kubewright_tests::{Up, needed};

/// The heading in the README of the conversations that are known to differ.
const DIFFERING: &str = "### Recorded conversations that differ";

/// A conversation goes as it went with kube-apiserver, or the README says that it does not, and why.
#[test]
#[ignore = "needs Python: cargo xtask test"]
fn recorded_conversations_go_as_with_kube_apiserver_or_the_fidelity_table_says_why_not() {
    let up = Up::start("golden", &["--nodes", "0"]);
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    let replay = Command::new(needed("PYTHON"))
        .arg(tests.join("golden/golden.py"))
        .args(["replay", "--jobs", "4", "--kubeconfig"])
        .arg(up.kubeconfig())
        .arg(tests.join("golden/recorded"))
        .output()
        .expect("Python starts");
    let told = String::from_utf8_lossy(&replay.stdout);
    let replayed = told.lines().last().unwrap_or_default();
    assert!(replayed.contains(" passed, "), "{told}\n{}", String::from_utf8_lossy(&replay.stderr));

    let failed: BTreeSet<&str> = told.lines().filter_map(|line| line.strip_prefix("FAIL ")).collect();
    let readme = std::fs::read_to_string(tests.with_file_name("README.md")).expect("the README");
    assert_eq!(failed, differing(&readme), "what failed, and what the README lists\n{told}");
}

/// The names in the first column of the table below the heading.
fn differing(readme: &str) -> BTreeSet<&str> {
    let section = readme.split_once(DIFFERING).expect("the README has the section").1;
    let rows = section.lines().skip(1).take_while(|line| !line.starts_with('#'));
    rows.filter_map(|line| line.strip_prefix("| `")?.split_once('`')).map(|(name, _)| name).collect()
}
