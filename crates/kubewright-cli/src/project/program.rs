//! An operator's program, asked for what it knows of itself.

use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, anyhow, bail};
use serde_json::Value;

/// A built operator.
#[derive(Clone, Debug)]
pub(crate) struct Program(PathBuf);

impl Program {
    /// The one at a path.
    pub(crate) fn new(path: PathBuf) -> Self {
        Self(path)
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Its name and version, as it says them.
    ///
    /// # Errors
    /// When it is no operator of the SDK.
    pub(crate) fn version(&self) -> anyhow::Result<(String, String)> {
        let answer = self.ask(["version"])?;
        let (name, version) = answer.trim().split_once(' ').ok_or_else(|| self.stranger(&answer))?;
        Ok((name.to_owned(), version.to_owned()))
    }

    /// What `manifests` prints with these flags.
    ///
    /// # Errors
    /// When it is no operator of the SDK, or is put together wrongly.
    pub(crate) fn manifests<S: AsRef<OsStr>>(&self, flags: &[S]) -> anyhow::Result<Vec<Value>> {
        let arguments = [OsStr::new("manifests")].into_iter().chain(flags.iter().map(AsRef::as_ref));
        let text = self.ask(arguments)?;
        let objects: Vec<Value> = serde_saphyr::from_multiple(&text).map_err(|_| self.stranger(&text))?;
        let objects: Vec<Value> = objects.into_iter().filter(|object| !object.is_null()).collect();
        match objects.iter().all(|object| object["kind"].is_string()) {
            true => Ok(objects),
            false => Err(self.stranger(&text)),
        }
    }

    fn ask<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> anyhow::Result<String> {
        let mut command = Command::new(&self.0);
        let output = command.args(arguments).stdin(Stdio::null()).output();
        let output = output.with_context(|| format!("{} cannot be run", self.0.display()))?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
        match output.status.code() {
            Some(0) => Ok(text(&output.stdout) + "\n"),
            Some(2) => Err(self.stranger(&text(&output.stderr))),
            _ => bail!("{}: {}", self.0.display(), text(&output.stderr).trim_start_matches("error: ")),
        }
    }

    fn stranger(&self, answer: &str) -> anyhow::Error {
        let first = answer.lines().next().unwrap_or_default();
        anyhow!(
            "{} does not answer as an operator does ({first}): its main() has to end in `operator().main().await` (a \
             `kubewright::command::Operator`)",
            self.0.display()
        )
    }
}
