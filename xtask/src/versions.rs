//! `cargo xtask versions`: what `kubewright init` and `create api` make (`tests/projects`), tested with each version of the Kubernetes
//! types. A program has one version of them, which it chooses by a feature of k8s-openapi: the SDK and its test harness take any.

use std::{fs, path::Path};

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::run::{cargo, run, target, workspace};

/// The project, and the version that the scaffold writes into it.
const PROJECT: &str = "tests/projects/whitelist";
const WRITTEN: &str = "\"v1_36\"";

/// The features of k8s-openapi.
const VERSIONS: [&str; 5] = ["v1_33", "v1_34", "v1_35", "v1_36", "v1_37"];

/// What `cargo xtask versions` is told.
#[derive(Args)]
pub(crate) struct Options {
    /// Only these versions, such as v1_35
    #[arg(value_name = "VERSION", value_parser = VERSIONS)]
    versions: Vec<String>,
}

/// Runs the tests of the project with each version.
///
/// # Errors
/// Tells with which versions it does not compile, or its tests fail.
pub(crate) fn versions(options: &Options) -> Result<()> {
    let folder = target().join("versions");
    let chosen = VERSIONS
        .iter()
        .filter(|version| options.versions.is_empty() || options.versions.iter().any(|one| one == *version));
    let mut failed = Vec::new();
    for version in chosen {
        let project = folder.join(version);
        make(&project, version)?;
        let manifest = project.join("Cargo.toml");
        // One folder to build in: what does not depend on the version is built once.
        let tested = run(cargo(["test", "--manifest-path"])
            .arg(&manifest)
            .env("CARGO_TARGET_DIR", folder.join("target")));
        if let Err(error) = tested {
            failed.push(format!("{version}: {error:#}"));
        }
    }
    if !failed.is_empty() {
        bail!("the project does not work with each version:\n{}", failed.join("\n"));
    }
    Ok(())
}

/// Copies the project as one outside of this workspace, with this version of the types.
fn make(project: &Path, version: &str) -> Result<()> {
    if project.exists() {
        fs::remove_dir_all(project)?;
    }
    copy(&workspace().join(PROJECT), project)?;
    let manifest = project.join("Cargo.toml");
    let text = fs::read_to_string(&manifest)?;
    if !text.contains(WRITTEN) {
        bail!("{PROJECT}/Cargo.toml does not say {WRITTEN}");
    }
    let sdk = workspace().join("crates/kubewright");
    let sdk = sdk.to_str().context("the path of the workspace is text")?;
    let text = text.replace(WRITTEN, &format!("{version:?}")).replace("../../../crates/kubewright", sdk);
    fs::write(&manifest, text + "\n[workspace]\n")?;
    fs::copy(workspace().join("Cargo.lock"), project.join("Cargo.lock"))?;
    Ok(())
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from).with_context(|| format!("cannot read {}", from.display()))? {
        let entry = entry?;
        let (source, copied) = (entry.path(), to.join(entry.file_name()));
        if entry.file_type()?.is_dir() {
            copy(&source, &copied)?;
        } else {
            fs::copy(source, copied)?;
        }
    }
    Ok(())
}
