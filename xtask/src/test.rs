//! `cargo xtask test`

use anyhow::{Result, bail};

use crate::{
    envtest::{self, Assets},
    run::{cargo, run, run_and_read, target},
    summary::Summary,
    tools::{self, Tool},
};

/// Runs all tests: first those that need nothing but cargo, then those of clients from outside on a real `kubewright up`.
pub(crate) fn test() -> Result<()> {
    let mut summary = Summary::default();
    let mut alone = cargo(["test", "--workspace", "--no-fail-fast"]);
    if let Ok(program) = tools::busybox() {
        alone.env("BUSYBOX", program);
    }
    let mut passed = run_and_read(&mut alone, |line| summary.read(line))?;

    run(&mut cargo(["build", "--package", "kubewright-cli"]))?;
    let mut outside = cargo(["test", "--package", "kubewright-tests", "--test", "up", "--", "--ignored"]);
    outside.env("KUBEWRIGHT", target().join("debug/kubewright"));
    let mut remarks = Vec::new();
    for Client { tests, variable, tool } in clients() {
        match tool() {
            Ok(program) => drop(outside.env(variable, program)),
            Err(reason) => {
                outside.args(["--skip", tests]);
                remarks.push(format!("the tests of {tests} DID NOT RUN: {reason}"));
            }
        }
    }
    let mut told = Summary::default();
    passed &= run_and_read(&mut outside, |line| told.read(line))?;
    summary.add_ignored_ones(&told);

    match envtest::go() {
        Ok(go) => {
            let suites = envtest::test(&go, &Assets::link("debug")?);
            remarks.push(match &suites {
                Ok(()) => "the suites of Go operators passed".to_owned(),
                Err(error) => format!("the suites of Go operators FAILED: {error:#}"),
            });
            passed &= suites.is_ok();
        }
        Err(reason) => remarks.push(format!("the suites of Go operators DID NOT RUN: {reason}")),
    }

    eprintln!("\n== {summary}");
    for line in remarks {
        eprintln!("== {line}");
    }
    if !passed {
        bail!("some tests failed");
    }
    Ok(())
}

/// Tests that need a program which Rust does not bring along.
struct Client {
    /// How the names of the tests begin.
    tests: &'static str,
    /// The environment variable that tells them where the program is.
    variable: &'static str,
    tool: fn() -> Tool,
}

fn clients() -> [Client; 4] {
    [
        Client { tests: "kubectl::", variable: "KUBECTL", tool: tools::kubectl },
        Client { tests: "golden::", variable: "PYTHON", tool: tools::python },
        Client { tests: "process::", variable: "BUSYBOX", tool: tools::busybox },
        Client { tests: "python::", variable: "PYTHON_WITH_CLIENT", tool: tools::python_with_client },
    ]
}
