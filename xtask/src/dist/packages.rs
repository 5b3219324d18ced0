//! The packages for other languages with the program in them: a wheel, and npm packages of the platform and for all.

use std::{fs, path::Path, process::Command};

use anyhow::{Result, bail};

use super::Release;
use crate::{
    bindings,
    run::{find, run, workspace},
};

/// What makes them.
const TOOLS: [&str; 3] = ["python3", "node", "npm"];

/// Says which program is missing, before anything is built.
pub(super) fn expect_tools() -> Result<()> {
    match TOOLS.iter().find(|tool| find(tool).is_none()) {
        Some(missing) => bail!("there is no {missing}: it makes the packages for Python or Node"),
        None => Ok(()),
    }
}

/// The packages of a platform, with this program.
pub(super) fn of_platform(release: &Release, program: &Path) -> Result<()> {
    let python = workspace().join("bindings/python");
    let mut wheel = Command::new(bindings::python_environment()?);
    wheel
        .args(["-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir"])
        .arg(&release.output)
        .arg(python);
    run(release.reproducible(&mut wheel).env("KUBEWRIGHT_BINARY", program))?;
    let folder = release.output.join("npm");
    let mut package = Command::new("node");
    package.arg(workspace().join("bindings/node/scripts/platform-package.mjs")).args([program, &folder]);
    run(&mut package)?;
    pack(release, &folder)?;
    Ok(fs::remove_dir_all(&folder)?)
}

/// The npm package that finds that of its platform.
pub(super) fn of_all(release: &Release) -> Result<()> {
    pack(release, &workspace().join("bindings/node"))
}

/// An npm package as a registry takes it; npm gives each file the same time.
fn pack(release: &Release, folder: &Path) -> Result<()> {
    let mut pack = Command::new("npm");
    pack.args(["pack", "--silent", "--ignore-scripts", "--pack-destination"])
        .arg(&release.output)
        .arg(folder);
    run(&mut pack)
}
