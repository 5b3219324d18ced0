//! The tree of the page of `up --ui`, which `kubewright-view` makes for the terminal, too.

use std::{path::Path, process::Command};

use kubewright_tests::needed;

#[test]
#[ignore = "needs Node: cargo xtask test"]
fn the_tree_of_the_page_is_the_one_of_the_terminal() {
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/kubewright-view/cases/tree.mjs");
    let output = Command::new(needed("NODE")).arg(cases).output().expect("Node starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
