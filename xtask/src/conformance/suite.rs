//! The tests of a class, run on a server of their own.

use std::{fs, path::PathBuf, process::Command};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::{
    RELEASE,
    classes::Class,
    programs::Programs,
    results::{self, Outcome},
};
use crate::{kubectl::eventually, run::run_and_read, running::Running};

/// How long a class may take.
const LONGEST: &str = "120m";

/// Tests of one class, and what they run with.
pub(super) struct Suite {
    pub(super) class: Class,
    pub(super) names: Vec<String>,
    /// How many run at a time.
    pub(super) procs: u16,
    pub(super) kubewright: PathBuf,
    pub(super) programs: Programs,
    pub(super) image_store: Option<PathBuf>,
    /// Where the kubeconfig, logs and reports are.
    pub(super) folder: PathBuf,
}

impl Suite {
    /// Starts a server, runs the tests, ends the server; gives what came out of each test that ran. The reports, in JUnit's form
    /// too, are in the folder.
    ///
    /// # Errors
    /// When the server does not start or ends by itself, or there is no report.
    pub(super) fn run(&self) -> Result<Vec<Outcome>> {
        if self.folder.exists() {
            fs::remove_dir_all(&self.folder)?;
        }
        fs::create_dir_all(&self.folder)?;
        let kubeconfig = self.folder.join("kubeconfig");
        let mut up = Running::start(&mut self.up(&kubeconfig), &self.folder.join("up.log"))?;
        eventually("the server is ready", || {
            up.check()?;
            Ok(up.log()?.contains("kubeconfig written").then_some(()))
        })?;
        let log = self.folder.join("log");
        let mut said = String::new();
        // It ends with a failure when a test does: the report says which.
        run_and_read(&mut self.ginkgo(&kubeconfig), |line| {
            said.push_str(line);
            said.push('\n');
        })?;
        fs::write(&log, said)?;
        up.check().with_context(|| format!("kubewright up, see {}", self.folder.join("up.log").display()))?;
        up.end()?;
        let report = self.folder.join("report.json");
        let text =
            fs::read_to_string(&report).with_context(|| format!("no report, see {}", log.display()))?;
        let report: Value = serde_json::from_str(&text)?;
        let found = results::of_report(&report)?;
        ensure!(!found.is_empty(), "no test ran, see {}", log.display());
        Ok(found)
    }

    fn up(&self, kubeconfig: &std::path::Path) -> Command {
        let minor = RELEASE.rsplit_once('.').map_or(RELEASE, |(minor, _)| minor);
        let mut up = Command::new(&self.kubewright);
        up.args(["up", "--port", "0", "--kubernetes-version", minor, "--kubeconfig"]).arg(kubeconfig);
        match (&self.image_store, self.class.needs_programs()) {
            (Some(store), true) => {
                // Some tests look into files of the node (`hostPath`), as a node of their own lets them.
                up.args(["--runtime", "process", "--allow-host-commands", "--nodes", "0", "--image-store"])
                    .arg(store)
            }
            // A test asks for two.
            _ => up.args(["--nodes", "2"]),
        };
        up
    }

    fn ginkgo(&self, kubeconfig: &std::path::Path) -> Command {
        let nodes = if self.class.needs_programs() { 1 } else { 2 };
        let mut ginkgo = Command::new(self.programs.path("ginkgo"));
        ginkgo.args([
            &format!("--procs={}", self.procs),
            "--no-color",
            "--silence-skips",
            &format!("--timeout={LONGEST}"),
            &format!("--focus={}", focus(&self.names)),
            &format!("--output-dir={}", self.folder.display()),
            "--json-report=report.json",
            "--junit-report=junit.xml",
        ]);
        ginkgo.arg(self.programs.path("e2e.test"));
        ginkgo.args([
            "--",
            &format!("--kubeconfig={}", kubeconfig.display()),
            "--provider=skeleton",
            "--allowed-not-ready-nodes=-1",
            "--minStartupPods=-1",
            &format!("--num-nodes={nodes}"),
            "--dump-logs-on-failure=false",
            "--disable-log-dump",
            &format!("--kubectl-path={}", self.programs.path("kubectl").display()),
        ]);
        ginkgo.current_dir(&self.folder);
        ginkgo
    }
}

/// An expression of Go that the whole names match, and no others; ginkgo has the name of the suite before them.
fn focus(names: &[String]) -> String {
    let special = |letter: char| "[](){}.*+?^$|\\".contains(letter);
    let quoted = names.iter().map(|name| {
        let letters =
            name.chars().flat_map(|letter| special(letter).then_some('\\').into_iter().chain([letter]));
        letters.collect::<String>()
    });
    format!(" (?:{})$", quoted.collect::<Vec<_>>().join("|"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_a_meaning_in_expressions_is_quoted() {
        let names = ["[sig-a] is (1.5)".to_owned(), "b".to_owned()];
        assert_eq!(focus(&names), r" (?:\[sig-a\] is \(1\.5\)|b)$");
    }
}
