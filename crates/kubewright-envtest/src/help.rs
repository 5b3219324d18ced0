//! What `--help` and `--version` say.

use std::io::{self, Write};

use kubewright_spec::Version;

use super::{Program, flags::Type};

/// The versions that we stand in for.
pub(super) fn version(program: Program, kubernetes: Version) -> String {
    match program {
        Program::KubeApiserver => format!("Kubernetes v{}+kubewright\n", kubernetes.release()),
        Program::Etcd => "etcd Version: 3.6.8\nGit SHA: kubewright\n".to_owned(),
    }
}

/// All flags, one a line. Test suites look for a flag at the beginning of a line before they pass it.
pub(super) fn of(program: Program) -> String {
    let table = program.table();
    let mut text = format!(
        "kubewright in the place of {}: the same flags, of which those without a meaning here are accepted.\n\
         Usage:\n  {} [flags]\n\nFlags:\n",
        table.program, table.program
    );
    for (name, kind) in table.all() {
        let value = match kind {
            Type::Switch => "",
            Type::Integer => " int",
            Type::Float => " float",
            Type::Duration => " duration",
            Type::Address => " ip",
            Type::Text => " string",
        };
        text.push_str(&format!("  --{name}{value}\n"));
    }
    text
}

/// Writes to standard output.
///
/// # Errors
/// When that cannot be written to.
pub(super) fn print(text: &str) -> io::Result<()> {
    io::stdout().write_all(text.as_bytes())
}
