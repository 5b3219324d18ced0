//! `cargo xtask ci`

use std::{
    io::Write,
    path::Path,
    process::{Command, Output},
};

use anyhow::{Context, Result, bail};

use crate::{
    book, release,
    run::{cargo, run, workspace},
    test::test_all,
    tools,
};

/// What a change must pass; ends at the first thing that it does not.
pub(crate) fn ci() -> Result<()> {
    run(&mut cargo(["fmt", "--all", "--check"]))?;
    run(&mut cargo(["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]))?;
    // What the SDK is without anything, and with the command line but no webhooks.
    for features in ["", "command"] {
        let package = ["clippy", "--package", "kubewright", "--all-targets", "--no-default-features"];
        run(cargo(package).args(["--features", features, "--", "-D", "warnings"]))?;
    }
    let deny = tools::cargo_deny()?;
    run(Command::new(&deny).args(["check", "bans", "licenses", "sources"]).current_dir(workspace()))?;
    let advisories = advisories(&deny)?;
    run(cargo(["doc", "--workspace", "--no-deps"]).env("RUSTDOCFLAGS", "-D warnings"))?;
    run(&mut release::dry_run())?;
    book::build_where_it_can_be()?;
    test_all()?;
    eprintln!("== {advisories}");
    Ok(())
}

/// Checks each crate as `cargo test -p` and a registry's user build it: of a dependency it has the features that it asks for, and
/// not those that its neighbours in the workspace need. Each is a graph of features of its own, so dependencies are checked
/// again for most: it is no part of what every change must pass.
///
/// # Errors
/// When a crate does not compile so.
pub(crate) fn each_crate_alone() -> Result<()> {
    let folders = std::fs::read_dir(workspace().join("crates"))?;
    let mut names =
        folders.map(|folder| Ok(folder?.file_name().into_string())).collect::<Result<Vec<_>>>()?;
    names.sort();
    for name in names.iter().flatten() {
        run(&mut cargo(["check", "--package", name, "--all-targets"]))?;
    }
    Ok(())
}

/// Checks the dependencies against the RustSec advisories. Where their database cannot be reached this is said, and is
/// no failure: the change under test cannot help it.
fn advisories(deny: &Path) -> Result<&'static str> {
    eprintln!("\n== cargo-deny check advisories");
    let output = Command::new(deny)
        .args(["check", "advisories"])
        .current_dir(workspace())
        .output()
        .context("cannot run cargo-deny")?;
    std::io::stderr().write_all(&output.stderr)?;
    match output {
        Output { status, .. } if status.success() => Ok("no dependency has an open advisory"),
        Output { stderr, .. }
            if String::from_utf8_lossy(&stderr).contains("failed to fetch advisory database") =>
        {
            Ok("the advisories WERE NOT CHECKED: their database cannot be reached from here")
        }
        Output { status, .. } => bail!("cargo-deny found an advisory ({status})"),
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, fs, path::Path};

    use crate::{run::workspace, words::rust_files};

    /// Where `cargo test` is told that a crate has no examples in its documentation, there are none.
    #[test]
    fn no_example_stands_where_examples_are_not_tried() {
        let has_example = |folder: &Path| {
            let mut files = Vec::new();
            rust_files(folder, &mut files);
            let is_example = |line: &str| {
                let line = line.trim_start();
                line.starts_with("/// ```") || line.starts_with("//! ```")
            };
            files.iter().any(|file| fs::read_to_string(file).expect("a file").lines().any(is_example))
        };
        let mut untried = 0;
        for folder in ["crates", "operators"] {
            for entry in fs::read_dir(workspace().join(folder)).expect("a folder").flatten() {
                let manifest = fs::read_to_string(entry.path().join("Cargo.toml")).expect("a manifest");
                if manifest.contains("doctest = false") {
                    untried += 1;
                    assert!(!has_example(&entry.path().join("src")), "{}", entry.path().display());
                }
            }
        }
        assert!(untried > 10, "only {untried} crates say so");
    }

    /// `serde_json::from_value` is the code of a type once more. (Clippy cannot be asked: kube's derive calls it in each custom kind.)
    #[test]
    fn objects_are_read_from_their_text_alone() {
        let (mut crates, mut wrong) = (0, Vec::new());
        for folder in ["crates", "operators"] {
            for entry in fs::read_dir(workspace().join(folder)).expect("a folder").flatten() {
                let manifest = fs::read_to_string(entry.path().join("Cargo.toml")).expect("a manifest");
                let has_them = |line: &str| {
                    ["kubewright-objects.", "kubewright.", "kubewright ="]
                        .iter()
                        .any(|name| line.starts_with(name))
                };
                if manifest.lines().any(has_them) {
                    crates += 1;
                    let mut files = Vec::new();
                    rust_files(&entry.path(), &mut files);
                    wrong.extend(files.into_iter().filter(|file| {
                        fs::read_to_string(file).expect("a file").contains("serde_json::from_value")
                    }));
                }
            }
        }
        assert_eq!(wrong, [] as [std::path::PathBuf; 0], "use from_value of kubewright-objects");
        assert!(crates > 10, "only {crates} crates were looked at");
    }

    /// What tests a crate from above stands above it: `cargo publish` wants all that a crate needs to be there before it.
    #[test]
    fn no_dependency_of_tests_closes_a_circle() {
        /// The harness's examples are an operator's, who imports the facade; the built-in controllers are tried in a whole cluster.
        const KNOWN: [&str; 2] =
            ["kubewright-controllers -> kubewright-cluster", "kubewright-testing -> kubewright"];
        let arrows = arrows();
        let mut circles = BTreeSet::new();
        for (from, to) in arrows.iter().filter(|(_, _, kind)| kind == "dev").map(|(from, to, _)| (from, to)) {
            let (mut above, mut next) = (BTreeSet::new(), vec![to]);
            while let Some(one) = next.pop() {
                if above.insert(one) {
                    next.extend(arrows.iter().filter(|(from, ..)| from == one).map(|(_, to, _)| to));
                }
            }
            if above.contains(from) {
                circles.insert(format!("{from} -> {to}"));
            }
        }
        assert_eq!(circles, KNOWN.map(str::to_owned).into());
    }

    /// Which member of the workspace depends on which other, and how: `normal`, `build` or `dev`.
    fn arrows() -> Vec<(String, String, String)> {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let told = std::process::Command::new(cargo)
            .args(["metadata", "--no-deps", "--offline", "--format-version", "1"])
            .current_dir(workspace())
            .output()
            .expect("cargo");
        let told: serde_json::Value = serde_json::from_slice(&told.stdout).expect("JSON");
        let text = |value: &serde_json::Value| value.as_str().map(str::to_owned);
        let packages = told["packages"].as_array().expect("packages");
        let members: BTreeSet<String> =
            packages.iter().filter_map(|package| text(&package["name"])).collect();
        let of_package = |package: &serde_json::Value| {
            let from = text(&package["name"]).expect("a name");
            let needed = package["dependencies"].as_array().expect("dependencies").clone();
            needed.into_iter().map(move |one| {
                let kind = text(&one["kind"]).unwrap_or_else(|| "normal".to_owned());
                (from.clone(), text(&one["name"]).expect("a name"), kind)
            })
        };
        packages.iter().flat_map(of_package).filter(|(_, to, _)| members.contains(to)).collect()
    }

    /// The tree stays small because each direct dependency has to say why it is there.
    #[test]
    fn every_direct_dependency_has_a_line_of_reason_in_the_architecture() {
        let read = |name| fs::read_to_string(workspace().join(name)).expect(name);
        let (manifest, architecture) = (read("Cargo.toml"), read("ARCHITECTURE.md"));
        let reasons: Vec<&str> = architecture.lines().filter(|line| line.starts_with("| ")).collect();
        let dependencies = manifest
            .lines()
            .skip_while(|line| *line != "[workspace.dependencies]")
            .skip(1)
            .take_while(|line| !line.starts_with('['))
            .filter_map(|line| Some(line.split_once(" = ")?.0))
            .filter(|name| !name.starts_with("kubewright"));
        let unexplained: Vec<&str> = dependencies
            .filter(|name| {
                let is_named = |row: &&str| {
                    row.split('|').nth(1).is_some_and(|cell| cell.split(',').any(|word| word.trim() == *name))
                };
                !reasons.iter().any(is_named)
            })
            .collect();
        assert_eq!(unexplained, [] as [&str; 0], "add them to the table in ARCHITECTURE.md");
        assert!(reasons.len() > 20, "the table was not found");
    }
}
