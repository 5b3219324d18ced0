//! `kubewright doctor`: what is needed, what is missing, and the remedy.

mod cluster;
mod machine;
mod sdk;

use std::process::ExitCode;

use clap::Args;
use serde::Serialize;

use crate::{
    about::Output,
    access::ClusterArgs,
    output::print,
    project::{Project, ProjectArgs},
};

/// What `kubewright doctor` takes. It ends with 1 when something is missing.
#[derive(Args, Debug)]
pub(crate) struct DoctorArgs {
    #[command(flatten)]
    project: ProjectArgs,

    #[command(flatten)]
    cluster: ClusterArgs,

    /// How it is printed
    #[arg(long, short, value_enum, default_value_t)]
    output: Output,
}

/// How good it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum State {
    /// As it has to be.
    Ok,
    /// Not needed for everything.
    Warning,
    /// Needed.
    Missing,
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Finding {
    /// What was looked at.
    what: String,
    state: State,
    /// What was found.
    found: String,
    /// What to do, where something is.
    #[serde(skip_serializing_if = "Option::is_none")]
    remedy: Option<String>,
}

impl Finding {
    fn ok(what: &str, found: impl Into<String>) -> Self {
        Self { what: what.to_owned(), state: State::Ok, found: found.into(), remedy: None }
    }

    fn warning(what: &str, found: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { state: State::Warning, remedy: Some(remedy.into()), ..Self::ok(what, found) }
    }

    fn missing(what: &str, found: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { state: State::Missing, remedy: Some(remedy.into()), ..Self::ok(what, found) }
    }
}

/// Looks at everything, and tells of it.
///
/// # Errors
/// When what was found cannot be written.
pub(crate) async fn doctor(args: &DoctorArgs) -> anyhow::Result<ExitCode> {
    let project = Project::find(&args.project);
    let mut findings = machine::toolchain(project.as_ref().ok());
    findings.push(match &project {
        Ok(project) => Finding::ok("project", format!("{} in {}", project.package, project.root.display())),
        Err(error) => {
            Finding::warning("project", format!("{error:#}"), "needed by generate, install, run and build")
        }
    });
    findings.extend(project.as_ref().ok().into_iter().flat_map(sdk::sdk));
    findings.extend(machine::machine(project.as_ref().ok()));
    findings.extend(cluster::cluster(&args.cluster).await);
    let text = match args.output {
        Output::Json => serde_json::to_string_pretty(&findings)? + "\n",
        Output::Text => describe(&findings),
    };
    print(&text)?;
    let missing = findings.iter().any(|finding| finding.state == State::Missing);
    Ok(if missing { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn describe(findings: &[Finding]) -> String {
    let width = findings.iter().map(|finding| finding.what.len()).max().unwrap_or_default();
    let line = |finding: &Finding| {
        let state = match finding.state {
            State::Ok => "ok     ",
            State::Warning => "warning",
            State::Missing => "missing",
        };
        let remedy =
            finding.remedy.as_ref().map_or_else(String::new, |remedy| format!("{:9}-> {remedy}\n", ""));
        format!("{state}  {:width$}  {}\n{remedy}", finding.what, finding.found)
    };
    findings.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_told_with_its_remedy() {
        let findings =
            [Finding::ok("cargo", "1.95.0"), Finding::missing("kubectl", "not found", "install it")];
        assert_eq!(
            describe(&findings),
            "ok       cargo    1.95.0\nmissing  kubectl  not found\n         -> install it\n"
        );
    }
}
