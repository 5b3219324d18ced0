//! `cargo xtask test`

use anyhow::{Result, bail};

use crate::{
    run::{cargo, run, run_and_read, target},
    summary::Summary,
    tools,
};

/// Runs all tests: first those that need nothing but cargo, then the kubectl story on a real `kubewright up`.
pub(crate) fn test() -> Result<()> {
    let mut summary = Summary::default();
    let mut passed =
        run_and_read(&mut cargo(["test", "--workspace", "--no-fail-fast"]), |line| summary.read(line))?;

    let kubectl = tools::kubectl();
    if let Ok(kubectl) = &kubectl {
        run(&mut cargo(["build", "--package", "kubewright-cli"]))?;
        let mut story =
            cargo(["test", "--package", "kubewright-tests", "--test", "kubectl", "--", "--ignored"]);
        story.env("KUBECTL", kubectl).env("KUBEWRIGHT", target().join("debug/kubewright"));
        let mut told = Summary::default();
        passed &= run_and_read(&mut story, |line| told.read(line))?;
        summary.add_ignored_ones(&told);
    }

    eprintln!("\n== {summary}");
    match kubectl {
        Ok(kubectl) => eprintln!("== the kubectl tests ran with {}", kubectl.display()),
        Err(reason) => eprintln!("== the kubectl tests DID NOT RUN: {reason}"),
    }
    if !passed {
        bail!("some tests failed");
    }
    Ok(())
}
