//! Whether all crates can be published, and used by who has nothing but them.

use std::{collections::BTreeMap, fs, path::Path, process::Command};

use anyhow::{Context, Result, bail, ensure};

use super::registry::Registry;
use crate::run::{cargo, run, target, workspace};

/// What `cargo publish` will do, but for the upload and for building each crate.
pub(crate) fn dry_run() -> Command {
    cargo(["publish", "--workspace", "--dry-run", "--no-verify", "--allow-dirty", "--quiet"])
}

/// Builds each crate from its packaged files, and takes the packages as somebody who has no checkout.
pub(super) fn check() -> Result<()> {
    run(&mut dry_run())?;
    semver()?;
    let registry = Registry::fill(&target().join("release-check"))?;
    guide(&registry)?;
    all(&registry)?;
    install(&registry)
}

/// Builds all crates in one project that depends on each. (`cargo publish` builds each with its dependencies anew: that takes hours.)
fn all(registry: &Registry) -> Result<()> {
    let place = registry.fresh_folder("all")?;
    run(registry.cargo(["init", "--lib", "--vcs", "none", "--name", "all"]).current_dir(&place))?;
    run(registry.cargo(["add", "k8s-openapi", "--features", "v1_36"]).current_dir(&place))?;
    run(registry.cargo(["add"]).args(registry.names()).current_dir(&place))?;
    run(registry.cargo(["build"]).current_dir(&place))
}

/// Compares the SDK with that of the last release, where there was one.
fn semver() -> Result<()> {
    let mut tags = Command::new("git");
    tags.args(["tag", "--list", "v*", "--sort=-v:refname"]).current_dir(workspace());
    let tags = tags.output().context("cannot run git")?;
    let tags = String::from_utf8(tags.stdout)?;
    let Some(last) = tags.lines().next() else {
        eprintln!("== semver WAS NOT CHECKED: there is no release to compare with");
        return Ok(());
    };
    let tool = crate::tools::cargo_semver_checks()?;
    let arguments =
        ["semver-checks", "--package", "kubewright", "--features", "v1_36", "--baseline-rev", last];
    run(Command::new(tool).args(arguments).current_dir(workspace()))
}

/// Follows docs/first-operator.md: its `cargo` commands, what it has typed into files, its test.
fn guide(registry: &Registry) -> Result<()> {
    let text = fs::read_to_string(workspace().join("docs/first-operator.md"))?;
    let commands: Vec<&str> = text.lines().filter(|line| line.starts_with("cargo add ")).collect();
    ensure!(commands.len() > 3, "the guide's commands were not found");
    let place = registry.fresh_folder("guide")?;
    run(registry.cargo(["new", "--vcs", "none", "website-operator"]).current_dir(&place))?;
    let project = place.join("website-operator");
    for command in commands {
        run(registry.cargo(command.split_whitespace().skip(1)).current_dir(&project))?;
    }
    for (file, content) in typed(&text) {
        let file = project.join(file);
        fs::create_dir_all(file.parent().context("a folder")?)?;
        fs::write(file, content)?;
    }
    run(registry.cargo(["test"]).current_dir(&project))
}

/// Installs the command, and makes and tests a project with it.
fn install(registry: &Registry) -> Result<()> {
    let root = registry.folder().join("installed");
    let root = root.to_str().context("a path that is no text")?;
    run(&mut registry.cargo(["install", "--locked", "--force", "--root", root, "kubewright-cli"]))?;
    let command = Path::new(root).join("bin/kubewright");
    run(Command::new(&command).arg("version"))?;
    let place = registry.fresh_folder("scaffold")?;
    let kubewright = |arguments: &[&str]| {
        let mut run = Command::new(&command);
        run.args(arguments).current_dir(&place).env("CARGO_HOME", registry.cargo_home());
        run
    };
    run(&mut kubewright(&["init", "--domain", "example.org"]))?;
    run(&mut kubewright(&[
        "create",
        "api",
        "--group",
        "web",
        "--version",
        "v1",
        "--kind",
        "Page",
        "--resource",
        "--controller",
    ]))?;
    let manifest = fs::read_to_string(place.join("Cargo.toml"))?;
    if manifest.lines().any(|line| line.starts_with("kubewright ") && line.contains("path")) {
        bail!("the project takes the SDK from a folder:\n{manifest}");
    }
    run(registry.cargo(["test"]).current_dir(&place))
}

/// What a guide has typed into files: the blocks below a line that is a path.
fn typed(guide: &str) -> BTreeMap<&str, String> {
    let (mut file, mut is_open, mut files) = ("", false, BTreeMap::<&str, String>::new());
    for line in guide.lines() {
        match (is_open, line) {
            (true, "```") => is_open = false,
            (true, _) => *files.entry(file).or_default() += &format!("{line}\n"),
            (false, "```rust" | "```yaml") => is_open = true,
            (false, _) => {
                let path = line.strip_prefix('`').and_then(|path| path.strip_suffix('`'));
                file = path.filter(|path| !path.contains('`')).unwrap_or(file);
            }
        }
    }
    files
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn manifests_below(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).expect("a folder").flatten() {
            match entry.file_type().expect("a type").is_dir() {
                true => manifests_below(&entry.path(), found),
                false if entry.file_name() == "Cargo.toml" => found.push(entry.path()),
                false => {}
            }
        }
    }

    /// Cargo packages no folder that has a Cargo.toml: it takes it for another package.
    #[test]
    fn nothing_that_a_crate_compiles_is_left_out_of_its_package() {
        let mut crates = 0;
        for entry in fs::read_dir(workspace().join("crates")).expect("a folder").flatten() {
            let mut found = Vec::new();
            manifests_below(&entry.path(), &mut found);
            let own = [entry.path().join("Cargo.toml")];
            // What tests read need not be published.
            found.retain(|manifest| !manifest.starts_with(entry.path().join("tests")));
            assert_eq!(found, own);
            crates += 1;
        }
        assert!(crates > 20, "only {crates} crates were looked at");
    }
}
