//! `cargo xtask bench`

use std::process::Command;

use anyhow::Result;

use crate::run::{cargo, run, target};

/// What is compared with.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// How often each thing is measured; the median counts
    #[arg(long, value_name = "NUMBER", default_value = "10", value_parser = clap::value_parser!(u16).range(1..))]
    runs: u16,

    /// A shell command that starts a real control plane in the foreground and ends it on SIGTERM
    #[arg(long, value_name = "COMMAND", requires = "reference")]
    reference_command: Option<String>,

    /// The kubeconfig of the real control plane; without --reference-command of one that runs already
    #[arg(long, value_name = "KUBECONFIG")]
    reference: Option<String>,
}

/// Builds in release mode and hands over to the program that measures (`benches/`).
pub(crate) fn bench(options: &Options) -> Result<()> {
    run(&mut cargo([
        "build",
        "--release",
        "--package",
        "kubewright-cli",
        "--package",
        "kubewright-benches",
    ]))?;
    let release = target().join("release");
    let mut measure = Command::new(release.join("kubewright-bench"));
    measure.arg("--kubewright").arg(release.join("kubewright")).args(["--runs", &options.runs.to_string()]);
    if let Some(kubeconfig) = &options.reference {
        measure.args(["--reference", kubeconfig]);
    }
    if let Some(command) = &options.reference_command {
        measure.args(["--reference-command", command]);
    }
    run(&mut measure)
}
