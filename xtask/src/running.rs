//! A program that runs beside this one.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use anyhow::{Context, Result, bail};

use crate::{kubectl::eventually, run::run};

/// A program that runs, until this is dropped. What it says is in a file.
pub(crate) struct Running {
    process: Child,
    log: PathBuf,
}

impl Running {
    /// Starts a program, whose output goes to `log`.
    ///
    /// # Errors
    /// When there is no such program, or the file cannot be written.
    pub(crate) fn start(command: &mut Command, log: &Path) -> Result<Self> {
        let told = File::create(log).with_context(|| format!("cannot write {}", log.display()))?;
        command.stdin(Stdio::null()).stdout(told.try_clone()?).stderr(told);
        let process = command.spawn().with_context(|| format!("{command:?} does not start"))?;
        Ok(Self { process, log: log.to_owned() })
    }

    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }

    /// What it has written so far.
    ///
    /// # Errors
    /// When that cannot be read.
    pub(crate) fn log(&self) -> Result<String> {
        Ok(fs::read_to_string(&self.log)?)
    }

    /// Looks whether it runs.
    ///
    /// # Errors
    /// When it does not.
    pub(crate) fn check(&mut self) -> Result<()> {
        match self.process.try_wait()? {
            Some(status) => bail!("it ended by itself ({status})"),
            None => Ok(()),
        }
    }

    /// Asks it to end, and waits until it has.
    ///
    /// # Errors
    /// When it does not, or had ended before.
    pub(crate) fn end(&mut self) -> Result<()> {
        self.check()?;
        run(Command::new("kill").args(["-TERM", &self.process.id().to_string()]))?;
        let status = eventually("it ends", || Ok(self.process.try_wait()?))?;
        if status.success() { Ok(()) } else { bail!("it ended with {status}") }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
