//! The At operator as a program.

use std::process::ExitCode;

#[tokio::main]
async fn main() -> ExitCode {
    kubewright_at::operator().main().await
}
