//! The operator as a program.

use std::process::ExitCode;

#[tokio::main]
async fn main() -> ExitCode {
    @crate@::operator().main().await
}
