//! The kubewright command.

use std::process::ExitCode;

fn main() -> ExitCode {
    kubewright_cli::main(None)
}
