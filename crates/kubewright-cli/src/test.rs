//! `kubewright test`: the tests of an operator.

use std::{ffi::OsString, process::ExitCode};

use clap::Args;

use crate::project::{Project, ProjectArgs, no_cargo};

/// What `kubewright test` takes.
#[derive(Args, Debug)]
pub(crate) struct TestArgs {
    #[command(flatten)]
    project: ProjectArgs,

    /// What `cargo test` is told: the names of tests, its flags, and after another `--` those of the tests
    #[arg(value_name = "ARGUMENT", trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

/// Runs the project's tests with cargo. They bring their own control plane, in virtual time: nothing has to be there. The
/// exit status is cargo's.
///
/// # Errors
/// When there is no project, or cargo cannot be run.
pub(crate) fn test(args: &TestArgs) -> anyhow::Result<ExitCode> {
    let project = Project::find(&args.project)?;
    let mut command = project.cargo("test");
    let status = command.args(&args.arguments).status().map_err(|error| no_cargo(&error))?;
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    Ok(code.map_or(ExitCode::FAILURE, ExitCode::from))
}
