//! A release: version, change log, commit, tag; and what publishes it.

use std::{fs, process::Command};

use anyhow::{Context, Result, bail, ensure};
use semver::Version;
use toml_edit::{DocumentMut, Item, value};

use crate::{
    run::{cargo, run, workspace},
    tools,
};

/// Where the packages for other languages say their version: files, and how the lines begin that say it.
const PACKAGES: [(&str, &[&str]); 9] = [
    ("bindings/devcontainer/README.md", &["| `version` |"]),
    (
        "bindings/devcontainer/src/kubewright/devcontainer-feature.json",
        &["    \"version\":", "            \"proposals\":", "            \"default\":"],
    ),
    ("bindings/docker/README.md", &["docker build --file bindings/docker/Dockerfile --build-arg"]),
    ("bindings/github-action/README.md", &["- uses: kubewright", "    version:"]),
    ("bindings/java/README.md", &["  <version>"]),
    ("bindings/java/pom.xml", &["  <version>"]),
    ("bindings/node/package.json", &["  \"version\":", "  \"optionalDependencies\":"]),
    ("bindings/python/pyproject.toml", &["version ="]),
    ("bindings/tilt/README.md", &["v1alpha1.extension_repo"]),
];

/// Writes the version and the change log, commits both and tags the commit.
pub(super) fn prepare(version: &Version) -> Result<()> {
    let changes = git_says(&["status", "--porcelain"])?;
    ensure!(changes.is_empty(), "there is uncommitted work:\n{changes}");
    let path = workspace().join("Cargo.toml");
    let (manifest, before) = with_version(&fs::read_to_string(&path)?, version)?;
    // The first release has the version that is there already.
    let is_tagged = !git_says(&["tag", "--list", &format!("v{before}")])?.is_empty();
    ensure!(
        *version > before || (*version == before && !is_tagged),
        "{version} does not come after {before}"
    );
    fs::write(&path, manifest)?;
    for (file, lines) in PACKAGES {
        let path = workspace().join(file);
        let text = with_lines(&fs::read_to_string(&path)?, lines, &before, version);
        fs::write(&path, text.with_context(|| file.to_owned())?)?;
    }
    run(&mut cargo(["update", "--workspace"]))?;
    let tag = format!("v{version}");
    let cliff = tools::git_cliff()?;
    run(Command::new(cliff).args(["--tag", &tag, "--output", "CHANGELOG.md"]).current_dir(workspace()))?;
    run(&mut git(&["add", "--update"]))?;
    run(&mut git(&["commit", "--quiet", "--message", &format!("Release {version}")]))?;
    run(&mut git(&["tag", "--annotate", &tag, "--message", &format!("Kubewright {version}")]))
}

/// Checks what is to be published, pushes it, and publishes the crates; the tag lets the programs be built.
pub(super) fn publish(version: &Version) -> Result<()> {
    run(&mut super::dry_run())?;
    run(&mut git(&["push", "--atomic", "origin", "HEAD", &format!("v{version}")]))?;
    let mut publish = cargo(["publish", "--workspace"]);
    run(publish.env("K8S_OPENAPI_ENABLED_VERSION", "1.36"))
}

/// The workspace's manifest with this version, which all of its crates have and take of each other; and the version it had.
fn with_version(manifest: &str, version: &Version) -> Result<(String, Version)> {
    let mut document: DocumentMut = manifest.parse()?;
    let own = &mut document["workspace"]["package"]["version"];
    let before: Version = own.as_str().context("workspace.package.version is no text")?.parse()?;
    set(own, version.to_string());
    let Some(dependencies) = document["workspace"]["dependencies"].as_table_like_mut() else {
        bail!("there are no workspace.dependencies");
    };
    for (_, dependency) in dependencies.iter_mut() {
        // `get_mut` makes what is not there.
        if dependency.get("path").is_some()
            && dependency.get("version").is_some()
            && let Some(taken) = dependency.get_mut("version")
        {
            set(taken, format!("={version}"));
        }
    }
    Ok((document.to_string(), before))
}

/// A file in which the first line that begins with each of these has another version.
fn with_lines(text: &str, begins: &[&str], before: &Version, version: &Version) -> Result<String> {
    let (before, version) = (before.to_string(), version.to_string());
    let mut lines: Vec<String> = text.split_inclusive('\n').map(str::to_owned).collect();
    for begin in begins {
        let line = lines.iter_mut().find(|line| line.starts_with(begin));
        let line = line.with_context(|| format!("no line begins with {begin:?}"))?;
        ensure!(line.contains(&before), "the version is not in {line:?}");
        *line = line.replace(&before, &version);
    }
    Ok(lines.concat())
}

/// Sets a value and leaves the spaces around it.
fn set(item: &mut Item, text: String) {
    let decor = item.as_value().map(|value| value.decor().clone());
    *item = value(text);
    if let (Some(new), Some(decor)) = (item.as_value_mut(), decor) {
        *new.decor_mut() = decor;
    }
}

fn git(arguments: &[&str]) -> Command {
    let mut command = Command::new("git");
    command.args(arguments).current_dir(workspace());
    command
}

fn git_says(arguments: &[&str]) -> Result<String> {
    let output = git(arguments).output().context("cannot run git")?;
    ensure!(
        output.status.success(),
        "git {}: {}",
        arguments.join(" "),
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(String::from_utf8(output.stdout)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_that_of_all_crates_and_of_what_they_take_of_each_other() {
        let manifest = r#"[workspace.package]
version = "0.1.0" # of all
edition = "2024"

[workspace.dependencies]
kubewright = { version = "=0.1.0", path = "crates/kubewright" }
kubewright-runtime = { version = "=0.1.0", path = "crates/kubewright-runtime", default-features = false }
kubewright-at = { path = "operators/at" }
bytes = "1"
kube = { version = "5", default-features = false }
"#;
        let (written, before) = with_version(manifest, &Version::new(0, 2, 0)).expect("a manifest");
        assert_eq!(before, Version::new(0, 1, 0));
        assert_eq!(written, manifest.replace("0.1.0", "0.2.0"));
    }

    #[test]
    fn the_workspace_can_be_given_a_version() {
        let manifest = fs::read_to_string(workspace().join("Cargo.toml")).expect("a manifest");
        let (written, before) = with_version(&manifest, &Version::new(7, 8, 9)).expect("a manifest");
        assert_eq!(written.matches("=7.8.9").count(), manifest.matches(&format!("={before}")).count());
        assert_eq!(written.matches("7.8.9").count(), manifest.matches(&before.to_string()).count());
        let crates = fs::read_dir(workspace().join("crates")).expect("crates").count();
        assert_eq!(written.matches("=7.8.9").count(), crates, "a crate's path has no version");
    }

    #[test]
    fn the_packages_for_other_languages_have_the_version_of_the_crates() {
        let manifest = fs::read_to_string(workspace().join("Cargo.toml")).expect("a manifest");
        let (next, (_, before)) =
            (Version::new(7, 8, 9), with_version(&manifest, &Version::new(7, 8, 9)).expect("a manifest"));
        for (file, lines) in PACKAGES {
            let text = fs::read_to_string(workspace().join(file)).expect(file);
            let written = with_lines(&text, lines, &before, &next).expect(file);
            let changed =
                std::iter::zip(text.lines(), written.lines()).filter(|(one, other)| one != other).count();
            assert_eq!(changed, lines.len(), "{file}");
        }
        with_lines("version = \"1.0.0\"\n", &["version"], &before, &next).expect_err("another version");
        with_lines("", &["version"], &before, &next).expect_err("no line");
    }
}
