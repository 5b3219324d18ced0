//! `cargo xtask test`

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::{
    bindings,
    envtest::{self, Assets},
    openstack::OpenStack,
    parts::{Parts, Programs, RECORDED},
    run::{cargo, run, run_and_read, target},
    spec,
    summary::Summary,
    times::timed,
    tools::{self, Tool},
};

/// Which tests.
#[derive(Args)]
pub(crate) struct Options {
    /// Run the suite of the SDK alone, against the Kubernetes of this kubeconfig's current context, in namespaces that it
    /// makes and deletes. It also makes and deletes a CustomResourceDefinition and webhook configurations: take a cluster
    /// that nobody needs
    #[arg(long, value_name = "KUBECONFIG")]
    real: Option<PathBuf>,
}

/// Runs the tests.
pub(crate) fn test(options: &Options) -> Result<()> {
    match &options.real {
        Some(kubeconfig) => test_against(kubeconfig),
        None => test_all(),
    }
}

/// Runs the SDK's suite against a real Kubernetes.
fn test_against(kubeconfig: &Path) -> Result<()> {
    let kubeconfig = kubeconfig.canonicalize().with_context(|| format!("{}", kubeconfig.display()))?;
    // They wait more than they compute; more at once make a small API server late.
    let arguments = ["test", "--package", "kubewright-tests", "--test", "sdk", "--", "--test-threads", "4"];
    run(cargo(arguments).env("KUBEWRIGHT_TEST_KUBECONFIG", kubeconfig))
}

/// Runs all tests: first those that need nothing but cargo, then those of clients from outside on a real `kubewright up`.
pub(crate) fn test_all() -> Result<()> {
    let mut summary = Summary::default();
    let mut alone = cargo(["test", "--workspace", "--no-fail-fast"]);
    if let Ok(program) = tools::busybox() {
        alone.env("BUSYBOX", program);
    }
    let mut passed = run_and_read(&mut alone, |line| summary.read(line))?;

    // The programs were built with the tests. To build them by themselves would be to build the cluster once more, as the tests ask for
    // features that they do not.
    let mut outside = ignored_ones_of("up");
    outside.env("KUBEWRIGHT", target().join("debug/kubewright"));
    // They wait for programs and for the machine's clock more than they compute.
    let threads = std::thread::available_parallelism().map_or(2, usize::from).max(2) * 2;
    outside.args(["--test-threads", &threads.to_string()]);
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
    summary.add_ignored_ones(told);

    match envtest::go() {
        Ok(go) => {
            let with_controllers = Assets::link_with_controllers("debug")?;
            let suites = envtest::test(&go, &Assets::link("debug")?, &with_controllers);
            remarks.push(match &suites {
                Ok(()) => "the suites of Go operators passed".to_owned(),
                Err(error) => format!("the suites of Go operators FAILED: {error:#}"),
            });
            passed &= suites.is_ok();
        }
        Err(reason) => remarks.push(format!("the suites of Go operators DID NOT RUN: {reason}")),
    }

    passed &= bindings::test(&mut remarks);
    passed &= beside_kubernetes(&mut remarks);

    match OpenStack::start() {
        Ok(openstack) => {
            let mut told = Summary::default();
            let mut tests = ignored_ones_of("suite");
            passed &= run_and_read(tests.env("OPENSTACK_URL", &openstack.url), |line| told.read(line))?;
            summary.add_ignored_ones(told);
        }
        Err(reason) => remarks.push(format!("the tests on OpenStack DID NOT RUN: {reason}")),
    }

    eprintln!();
    for line in summary.failures() {
        eprintln!("{line}");
    }
    eprintln!("== {summary}");
    for line in remarks {
        eprintln!("== {line}");
    }
    if !passed {
        bail!("some tests failed");
    }
    Ok(())
}

/// What needs the programs of Kubernetes: its parts in the place of ours and the reverse, and the tables of each version.
fn beside_kubernetes(remarks: &mut Vec<String>) -> bool {
    let mut passed = true;
    let mut tested = |what: &str, result: Result<()>| {
        remarks.push(match &result {
            Ok(()) => format!("{what}: passed"),
            Err(error) => format!("{what}: FAILED: {error:#}"),
        });
        passed &= result.is_ok();
    };
    let programs = Programs::find(RECORDED);
    let mut missing = Vec::new();
    for parts in Parts::ALL {
        match &programs {
            Ok(programs) => {
                tested(parts.describe(), parts.hold(programs, &target().join("debug/kubewright")));
            }
            Err(reason) => missing.push(format!("{} DID NOT RUN: {reason}", parts.describe())),
        }
    }
    for release in spec::RELEASES {
        let what = format!("the tables of Kubernetes v{release}");
        match spec::can_be_asked(release) {
            Ok(()) => tested(&what, timed(&what, || spec::check(release))),
            Err(reason) => missing.push(format!("{what} WERE NOT COMPARED: {reason}")),
        }
    }
    remarks.extend(missing);
    passed
}

/// The tests of this name that `cargo test` ignores. Of the whole workspace: a package alone would be built with other
/// features, and so nearly everything once more.
fn ignored_ones_of(test: &str) -> Command {
    cargo(["test", "--workspace", "--test", test, "--", "--ignored"])
}

/// Tests that need a program which Rust does not bring along.
struct Client {
    /// How the names of the tests begin.
    tests: &'static str,
    /// The environment variable that tells them where the program is.
    variable: &'static str,
    tool: fn() -> Tool,
}

fn clients() -> [Client; 17] {
    [
        Client { tests: "kubectl::", variable: "KUBECTL", tool: tools::kubectl },
        Client { tests: "tutorials::", variable: "KUBECTL", tool: tools::kubectl },
        Client { tests: "helm::", variable: "HELM", tool: tools::helm },
        Client { tests: "golden::", variable: "PYTHON", tool: tools::python },
        Client { tests: "process::", variable: "BUSYBOX", tool: tools::busybox },
        Client { tests: "memcached::", variable: "MEMCACHED", tool: tools::memcached },
        Client { tests: "registry::", variable: "DOCKER_REGISTRY", tool: tools::docker_registry },
        Client { tests: "python::", variable: "PYTHON_WITH_CLIENT", tool: tools::python_with_client },
        Client { tests: "view::", variable: "CHROMIUM", tool: tools::chromium },
        Client { tests: "access::", variable: "CHROMIUM", tool: tools::chromium },
        Client { tests: "access::", variable: "AXE", tool: tools::axe },
        Client { tests: "pictures::", variable: "CHROMIUM", tool: tools::chromium },
        Client { tests: "pictures::", variable: "FONTS", tool: tools::fonts },
        Client { tests: "tree::", variable: "NODE", tool: tools::node },
        Client { tests: "render::", variable: "PRESS", tool: envtest::press },
        Client { tests: "replay::", variable: "PRESS", tool: envtest::press },
        Client { tests: "trial::", variable: "PRESS", tool: envtest::press },
    ]
}
