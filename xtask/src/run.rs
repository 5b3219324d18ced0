//! Running programs.

use std::{
    io::{self, BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, Result, bail};

use crate::times::timed;

/// The folder of the workspace.
pub(crate) fn workspace() -> &'static Path {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here)
}

/// The folder that cargo builds into.
pub(crate) fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| workspace().join("target"), PathBuf::from)
}

/// The cargo that runs this, in the workspace.
pub(crate) fn cargo<'a>(arguments: impl IntoIterator<Item = &'a str>) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    // What cargo tells the program that it runs is not for the cargo that this program runs: scripts that build dependencies
    // look at it, and would build them anew for each that starts one.
    for (variable, _) in std::env::vars_os() {
        let name = variable.to_string_lossy();
        if name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_") {
            command.env_remove(variable);
        }
    }
    command.args(arguments).current_dir(workspace());
    command
}

/// Says what is run, and runs it to its end.
///
/// # Errors
/// When it cannot be started or ends with a failure.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    announce(command);
    let status = timed(&shown(command), || command.status())
        .with_context(|| format!("cannot run {}", shown(command)))?;
    if !status.success() {
        bail!("{} failed ({status})", shown(command));
    }
    Ok(())
}

/// Runs it to its end, shows each line of its standard output as it comes and hands it to `line`; gives whether it ended
/// well.
///
/// # Errors
/// When it cannot be started or read.
pub(crate) fn run_and_read(command: &mut Command, mut line: impl FnMut(&str)) -> Result<bool> {
    announce(command);
    timed(&shown(command), || {
        let mut child = command
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot run {}", shown(command)))?;
        let output = child.stdout.take().context("the output is piped")?;
        let mut out = io::stdout();
        for text in BufReader::new(output).split(b'\n') {
            // What a program prints of others need not be a text.
            let text = text?;
            let text = String::from_utf8_lossy(&text);
            writeln!(out, "{text}")?;
            line(&text);
        }
        Ok(child.wait()?.success())
    })
}

/// The program `name` on the `PATH`.
pub(crate) fn find(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(|file| file.is_file())
}

fn announce(command: &Command) {
    eprintln!("\n== {}", shown(command));
}

fn shown(command: &Command) -> String {
    let program = Path::new(command.get_program()).file_name().unwrap_or_default();
    let words = std::iter::once(program).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}
