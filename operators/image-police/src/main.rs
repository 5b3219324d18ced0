//! The Container Image Police as a program.

use std::process::ExitCode;

#[tokio::main]
async fn main() -> ExitCode {
    kubewright_image_police::operator().main().await
}
