//! The SDK that a project is built with.

use std::fs;

use super::Finding;
use crate::{
    project::{Dependency, Project},
    scaffold::RELEASED,
};

/// Where cargo looks for what comes from nowhere else.
const CRATES_IO: &str = "registry+https://github.com/rust-lang/crates.io-index";
/// What names another place of the SDK in a project that was scaffolded.
const ELSEWHERE: &str =
    "kubewright upgrade --sdk FOLDER|URL#REVISION, with crates/kubewright of a checkout or a repository";

/// Where it is, and whether it is of the command's version.
pub(super) fn sdk(project: &Project) -> Vec<Finding> {
    let lock = fs::read_to_string(project.workspace.join("Cargo.lock")).ok();
    let version = lock
        .as_deref()
        .and_then(|lock| locked(lock, "kubewright").or_else(|| locked(lock, "kubewright-runtime")));
    let is_near = |of: &Dependency| of.path.as_ref().is_some_and(|path| path.starts_with(&project.workspace));
    let mut findings: Vec<Finding> = project
        .sdk
        .iter()
        .filter(|sdk| !is_near(sdk))
        .map(|sdk| source(sdk, version.is_some(), RELEASED))
        .collect();
    let ours = env!("CARGO_PKG_VERSION");
    findings.push(match version {
        Some(version) if version == ours => Finding::ok("SDK", format!("kubewright {version}")),
        Some(version) => Finding::warning(
            "SDK",
            format!("the project is built with kubewright {version}, and this command is {ours}"),
            "kubewright upgrade, or take the command of the same version",
        ),
        None => Finding::warning("SDK", "Cargo.lock does not say its version yet", "cargo generate-lockfile"),
    });
    findings
}

/// Where it comes from, and whether it can.
fn source(sdk: &Dependency, is_locked: bool, released: bool) -> Finding {
    const WHAT: &str = "SDK source";
    match (&sdk.path, sdk.source.as_deref()) {
        (Some(path), _) if !path.exists() => {
            Finding::missing(WHAT, format!("{} is not there", path.display()), ELSEWHERE)
        }
        (Some(path), _) => Finding::warning(
            WHAT,
            format!("{}, which others do not have", path.display()),
            "before others build the project, name a repository: kubewright upgrade --sdk URL#REVISION",
        ),
        (None, Some(CRATES_IO)) if !released && !is_locked => Finding::missing(
            WHAT,
            format!("kubewright {} of crates.io, where no version is yet: cargo will not find it", sdk.req),
            ELSEWHERE,
        ),
        (None, source) => {
            let source = source.unwrap_or_default();
            Finding::ok(WHAT, source.trim_start_matches("git+").trim_start_matches("registry+"))
        }
    }
}

/// The version of a package in a Cargo.lock.
fn locked(lock: &str, package: &str) -> Option<String> {
    let name = format!("name = \"{package}\"");
    let mut lines = lock.lines().skip_while(|line| *line != name);
    let version = lines.nth(1)?.strip_prefix("version = \"")?;
    Some(version.trim_end_matches('"').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::State;

    #[test]
    fn the_version_of_the_sdk_is_read_from_cargo_lock() {
        let lock = "[[package]]\nname = \"kube\"\nversion = \"5.0.0\"\n\n[[package]]\nname = \"kubewright\"\nversion = \"0.1.0\"\n";
        assert_eq!(locked(lock, "kubewright").as_deref(), Some("0.1.0"));
        assert_eq!(locked(lock, "wright"), None);
    }

    #[test]
    fn an_sdk_that_cargo_will_not_find_is_told_with_what_to_do() {
        let from = |source: Option<&str>, path: Option<&str>| Dependency {
            req: "^0.1.0".to_owned(),
            source: source.map(str::to_owned),
            path: path.map(Into::into),
        };
        let registry = from(Some(CRATES_IO), None);
        let found = source(&registry, false, false);
        assert_eq!(found.state, State::Missing);
        assert!(found.found.contains("kubewright ^0.1.0 of crates.io, where no version is yet"), "{found:?}");
        assert!(found.remedy.expect("a remedy").starts_with("kubewright upgrade --sdk"));
        for (sdk, locked, released, state) in [
            (registry.clone(), true, false, State::Ok),
            (registry, false, true, State::Ok),
            (from(Some("git+https://example.com/k?rev=1"), None), false, false, State::Ok),
            (from(None, Some("/not/there")), false, false, State::Missing),
            (from(None, Some("/")), false, false, State::Warning),
        ] {
            assert_eq!(source(&sdk, locked, released).state, state, "{sdk:?}");
        }
    }
}
