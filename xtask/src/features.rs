//! An operator's program is built of what its tests were built of: the first `cargo run` after `cargo test` compiles the operator alone.

use std::{collections::BTreeSet, process::Command};

/// The operator whose packages are looked at.
const OPERATOR: &str = "website-operator";

/// The packages of the operator, each with its features, along these edges of the dependency graph.
fn packages(edges: &str) -> BTreeSet<String> {
    let tree = ["tree", "--locked", "--package", OPERATOR, "--prefix", "none", "--format", "{p}|{f}"];
    let output =
        Command::new(env!("CARGO")).args(tree).args(["--edges", edges]).output().expect("cargo tree");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("text");
    text.lines().map(|line| line.trim_end_matches(" (*)").to_owned()).collect()
}

#[test]
fn what_a_program_depends_on_has_the_features_that_its_tests_give_it() {
    let (program, tests) = (packages("no-dev"), packages("normal,build,dev"));
    assert!(program.len() > 100 && program.iter().any(|package| package.starts_with("tokio v")));
    let differ: Vec<_> = program.difference(&tests).collect();
    let is_facade = |package: &String| package.starts_with("kubewright v");
    assert!(differ.iter().all(|package| is_facade(package)), "compiled twice: {differ:#?}");
}
