//! The SecurityGroup operator as a program.

use std::process::ExitCode;

#[tokio::main]
async fn main() -> ExitCode {
    kubewright_security_group::operator().main().await
}
