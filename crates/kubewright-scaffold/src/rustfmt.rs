//! Formatting by the program rustfmt: as `cargo fmt` in the project's folder does it, with the project's toolchain and its
//! `rustfmt.toml`. Where the program is not there, Rust stays as the templates have it.

use std::{
    cell::RefCell,
    env, fs,
    io::{self, Write},
    path::{Path, PathBuf},
    process::{self, Stdio},
};

use crate::Error;

/// Its settings, in a project's folder.
pub(crate) const SETTINGS: &str = "rustfmt.toml";

/// The program, and where it runs.
#[derive(Debug, Default)]
pub(crate) struct Rustfmt {
    /// Without, all stays as it is.
    program: Option<PathBuf>,
    folder: PathBuf,
    settings: Option<Settings>,
    failed: RefCell<Option<String>>,
}

/// A file of settings that is removed when it is dropped.
#[derive(Debug)]
struct Settings(PathBuf);

impl Drop for Settings {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

impl Rustfmt {
    /// The `program` for a project in `folder`; without one, texts stay as they are and nothing is told of it.
    pub(crate) fn new(program: Option<&Path>, folder: &Path) -> Self {
        Self { program: program.map(Path::to_owned), folder: folder.to_owned(), ..Self::default() }
    }

    /// The same with settings that are not in the folder yet: those of folders above would hold there until they are.
    ///
    /// # Errors
    /// When they cannot be written to a temporary file.
    pub(crate) fn with_settings(mut self, settings: &str) -> Result<Self, Error> {
        if self.program.is_some() {
            let path = env::temp_dir().join(format!("kubewright-{}-{SETTINGS}", process::id()));
            fs::write(&path, settings).map_err(Error::io("write", &path))?;
            self.settings = Some(Settings(path));
        }
        Ok(self)
    }

    /// The text of the file at `path` with its Rust formatted; what is no Rust, or cannot be formatted, as it is.
    pub(crate) fn formatted(&self, path: &str, text: &str) -> String {
        let program =
            self.program.as_ref().filter(|_| path.ends_with(".rs") && self.failed.borrow().is_none());
        match program.map(|program| self.run(program, text)) {
            None => text.to_owned(),
            Some(Ok(formatted)) => formatted,
            Some(Err(why)) => {
                *self.failed.borrow_mut() = Some(why);
                text.to_owned()
            }
        }
    }

    /// Why nothing is formatted from some text on, if that is so.
    pub(crate) fn failed(&self) -> Option<String> {
        self.failed.borrow().clone()
    }

    fn run(&self, program: &Path, text: &str) -> Result<String, String> {
        let mut command = process::Command::new(program);
        command.args(["--edition", "2024"]).current_dir(&self.folder);
        if let Some(Settings(path)) = &self.settings {
            command.arg("--config-path").arg(path);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let told = |error: io::Error| match error.kind() {
            io::ErrorKind::NotFound => format!("{} was not found", program.display()),
            _ => format!("{}: {error}", program.display()),
        };
        let mut child = command.spawn().map_err(told)?;
        if let Some(mut input) = child.stdin.take() {
            // One that does not read to the end says why by its status.
            let _ = input.write_all(text.as_bytes());
        }
        let output = child.wait_with_output().map_err(told)?;
        if !output.status.success() {
            let errors = String::from_utf8_lossy(&output.stderr);
            let first = errors.lines().find(|line| !line.trim().is_empty()).unwrap_or("it failed");
            return Err(format!("{}: {}", program.display(), first.trim()));
        }
        String::from_utf8(output.stdout).map_err(|_| format!("{}: it wrote no text", program.display()))
    }
}
