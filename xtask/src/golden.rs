//! `cargo xtask golden`: all recorded conversations, held with each version of Kubernetes. `cargo xtask test` holds with the other
//! versions than the recorded one only those in which they differ.

use anyhow::{Result, bail};

use crate::run::{cargo, run, target};
use crate::tools;

/// Holds them.
///
/// # Errors
/// Where one goes otherwise than recorded and the README does not say so, or there is no Python.
pub(crate) fn golden() -> Result<()> {
    let python = match tools::python() {
        Ok(program) => program,
        Err(reason) => bail!("the recordings are held by a program in Python: {reason}"),
    };
    let built = target().join("debug/kubewright");
    run(&mut cargo(["build", "--package", "kubewright-cli", "--bin", "kubewright"]))?;
    let held = ["test", "--package", "kubewright-tests", "--test", "up", "--", "--ignored", "golden::"];
    run(cargo(held).env("KUBEWRIGHT", built).env("PYTHON", python).env("KUBEWRIGHT_GOLDEN", "all"))
}
