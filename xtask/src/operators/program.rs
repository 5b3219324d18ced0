//! An operator as a program beside a cluster: what installs it, and its process.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::Operator;
use crate::{
    kubectl::{Inside, Kubectl},
    running::Running,
};

/// Where programs and what they leave behind are.
pub(super) struct Place {
    /// The programs: a folder of cargo's.
    pub(super) programs: PathBuf,
    /// Manifests, kubeconfigs and logs.
    pub(super) folder: PathBuf,
}

impl Place {
    pub(super) fn new(programs: PathBuf, folder: PathBuf) -> Result<Self> {
        fs::create_dir_all(&folder)?;
        Ok(Self { programs, folder })
    }

    /// Creates objects of the cluster.
    ///
    /// # Errors
    /// When the API server refuses.
    pub(super) fn create(&self, inside: &Inside<'_>, objects: &Value) -> Result<()> {
        let file = self.folder.join("objects.json");
        fs::write(&file, objects.to_string())?;
        inside.run(&["create", "--validate=ignore", "-f", &shown(&file)])?;
        Ok(())
    }

    fn file(&self, operator: &Operator, suffix: &str) -> PathBuf {
        self.folder.join(format!("{}.{suffix}", operator.name))
    }
}

impl Operator {
    /// Applies all that its `manifests` prints; gives the file with that.
    ///
    /// # Errors
    /// When the program or the cluster refuses.
    pub(super) fn install(&self, kubectl: &Kubectl, place: &Place) -> Result<String> {
        let program = place.programs.join(self.program);
        let printed = Command::new(program).arg("manifests").output().context("cannot run it")?;
        if !printed.status.success() {
            bail!("`manifests` failed: {}", String::from_utf8_lossy(&printed.stderr));
        }
        let file = place.file(self, "yaml");
        fs::write(&file, printed.stdout)?;
        let manifests = file.display().to_string();
        kubectl.run(&["apply", "--server-side", "--force-conflicts", "-f", &manifests])?;
        kubectl.run(&[
            "wait",
            "--for=condition=Established",
            "--timeout=60s",
            "customresourcedefinitions",
            "--all",
        ])?;
        Ok(manifests)
    }

    /// Starts its program with a token of its own service account, and with these arguments and variables.
    ///
    /// # Errors
    /// When there is no such account or no such program.
    pub(super) fn start(
        &self,
        kubectl: &Kubectl,
        place: &Place,
        arguments: &[&str],
        variables: &[(&str, String)],
    ) -> Result<Running> {
        let kubeconfig = place.file(self, "kubeconfig");
        let config = kubectl.config_of(&format!("{}-system", self.account), self.account)?;
        fs::write(&kubeconfig, config.to_string())?;
        let mut command = Command::new(place.programs.join(self.program));
        command.args(arguments).env("KUBECONFIG", kubeconfig).envs(variables.iter().cloned());
        Running::start(&mut command, &place.file(self, "log"))
    }
}

/// The variables that lead to a cloud, as its user demo.
pub(super) fn cloud_at(url: &str) -> Vec<(&'static str, String)> {
    vec![
        ("OS_AUTH_URL", format!("{url}/v3")),
        ("OS_USERNAME", "demo".to_owned()),
        ("OS_PASSWORD", "secret".to_owned()),
        ("OS_PROJECT_NAME", "demo".to_owned()),
    ]
}

/// `path`, for a command line.
pub(super) fn shown(path: &Path) -> String {
    path.display().to_string()
}
