//! The WhiteList operator as a program.

use std::process::ExitCode;

#[tokio::main]
async fn main() -> ExitCode {
    kubewright_whitelist::operator().main().await
}
