//! `kubewright version`, `completion` and `man`.

use std::{
    io::{self, Write},
    path::PathBuf,
};

use anyhow::Context;
use clap::{Args, ValueEnum};
use clap_complete::Shell;
use kubewright_spec::Version;
use serde_json::json;

use crate::args::program;

/// What `kubewright version` takes.
#[derive(Args, Debug)]
pub(crate) struct VersionArgs {
    /// How it is printed
    #[arg(long, short, value_enum, default_value_t)]
    output: Output,
}

/// How something is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    /// For people
    #[default]
    Text,
    /// For programs
    Json,
}

/// What `kubewright completion` takes.
#[derive(Args, Debug)]
pub(crate) struct CompletionArgs {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

/// What `kubewright man` takes.
#[derive(Args, Debug)]
pub(crate) struct ManArgs {
    /// The folder for `kubewright.1` and a page for each of its commands; it is made if it is not there
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

/// Says which kubewright this is.
pub(crate) fn version(args: &VersionArgs) {
    let version = env!("CARGO_PKG_VERSION");
    let kubernetes = format!("v{}", Version::DEFAULT);
    // What builds a release says it.
    let commit = option_env!("KUBEWRIGHT_COMMIT");
    let text = match args.output {
        Output::Text => {
            let commit = commit.map_or_else(String::new, |commit| format!(", commit {commit}"));
            format!("kubewright {version} (Kubernetes API {kubernetes}{commit})")
        }
        Output::Json => {
            let platform = format!("{}/{}", std::env::consts::OS, std::env::consts::ARCH);
            json!({"version": version, "commit": commit, "kubernetes": kubernetes, "platform": platform})
                .to_string()
        }
    };
    let _ = writeln!(io::stdout(), "{text}");
}

/// Writes what makes a shell complete the command's words.
pub(crate) fn completion(args: &CompletionArgs) {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut program(), "kubewright", &mut script);
    let _ = io::stdout().write_all(&script);
}

/// Writes the manual pages.
///
/// # Errors
/// When the folder cannot be written.
pub(crate) fn man(args: &ManArgs) -> anyhow::Result<()> {
    let failed = || format!("cannot write manual pages into {}", args.folder.display());
    std::fs::create_dir_all(&args.folder).with_context(failed)?;
    clap_mangen::generate_to(program(), &args.folder).with_context(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reference_of_the_command_line_is_what_it_takes() {
        let made_by = "cargo test -p kubewright-cli --lib reference";
        kubewright_reference::check_part(
            "cli.md",
            "commands",
            made_by,
            &kubewright_reference::command_page(program()),
        );
    }
}
